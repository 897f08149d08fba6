// The picture of one pipeline: server, reflector, queue, store and handlers on one line. Its width is in percent and
// its heights are fixed, so it fits any screen without scaling its text.

import { el, svg, say, mark } from './dom.js';
import { brief, bytes, count, heard, perSecond, plural } from './format.js';

const STATIONS = [10, 30, 50, 70, 90]; // percent
const calm = matchMedia('(prefers-reduced-motion: reduce)');

// Pipe draws a pipeline. A big one is the sum of a cluster and has the names of the stations.
export class Pipe {
  constructor({ big = false } = {}) {
    this.scale = big ? 1.5 : 1;
    this.y = big ? 42 : 14;
    this.height = big ? 92 : 42;
    this.texts = STATIONS.map((x) => svg('text', { x: `${x}%`, y: this.y + (big ? 32 : 24), class: 'pipe-text' }));
    this.notes = big ? STATIONS.map((x) => svg('text', { x: `${x}%`, y: this.y + 47, class: 'pipe-note' })) : [];
    this.wires = STATIONS.slice(1).map((x, i) =>
      svg('line', { x1: `${STATIONS[i]}%`, x2: `${x}%`, y1: this.y, y2: this.y, class: 'wire' }));
    this.sight = reflectorGlyph();
    this.tank = queueGlyph();
    this.fan = svg('g');
    this.fanned = -1;
    this.picture = svg('svg', { class: 'pipe-svg', role: 'img', height: this.height, width: '100%' },
      ...this.wires, ...this.#stations(), ...this.texts, ...this.notes, ...(big ? names() : []));
    this.pulse = el('span', { class: 'pulse', 'aria-hidden': 'true' });
    this.node = el('div', { class: big ? 'pipe pipe-big' : 'pipe' }, this.pulse, this.picture);
  }

  #stations() {
    const glyphs = [serverGlyph(), this.sight.node, this.tank.node, storeGlyph(), this.fan];
    return glyphs.map((glyph, i) => {
      glyph.setAttribute('transform', `scale(${this.scale})`);
      return svg('svg', { x: `${STATIONS[i]}%`, y: this.y, overflow: 'visible' }, glyph);
    });
  }

  // show draws a state: {state, heard, label, queue, objects, bytes, handlers, rate, notes}.
  show(s) {
    mark(this.node, 'data-state', s.state);
    say(this.texts[0], s.from);
    say(this.texts[1], s.label);
    say(this.texts[2], brief(s.queue));
    say(this.texts[3], s.stored);
    say(this.texts[4], brief(s.handlers));
    this.notes.forEach((note, i) => say(note, s.notes[i] ?? ''));
    mark(this.node, 'data-queue', s.queue > 0 ? 'some' : 'none');
    this.tank.fill(s.queue);
    this.#fanOut(s.handlers);
    mark(this.picture, 'aria-label', s.summary);
    this.#beat(s.rate);
  }

  // One branch per handler, up to five.
  #fanOut(handlers) {
    const n = Math.min(5, handlers);
    if (n === this.fanned) return;
    this.fanned = n;
    const branches = [];
    for (let i = 0; i < n; i++) {
      const y = n === 1 ? 0 : -9 + (18 * i) / (n - 1);
      branches.push(svg('path', { d: `M-12 0 C-4 0 -6 ${y} 3 ${y}`, class: 'branch' }),
        svg('circle', { cx: 5, cy: y, r: 2, class: 'leaf' }));
    }
    if (n === 0) branches.push(svg('circle', { cx: 0, cy: 0, r: 3, class: 'leaf leaf-none' }));
    this.fan.replaceChildren(...branches);
  }

  // Shows the events of the last second as dots that move along the line once. The browser animates them, so many lanes
  // need no script.
  #beat(rate) {
    if (!(rate > 0) || calm.matches || document.hidden) return;
    mark(this.pulse, 'data-dots', rate < 2 ? 1 : rate < 20 ? 2 : rate < 200 ? 3 : 4);
    this.pulse.animate(
      [
        { transform: 'translateX(0)', opacity: 0 },
        { opacity: 1, offset: 0.1 },
        { opacity: 1, offset: 0.85 },
        { transform: 'translateX(97%)', opacity: 0 },
      ],
      { duration: 1400, easing: 'cubic-bezier(.35,.1,.5,1)' });
  }
}

function names() {
  return ['API server', 'Reflector', 'Queue', 'Store', 'Handlers'].map((name, i) =>
    svg('text', { x: `${STATIONS[i]}%`, y: 13, class: 'pipe-name', text: name }));
}

function serverGlyph() {
  return svg('g', { class: 'glyph' },
    svg('rect', { x: -9, y: -9, width: 18, height: 18, rx: 4, class: 'body' }),
    ...[-3.5, 3.5].flatMap((y) => [
      svg('line', { x1: -5, x2: 2, y1: y, y2: y, class: 'detail' }),
      svg('circle', { cx: 5, cy: y, r: 1.2, class: 'lamp' }),
    ]));
}

// A lens: full while the reflector streams, half while it lists, crossed while it fails.
function reflectorGlyph() {
  return {
    node: svg('g', { class: 'glyph sight' },
      svg('circle', { r: 9, class: 'body' }),
      svg('path', { d: 'M0 -5 A5 5 0 0 1 0 5 Z', class: 'half' }),
      svg('circle', { r: 4.5, class: 'pupil' }),
      svg('path', { d: 'M0 -4.5 V1.2 M0 4 V4.2', class: 'warn' }),
      svg('path', { d: 'M-4 4 L4 -4', class: 'slash' })),
  };
}

// A tank with a logarithmic level: one waiting object is visible, ten thousand fill it.
function queueGlyph() {
  const level = svg('rect', { x: -8.5, width: 17, y: 7, height: 0, rx: 1.5, class: 'level' });
  return {
    node: svg('g', { class: 'glyph' },
      svg('path', { d: 'M-10 -8 H10 V5 A3 3 0 0 1 7 8 H-7 A3 3 0 0 1 -10 5 Z', class: 'body' }), level),
    fill(n) {
      const height = n > 0 ? Math.min(14, 2 + 3 * Math.log10(n)) : 0;
      mark(level, 'height', height.toFixed(1));
      mark(level, 'y', (7 - height).toFixed(1));
    },
  };
}

function storeGlyph() {
  return svg('g', { class: 'glyph' },
    svg('path', { d: 'M-9 -6 V6 C-9 10 9 10 9 6 V-6', class: 'body' }),
    svg('ellipse', { cx: 0, cy: -6, rx: 9, ry: 3.2, class: 'body' }),
    svg('path', { d: 'M-9 0 C-9 4 9 4 9 0', class: 'detail' }));
}

// Spark draws the last minute of a rate.
export class Spark {
  constructor() {
    this.area = svg('path', { class: 'spark-area' });
    this.line = svg('path', { class: 'spark-line' });
    this.node = svg('svg',
      { class: 'spark', viewBox: '0 0 120 28', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
      this.area, this.line);
  }

  show(history) {
    const peak = Math.max(1, ...history);
    const from = 60 - history.length;
    const points = history.map((v, i) => `${((from + i) * 120) / 59},${(26 - (24 * v) / peak).toFixed(1)}`);
    mark(this.line, 'd', points.length > 1 ? `M${points.join('L')}` : 'M0,26');
    mark(this.area, 'd', points.length > 1 ? `M${(from * 120) / 59},28L${points.join('L')}L120,28Z` : 'M0,26');
  }
}

// Lane is the line of one resource in a cluster.
export class Lane {
  constructor(r, href) {
    this.pipe = new Pipe();
    this.spark = new Spark();
    this.rate = el('span', { class: 'lane-rate' });
    this.error = el('p', { class: 'lane-error' });
    this.error.hidden = true;
    this.node = el('li', { class: 'lane' },
      el('div', { class: 'lane-head' },
        el('a', { class: 'lane-name', href, text: r.resource }),
        el('span', { class: 'lane-group', text: r.group ? `${r.group}/${r.version}` : r.version })),
      this.pipe.node, this.spark.node, this.rate, this.error);
  }

  show(r, track) {
    mark(this.node, 'data-state', r.state);
    this.pipe.show({
      state: r.state,
      from: heard(r.lastHeardSeconds),
      label: r.state,
      queue: r.queue,
      stored: r.objects > 0 ? `${brief(r.objects)} · ${bytes(r.bytes)}` : '0',
      handlers: r.handlers,
      rate: track.rate,
      summary: `${r.resource}: ${r.state}, last event ${heard(r.lastHeardSeconds)} ago, ${count(r.queue)} queued, ` +
        `${plural(r.objects, 'object')} in ${bytes(r.bytes)}, ${plural(r.handlers, 'handler')}, ` +
        `${perSecond(track.rate)} events per second${r.epoch > 1 ? `, epoch ${r.epoch}` : ''}`,
    });
    this.spark.show(track.history);
    say(this.rate, `${perSecond(track.rate)}/s`);
    mark(this.rate, 'data-some', track.rate > 0 ? 'yes' : 'no');
    say(this.error, r.error ?? '');
    this.error.hidden = !r.error;
  }
}
