// A table that has elements only for the rows on the screen.

import { el, say, mark, soon } from './dom.js';
import { age } from './format.js';

const OVERSCAN = 6; // rows drawn above and below the visible ones
const NEAR = 40; // rows before the end at which more are requested
const CHAR = 7; // approximate width of a character in pixels
const FLASH = 1200; // milliseconds that a changed row stays marked
const narrow = matchMedia('(max-width: 640px)');

// Grid shows rows in a viewport that it creates. The keyboard moves one active row, which aria-activedescendant refers
// to, because most rows have no element.
export class Grid {
  #rows = [];
  #columns = [];
  #drawn = new Map(); // index -> element
  #spare = [];
  #active = 0;
  #shape = '';
  #wanted = false;

  constructor({ onopen, onneed, now }) {
    this.onopen = onopen;
    this.onneed = onneed;
    this.now = now;
    this.draw = soon(() => this.#draw());
    this.head = el('div', { class: 'grid-head', role: 'row' });
    this.body = el('div', { class: 'grid-body', role: 'rowgroup' });
    this.node = el('div',
      { class: 'grid', role: 'grid', tabindex: '0', 'aria-label': 'Objects', onkeydown: (e) => this.#key(e) },
      el('div', { class: 'grid-top', role: 'rowgroup' }, this.head), this.body);
    this.node.addEventListener('scroll', this.draw, { passive: true });
    this.body.addEventListener('click', (e) => {
      const row = e.target.closest('.grid-row');
      if (row) this.#open(Number(row.dataset.index));
    });
    narrow.addEventListener('change', () => {
      this.#shape = '';
      this.draw();
    });
    new ResizeObserver(this.draw).observe(this.node);
    setInterval(this.draw, 10000); // ages grow
  }

  // show sets the rows and columns, which are drawn with the next frame.
  show(rows, columns, total) {
    this.#rows = rows;
    this.#columns = columns;
    mark(this.node, 'aria-rowcount', total ?? -1);
    this.draw();
  }

  // busy: the first rows are being read.
  set busy(yes) {
    mark(this.node, 'aria-busy', yes);
  }

  // reset scrolls to the top, for another list.
  reset() {
    this.#active = 0;
    this.#shape = '';
    this.node.scrollTop = 0;
  }

  get #height() {
    return narrow.matches ? 52 : 32;
  }

  #draw() {
    this.#fit();
    const height = this.#height;
    const rows = this.#rows;
    this.#active = Math.max(0, Math.min(this.#active, rows.length - 1));
    this.body.style.height = `${rows.length * height}px`;
    const top = this.node.scrollTop;
    const first = Math.max(0, Math.floor(top / height) - OVERSCAN);
    const last = Math.min(rows.length, Math.ceil((top + this.node.clientHeight) / height) + OVERSCAN);
    for (const [index, node] of this.#drawn) {
      if (index >= first && index < last) continue;
      this.#drawn.delete(index);
      this.#spare.push(node);
    }
    const now = performance.now();
    let fading = false;
    for (let i = first; i < last; i++) fading = this.#row(i, rows[i], height, now) || fading;
    for (const node of this.#spare.splice(0)) node.remove();
    mark(this.node, 'aria-activedescendant', this.#drawn.has(this.#active) ? `row-${this.#active}` : null);
    if (fading && !this.#wanted) {
      this.#wanted = true;
      setTimeout(() => {
        this.#wanted = false;
        this.draw();
      }, FLASH);
    }
    if (last > rows.length - NEAR) this.onneed();
  }

  #row(index, row, height, now) {
    let node = this.#drawn.get(index);
    if (!node) {
      node = this.#spare.pop() ?? el('div', { class: 'grid-row', role: 'row' });
      this.#drawn.set(index, node);
      node.style.transform = `translateY(${index * height}px)`;
      node.dataset.index = index;
      node.id = `row-${index}`;
      mark(node, 'aria-rowindex', index + 2);
      if (!node.isConnected) this.body.append(node);
    }
    mark(node, 'aria-selected', index === this.#active);
    const fresh = row.touched > 0 && now - row.touched < FLASH;
    mark(node, 'data-change', row.gone ? 'gone' : fresh ? 'fresh' : null);
    if (narrow.matches) this.#short(node, row);
    else this.#long(node, row);
    return fresh;
  }

  #long(node, row) {
    while (node.childElementCount > this.#columns.length || node.firstElementChild?.className === 'short-name') {
      node.lastElementChild.remove();
    }
    while (node.childElementCount < this.#columns.length) node.append(el('span', { class: 'cell', role: 'gridcell' }));
    this.#columns.forEach((column, i) => {
      const cell = node.children[i];
      const text = cellText(column, row, this.now());
      say(cell, text);
      mark(cell, 'data-tone', column.toned ? tone(text) : null);
    });
  }

  // On a narrow screen a row has two lines: the name, and all other cells.
  #short(node, row) {
    if (node.firstElementChild?.className !== 'short-name') {
      node.replaceChildren(el('span', { class: 'short-name', role: 'gridcell' }),
        el('span', { class: 'short-rest', role: 'gridcell' }));
    }
    const texts = this.#columns.map((c) => [c, cellText(c, row, this.now())]);
    const name = texts.find(([c]) => c.name === 'Name');
    const status = texts.find(([c]) => c.toned);
    say(node.children[0], name ? name[1] : row.name);
    mark(node.children[0], 'data-tone', status ? tone(status[1]) : null);
    const others = texts.filter(([c, text]) => c.name !== 'Name' && text !== '' && text !== '<none>');
    say(node.children[1], others.map(([, text]) => text).join(' · '));
  }

  // fit sets the widths of the columns by the contents of the first rows. They stay the same for a list, so that
  // columns do not move.
  #fit() {
    const shape = `${narrow.matches}|${this.#columns.map((c) => c.name).join('|')}|${this.#rows.length > 0}`;
    if (shape === this.#shape) return;
    this.#shape = shape;
    for (const node of this.#drawn.values()) node.remove();
    this.#drawn.clear();
    const sample = this.#rows.slice(0, 100);
    const widths = this.#columns.map((column) => {
      const lengths = sample.map((row) => cellText(column, row, this.now()).length);
      const longest = Math.max(column.name.length + 1, ...lengths);
      return Math.max(6, Math.min(longest + 3, 44));
    });
    const least = widths.map((chars) => Math.min(chars, 22) * CHAR);
    this.node.style.setProperty('--columns', widths.map((chars, i) => `minmax(${least[i]}px, ${chars}fr)`).join(' '));
    this.node.style.setProperty('--sheet', `${least.reduce((sum, w) => sum + w, 28)}px`);
    this.head.replaceChildren(...this.#columns.map((c) =>
      el('span', { class: 'cell', role: 'columnheader', title: c.description ?? '', text: c.name })));
  }

  #key(event) {
    const page = Math.max(1, Math.floor(this.node.clientHeight / this.#height) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined) {
      if ((event.key === 'Enter' || event.key === ' ') && this.#rows.length > 0) {
        event.preventDefault();
        this.#open(this.#active);
      }
      return;
    }
    event.preventDefault();
    this.#active = Math.max(0, Math.min(this.#active + step, this.#rows.length - 1));
    const top = this.#active * this.#height;
    const room = this.node.clientHeight - this.head.offsetHeight - this.#height;
    if (top < this.node.scrollTop) this.node.scrollTop = top;
    else if (top > this.node.scrollTop + room) this.node.scrollTop = top - room;
    this.draw();
  }

  #open(index) {
    this.#active = index;
    this.draw();
    if (this.#rows[index]) this.onopen(this.#rows[index]);
  }
}

// columnsOf returns the columns to show: the server's default ones or all, and the namespace, which is not a column of
// the server.
export function columnsOf(definitions, { namespaced, wide }) {
  const columns = definitions
    .map((d, index) => ({
      name: d.name,
      description: d.description,
      index,
      priority: d.priority ?? 0,
      live: d.name === 'Age',
      toned: /^(status|phase)$/i.test(d.name),
    }))
    .filter((c) => wide || c.priority === 0);
  if (!namespaced || columns.some((c) => c.name === 'Namespace')) return columns;
  const at = columns[0]?.name.toLowerCase() === 'cluster' ? 1 : 0;
  columns.splice(at, 0, { name: 'Namespace', description: 'The namespace of the object', index: -1 });
  return columns;
}

// cellText returns the text of a cell. Ages are computed here, because those of the server are as of its answer.
export function cellText(column, row, now) {
  if (column.index < 0) return row.namespace;
  if (column.live && row.created) return age((now - row.created) / 1000);
  const value = row.cells[column.index];
  if (value === null || value === undefined) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function tone(text) {
  if (/^(running|active|ready|bound|available|completed?|succeeded|deployed|true)$/i.test(text)) return 'good';
  if (/error|fail|backoff|evicted|unknown|notready|lost|oom|invalid|deadline/i.test(text)) return 'bad';
  return /pending|creating|terminating|init|progress|waiting|released|disabled/i.test(text) ? 'wait' : null;
}
