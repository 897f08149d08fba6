// A slider over a span of time, on a drawing of what is known of it: a row for each cluster with its gaps, and a mark
// for each change.

import { el, mark, svg } from './dom.js';
import { gapRows, say as sayMoment, stepOf, ticks } from './moment.js';

const ROWS = 6; // clusters with a row of their own
const ROW = 9; // height of a row
const WIDE = 1000; // width of the drawing, whatever the width on the screen
const NEAR = 6; // pixels within which a click selects a mark
const SETTLE = 250; // milliseconds without a move after which the moment is taken
const LABELS = 8;
const narrow = matchMedia('(max-width: 640px)');

// Timeline calls onmove with a time, or with null for now.
export class Timeline {
  #span = { from: 0, to: 1 };
  #marks = [];
  #until = Infinity;
  #at = null;
  #timer = 0;
  #pointed = false;

  constructor({ onmove, now }) {
    this.onmove = onmove;
    this.now = now;
    this.drawing = svg('svg', { class: 'timeline-svg', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
    this.slider = el('input', { type: 'range', class: 'slider', min: '0', step: '1', 'aria-label': 'Moment',
      'aria-describedby': 'time-note' });
    this.flag = el('output', { class: 'flag', 'aria-hidden': 'true' });
    this.ticks = el('div', { class: 'ticks', 'aria-hidden': 'true' });
    this.names = el('div', { class: 'row-names', 'aria-hidden': 'true' });
    this.node = el('div', { class: 'timeline' }, this.names,
      el('div', { class: 'track' }, this.drawing, this.slider, this.flag), this.ticks);
    this.slider.addEventListener('input', () => this.#moved());
    this.slider.addEventListener('change', () => this.#take());
    this.slider.addEventListener('keydown', (e) => this.#key(e));
    this.slider.addEventListener('pointerdown', () => {
      this.#pointed = true;
    });
  }

  // show draws what is known of a span of time, with the slider at a moment, or at now if that is null. The changes are
  // known until a time.
  show({ span, at, gaps, begins, changes, until }) {
    this.#span = span;
    this.#until = until;
    this.#marks = changes.filter((c) => c.at >= span.from && c.at <= span.to);
    this.#at = at;
    const rows = gapRows({ gaps, begins }, span, ROWS);
    this.#draw(rows);
    this.#name(rows);
    const labels = ticks(span.from, span.to, narrow.matches ? LABELS / 2 : LABELS);
    const whole = labels.filter(({ time }) => Math.abs(this.#share(time) - 0.5) < 0.47); // not cut off at an end
    this.ticks.replaceChildren(...whole.map(({ time, label }) => {
      const node = el('span', { text: label });
      node.style.left = `${this.#share(time) * 100}%`;
      return node;
    }));
    mark(this.slider, 'max', this.#seconds);
    if (document.activeElement === this.slider && this.#timer) return; // the user is moving it
    this.slider.value = at === null ? this.#seconds : Math.round((at - span.from) / 1000);
    this.#label(at);
  }

  // step returns the change before or after a moment, undefined if there is none or it is not known.
  step(direction) {
    const at = this.#at ?? this.#span.to;
    if (at > this.#until) return undefined;
    return direction < 0 ? this.#marks.findLast((c) => c.at < at) : this.#marks.find((c) => c.at > at);
  }

  get #seconds() {
    return Math.max(1, Math.round((this.#span.to - this.#span.from) / 1000));
  }

  get #time() {
    const value = Number(this.slider.value);
    return value >= this.#seconds && this.#span.to >= this.now() - 60000 ? null : this.#span.from + value * 1000;
  }

  #share(time) {
    return (time - this.#span.from) / (this.#span.to - this.#span.from);
  }

  #draw(rows) {
    const height = Math.max(1, rows.length) * ROW + ROW;
    mark(this.drawing, 'viewBox', `0 0 ${WIDE} ${height}`);
    this.drawing.style.height = `${height}px`;
    const x = (time) => Math.round(this.#share(time) * WIDE * 10) / 10;
    const nodes = [];
    rows.forEach((row, i) => {
      const y = i * ROW + ROW;
      nodes.push(svg('rect', { class: 'watched', x: 0, y, width: WIDE, height: ROW - 2 }));
      for (const { from, to, kind } of row.spans) {
        nodes.push(svg('rect', { class: kind, x: x(from), y, width: Math.max(2, x(to) - x(from)), height: ROW - 2 }));
      }
    });
    for (const type of ['Updated', 'Added', 'Deleted']) {
      const places = new Set(this.#marks.filter((c) => c.type === type).map((c) => Math.round(x(c.at))));
      if (places.size === 0) continue;
      const d = [...places].map((p) => `M${p} 0V${height}`).join('');
      nodes.push(svg('path', { class: 'change', 'data-type': type, d }));
    }
    this.drawing.replaceChildren(...nodes);
  }

  #name(rows) {
    const named = rows.length > 1;
    this.names.hidden = !named;
    mark(this.node, 'data-rows', named ? 'many' : null);
    this.names.replaceChildren(...(named ? rows : []).map(({ names }) =>
      el('span', { text: names.length === 1 ? names[0] : `${names.length} others`, title: names.join(', ') })));
  }

  #label(time) {
    const text = time === null ? 'now' : sayMoment(time, this.now());
    mark(this.slider, 'aria-valuetext', text);
    this.flag.textContent = text;
    const share = Number(this.slider.value) / this.#seconds;
    this.flag.style.left = `${share * 100}%`;
    mark(this.flag, 'data-side', share > 0.5 ? 'left' : 'right');
  }

  #moved() {
    this.#label(this.#time);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#take(), SETTLE);
  }

  // take takes the moment of the slider. A click beside a mark selects the mark.
  #take() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    let time = this.#time;
    const pointed = this.#pointed;
    this.#pointed = false;
    if (pointed && time !== null) {
      const near = (NEAR / Math.max(1, this.slider.clientWidth)) * (this.#span.to - this.#span.from);
      const far = (c) => Math.abs(c.at - time);
      const best = this.#marks.reduce((b, c) => (b && far(b) <= far(c) ? b : c), null);
      if (best && far(best) <= near) return this.onmove(best.at, best.time);
    }
    this.onmove(time);
  }

  // A step of the arrows is about a hundredth of the span; with Shift it is a second.
  #key(event) {
    const direction = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    this.#pointed = false;
    if (!direction) return;
    event.preventDefault();
    const step = event.shiftKey ? 1 : stepOf(this.#span.to - this.#span.from, 120) / 1000;
    this.slider.value = Number(this.slider.value) + direction * step;
    this.#moved();
  }
}
