// The recent changes, newest first, with the cells of an object's row that have changed; at a moment of the past, the
// changes before it.

import { el } from './dom.js';
import { clock } from './format.js';
import { brief } from './moment.js';

const KEPT = 60;
const WORDS = { ADDED: 'added', MODIFIED: 'changed', DELETED: 'deleted' };
const TYPES = { Added: 'ADDED', Updated: 'MODIFIED', Deleted: 'DELETED' };

// Feed is a list of recent changes. All changes of a frame are drawn together.
export class Feed {
  #fresh = [];

  constructor(list, { onopen, onpast }) {
    this.list = list;
    this.onopen = onopen;
    this.onpast = onpast;
  }

  // note adds a change, which flush draws.
  note(event) {
    this.#fresh.push(event);
    if (this.#fresh.length > KEPT) this.#fresh.shift();
  }

  // flush draws the changes since the last flush.
  flush() {
    if (this.#fresh.length === 0) return;
    const items = this.#fresh.reverse().map((event) => this.#item(event));
    this.#fresh = [];
    this.list.prepend(...items);
    while (this.list.childElementCount > KEPT) this.list.lastElementChild.remove();
  }

  clear() {
    this.#fresh = [];
    this.list.replaceChildren();
  }

  // showPast shows the newest of the changes before a moment.
  showPast(changes, now) {
    this.list.replaceChildren(...changes.slice(-KEPT).reverse().map((c) => line({
      type: TYPES[c.type] ?? c.type,
      time: brief(c.at, now),
      name: c.name,
      where: [c.cluster, c.namespace].filter(Boolean).join(' / '),
      what: [c.what, c.by.length > 0 ? `by ${c.by.join(', ')}` : ''].filter(Boolean).join(' '),
      onclick: () => this.onpast(c),
    })));
  }

  #item({ type, row, times, before, columns }) {
    const what = type === 'MODIFIED' && before ? differences(before, row, columns) : '';
    const where = [row.cluster, row.namespace].filter(Boolean).join(' / ');
    return line({ type, times, time: clock(new Date()), name: row.name, where, what, onclick: () => this.onopen(row) });
  }
}

function line({ type, times = 1, time, name, where, what, onclick }) {
  return el('li', { class: 'feed-item', 'data-type': type },
    el('span', { class: 'feed-time', text: time }),
    el('span', { class: 'feed-type', text: (WORDS[type] ?? type) + (times > 1 ? ` ×${times}` : '') }),
    el('button', { type: 'button', class: 'feed-name', text: name, onclick }),
    el('span', { class: 'feed-where', text: where }),
    ...(what ? [el('span', { class: 'feed-what', text: what })] : []));
}

function differences(before, after, columns) {
  const changed = [];
  columns.forEach((column, i) => {
    if (column.name === 'Age' || column.name === 'Last Seen') return;
    const [was, is] = [before.cells[i], after.cells[i]].map((v) => String(v ?? '') || 'nothing');
    if (was !== is) changed.push(`${column.name} ${was} → ${is}`);
  });
  return changed.slice(0, 4).join(', ');
}
