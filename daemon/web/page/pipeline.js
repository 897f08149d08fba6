// The overview: every cluster with its pipelines. Documents come about once a second. Elements are updated in place, so
// that nothing flickers and the focus stays.

import { el, say, mark, order } from './dom.js';
import { age, brief, bytes, count, heard, perSecond, plural } from './format.js';
import { resourceId } from './api.js';
import { link } from './route.js';
import { Lane, Pipe, Spark } from './lane.js';
import { Rates, troubled } from './rates.js';

// Overview fills a node with the state of the fleet.
export class Overview {
  #rates = new Rates();
  #sections = new Map();
  #history = [];

  constructor(node, { onjoin, onleave }) {
    this.onleave = onleave;
    this.tiles = new Tiles();
    this.list = el('div', { class: 'clusters' });
    this.empty = el('div', { class: 'empty' },
      el('h2', { text: 'No cluster yet' }),
      el('p', { text: 'Join one, and its pipelines show here.' }),
      el('button', { type: 'button', class: 'primary', text: 'Join a cluster', onclick: onjoin }));
    this.empty.hidden = true;
    this.waiting = el('p', { class: 'waiting', text: 'Reading the state of the clusters…' });
    node.append(this.tiles.node, this.waiting, this.empty, this.list);
  }

  // take counts a document, also while the overview is hidden.
  take(doc) {
    if (!this.#rates.take(doc)) return;
    let sum = 0;
    for (const c of doc.clusters) sum += this.#rates.of(c.name).rate;
    this.#history.push(sum);
    if (this.#history.length > 60) this.#history.shift();
  }

  // refuse shows that the user may not see the state of the clusters.
  refuse(message) {
    say(this.waiting, `You may not see the state of the clusters: ${message}. An administrator of the daemon can ` +
      'give you the role reader in its access file. The view Objects shows the objects that you may see.');
    this.waiting.hidden = false;
  }

  // show draws a document.
  show(doc) {
    this.waiting.hidden = true;
    this.tiles.show(doc, this.#history);
    this.empty.hidden = doc.clusters.length > 0;
    const names = new Set(doc.clusters.map((c) => c.name));
    for (const name of this.#sections.keys()) if (!names.has(name)) this.#sections.delete(name);
    order(this.list, doc.clusters.map((cluster) => {
      let section = this.#sections.get(cluster.name);
      if (!section) {
        section = new Section(cluster.name, () => this.onleave(cluster.name));
        this.#sections.set(cluster.name, section);
      }
      section.show(cluster, this.#rates, Date.parse(doc.now));
      return section.node;
    }));
  }
}

// Tiles are the numbers of the whole daemon.
class Tiles {
  constructor() {
    this.spark = new Spark();
    this.node = el('dl', { class: 'tiles', 'aria-label': 'The whole fleet' });
    this.values = {};
    for (const [id, name] of [['clusters', 'Clusters'], ['resources', 'Resources streaming'],
      ['objects', 'Objects mirrored'], ['rate', 'Events per second'], ['heard', 'Highest last-event age'],
      ['memory', 'Memory, resident']]) {
      const value = el('dd', { class: 'tile-value', text: '–' });
      const note = el('dd', { class: 'tile-note' });
      this.values[id] = { value, note };
      this.node.append(el('div', { class: `tile tile-${id}` }, el('dt', { text: name }), value, note,
        ...(id === 'rate' ? [this.spark.node] : [])));
    }
  }

  show(doc, history) {
    const resources = doc.clusters.flatMap((c) => c.resources ?? []);
    const ready = doc.clusters.filter((c) => c.state === 'ready').length;
    const sum = (field) => resources.reduce((n, r) => n + (r[field] ?? 0), 0);
    const streaming = resources.filter((r) => r.state === 'streaming').length;
    const all = doc.clusters.length;
    this.#set('clusters', count(all), all === 0 ? 'none yet' : ready === all ? 'all ready' : `${count(ready)} ready`);
    this.#set('resources', count(streaming), `of ${count(resources.length)}`);
    this.#set('objects', brief(sum('objects')), `${bytes(sum('bytes'))} packed`);
    this.#set('rate', perSecond(history.at(-1) ?? 0), '');
    const oldest = Math.max(0, ...doc.clusters.map((c) => c.lastHeardSeconds ?? 0));
    this.#set('heard', all ? heard(oldest) : '–', `${plural(sum('queue'), 'object')} queued`);
    this.#set('memory', bytes(doc.memory?.rssBytes), `${bytes(doc.memory?.heapBytes)} heap` +
      (doc.disk ? `, ${doc.disk.error ? 'disk fails' : `${bytes(doc.disk.bytes)} disk`}` : ''));
    this.spark.show(history);
  }

  #set(id, value, note) {
    say(this.values[id].value, value);
    say(this.values[id].note, note);
  }
}

// Section is one cluster.
class Section {
  #lanes = new Map();

  constructor(name, onleave) {
    this.name = name;
    const id = `cluster-${name}`;
    this.state = el('span', { class: 'state' });
    this.about = el('span', { class: 'about' });
    this.error = el('p', { class: 'section-error' });
    this.trunk = new Pipe({ big: true });
    this.busy = el('ul', { class: 'lanes', 'aria-label': `Pipelines of ${name} with something to see` });
    this.calm = el('p', { class: 'calm' });
    this.quiet = el('ul', { class: 'lanes', 'aria-label': `Quiet pipelines of ${name}` });
    this.quietCount = el('span', { class: 'fold-count' });
    this.dots = el('span', { class: 'dots', 'aria-hidden': 'true' });
    this.fold = el('details', { class: 'fold' }, el('summary', {}, this.quietCount, this.dots), this.quiet);
    this.fold.addEventListener('toggle', () => this.last && this.show(...this.last));
    this.node = el('section', { class: 'cluster', 'aria-labelledby': id },
      el('header', { class: 'cluster-head' },
        el('h2', { id, text: name }), this.state, this.about,
        el('a', {
          class: 'button',
          href: link('objects', { cluster: name }),
          text: 'Browse',
          'aria-label': `Browse objects of ${name}`,
        }),
        el('button', {
          type: 'button',
          class: 'quiet-button',
          text: 'Leave',
          'aria-label': `Leave ${name}`,
          onclick: onleave,
        })),
      this.error, this.trunk.node, this.busy, this.calm, this.fold);
  }

  show(cluster, rates, now) {
    this.last = [cluster, rates, now];
    const resources = cluster.resources ?? [];
    this.#head(cluster, now);
    this.#sum(cluster, resources, rates.of(cluster.name));
    const quiet = resources.filter((r) => rates.quiet(cluster.name, r));
    const hushed = new Set(quiet);
    const busy = resources.filter((r) => !hushed.has(r));
    busy.sort((a, b) => troubled(b) - troubled(a)); // stable: all others keep their order
    this.#forget(resources);
    order(this.busy, busy.map((r) => this.#lane(r, rates)));
    this.calm.hidden = busy.length > 0;
    say(this.calm, quietText(cluster, resources));
    this.#folded(quiet, rates);
  }

  #head(cluster, now) {
    mark(this.node, 'data-state', cluster.state);
    say(this.state, cluster.state);
    mark(this.state, 'data-state', cluster.state);
    const began = Date.parse(cluster.since); // the zero time of Go is long before 1970
    const since = began > 0 ? `for ${age((now - began) / 1000)}` : '';
    say(this.about, [since, cluster.origin ? `from ${cluster.origin}` : ''].filter(Boolean).join(' · '));
    say(this.error, cluster.error ?? '');
    this.error.hidden = !cluster.error;
  }

  #sum(cluster, resources, track) {
    const sum = (field) => resources.reduce((n, r) => n + (r[field] ?? 0), 0);
    const states = new Map();
    for (const r of resources) states.set(r.state, (states.get(r.state) ?? 0) + 1);
    const streaming = states.get('streaming') ?? 0;
    states.delete('streaming');
    const other = [...states].map(([state, n]) => `${n} ${state}`).join(', ');
    const connected = cluster.state === 'ready' || cluster.state === 'degraded';
    this.trunk.show({
      state: cluster.state === 'unreachable' ? 'retrying' : connected ? 'streaming' : 'listing',
      from: cluster.version || '–',
      label: `${streaming} of ${resources.length}`,
      queue: sum('queue'),
      stored: brief(sum('objects')),
      handlers: sum('handlers'),
      rate: track.rate,
      notes: [`${heard(cluster.lastHeardSeconds)} ago`, 'streaming', 'waiting', bytes(sum('bytes')),
        `${perSecond(track.rate)}/s`],
      summary: `${cluster.name} in total: ${streaming} of ${plural(resources.length, 'resource')} streaming` +
        `${other ? `, ${other}` : ''}, ${count(sum('queue'))} queued, ${plural(sum('objects'), 'object')} in ` +
        `${bytes(sum('bytes'))}, ${plural(sum('handlers'), 'handler')}, ${perSecond(track.rate)} events per second`,
    });
  }

  #forget(resources) {
    const ids = new Set(resources.map(resourceId));
    for (const id of this.#lanes.keys()) if (!ids.has(id)) this.#lanes.delete(id);
  }

  #lane(r, rates) {
    const id = resourceId(r);
    let lane = this.#lanes.get(id);
    if (!lane) {
      lane = new Lane(r, link('objects', { cluster: this.name, resource: id }));
      this.#lanes.set(id, lane);
    }
    lane.show(r, rates.of(this.name, r));
    return lane.node;
  }

  // Quiet pipelines are one dot each; their lanes are drawn only while the fold is open.
  #folded(quiet, rates) {
    this.fold.hidden = quiet.length === 0;
    const objects = quiet.reduce((n, r) => n + r.objects, 0);
    say(this.quietCount, `${plural(quiet.length, 'quiet resource')}, ${plural(objects, 'object')}`);
    while (this.dots.childElementCount > quiet.length) this.dots.lastElementChild.remove();
    while (this.dots.childElementCount < quiet.length) this.dots.append(el('i'));
    quiet.forEach((r, i) => {
      const size = r.objects === 0 ? 0 : Math.min(4, 1 + Math.floor(Math.log10(r.objects)));
      mark(this.dots.children[i], 'data-size', size);
      mark(this.dots.children[i], 'data-state', r.state);
    });
    order(this.quiet, this.fold.open ? quiet.map((r) => this.#lane(r, rates)) : []);
  }
}

// quietText explains why a cluster shows no pipelines.
function quietText(cluster, resources) {
  if (resources.length > 0) return 'Nothing happened in the last 30 seconds.';
  if (cluster.state === 'unreachable') return 'Nothing is known about this cluster yet: it has not answered.';
  return 'Discovering its resources…';
}
