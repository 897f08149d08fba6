// The recent changes, newest first, with the cells of an object's row that have changed.

import { el } from './dom.js';
import { clock } from './format.js';

const KEPT = 60;
const WORDS = { ADDED: 'added', MODIFIED: 'changed', DELETED: 'deleted' };

// Feed is a list of recent changes. All changes of a frame are drawn together.
export class Feed {
  #fresh = [];

  constructor(list, { onopen }) {
    this.list = list;
    this.onopen = onopen;
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

  #item({ type, row, times, before, columns }) {
    const what = type === 'MODIFIED' && before ? differences(before, row, columns) : '';
    const where = [row.cluster, row.namespace].filter(Boolean).join(' / ');
    return el('li', { class: 'feed-item', 'data-type': type },
      el('span', { class: 'feed-time', text: clock(new Date()) }),
      el('span', { class: 'feed-type', text: (WORDS[type] ?? type) + (times > 1 ? ` ×${times}` : '') }),
      el('button', { type: 'button', class: 'feed-name', text: row.name, onclick: () => this.onopen(row) }),
      el('span', { class: 'feed-where', text: where }),
      ...(what ? [el('span', { class: 'feed-what', text: what })] : []));
  }
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
