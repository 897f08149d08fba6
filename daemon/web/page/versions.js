// The history of one object: its versions with the gaps between them, and the differences of any two, side by side.

import { byId, el, mark, say } from './dom.js';
import { readObject } from './api.js';
import { readChanges } from './changes.js';
import { parts, rows, runs } from './diff.js';
import { ago, brief, exact, explain, gapText, say as sayMoment } from './moment.js';
import { parse } from './yaml.js';

const HOUR = 3600000;
const REACH = [HOUR, 6 * HOUR, 36 * HOUR, Infinity]; // how far back each further reading goes
const ENOUGH = 20; // versions with which a reading is content
const PAGES = 20; // answers of one reading
const MAX_LINES = 20000; // lines of the differences that are drawn

const WORDS = { Added: 'added', Updated: 'changed', Deleted: 'deleted' };

// Versions fills its part of the detail. onpick is called with the times of two versions to compare.
export class Versions {
  #target = null;
  #items = []; // newest first
  #seconds = new Map(); // how many versions are of a second
  #gaps = [];
  #from = null; // what is read goes back to this time
  #reach = 0;
  #begin = null;
  #ended = false; // everything is read
  #pair = ['', '']; // ids of the versions that are compared
  #texts = new Map(); // id -> lines
  #stop = new AbortController();
  #compare = new AbortController();

  constructor({ onpick, toText, now }) {
    this.onpick = onpick;
    this.toText = toText;
    this.now = now;
    this.list = byId('versions');
    this.more = byId('versions-more');
    this.state = byId('versions-state');
    this.diff = byId('diff');
    this.more.addEventListener('click', () => this.#read());
  }

  // show shows the history of the object at a path, and compares two versions: those with these times, or the one that
  // is shown and the one before it.
  show({ path, at, before, after }) {
    const same = this.#target?.path === path;
    this.#target = { path, at, before, after };
    if (!same) {
      this.#forget();
      this.#read();
      return;
    }
    this.#draw();
    this.#choose();
  }

  // hide ends the reading.
  hide() {
    this.#forget();
    this.#target = null;
  }

  // renew reads the history again, after a change.
  renew() {
    if (!this.#target) return;
    this.#forget(true);
    this.#read();
  }

  // print prints the differences again, after the conversion to text has changed.
  print() {
    this.#texts.clear();
    if (this.#target && this.#items.length > 0) this.#show();
  }

  #forget(keep = false) {
    for (const s of [this.#stop, this.#compare]) s.abort();
    this.#stop = new AbortController();
    this.#items = [];
    this.#seconds.clear();
    this.#gaps = [];
    this.#from = null;
    this.#reach = 0;
    this.#begin = null;
    this.#ended = false;
    this.#texts.clear();
    if (keep) return; // until the new ones are there
    this.#pair = ['', ''];
    this.list.replaceChildren();
    this.diff.replaceChildren();
    this.more.hidden = true;
  }

  // read reads the newest versions, or those before the ones that are known: further back each time, until there are
  // enough.
  async #read() {
    const { signal } = this.#stop;
    const wanted = this.#items.length + ENOUGH;
    this.more.disabled = true;
    if (this.list.childElementCount === 0) say(this.state, 'reading…'); // a newer version comes without a word
    try {
      do {
        const to = this.#from;
        const reach = REACH[Math.min(this.#reach++, REACH.length - 1)];
        const from = Number.isFinite(reach) ? (to ?? this.now()) - reach : 0;
        const got = await readChanges(`${this.#target.path}/history`, {}, { from, to, most: PAGES }, signal);
        if (signal.aborted) return;
        this.#take(got, from);
      } while (this.#items.length < wanted && !this.#ended);
      say(this.state, this.#items.length === 0 ? 'Nothing is known of it.' : '');
      this.#draw();
      this.#choose();
    } catch (err) {
      if (signal.aborted) return;
      const why = explain(err, { now: this.now() });
      say(this.state, err.status === 404 ? 'The history has nothing of this object.' : why);
      if (err.retryAfter > 0) setTimeout(() => !signal.aborted && this.#read(), err.retryAfter * 1000);
    }
    this.more.disabled = false;
  }

  #take({ items, gaps, begins, complete }, from) {
    const known = new Set(this.#items.map((c) => c.id));
    const further = items.filter((c) => !known.has(c.id)).reverse();
    this.#items.push(...further);
    for (const { at } of further) {
      const second = Math.floor(at / 1000);
      this.#seconds.set(second, (this.#seconds.get(second) ?? 0) + 1);
    }
    const seen = new Set(this.#gaps.map((g) => g.from));
    this.#gaps.push(...gaps.filter((g) => !seen.has(g.from)));
    const begin = Math.min(...Object.values(begins).map((b) => Date.parse(b)));
    this.#begin = Number.isFinite(begin) ? begin : null;
    this.#from = from;
    this.#ended = from <= (this.#begin ?? 0) || from === 0;
    this.unread = !complete;
  }

  // draw draws the list: versions, and gaps between them.
  #draw() {
    const now = this.now();
    const shown = this.#shown();
    const entries = [...this.#items.map((c) => ({ at: c.at, item: c })),
      ...this.#gaps.map((g) => ({ at: Date.parse(g.from), gap: g }))].sort((a, b) => b.at - a.at);
    this.list.replaceChildren(...entries.map(({ item, gap }) => (item ? this.#item(item, item === shown, now)
      : el('li', { class: 'version-gap', text: `${gapText(gap, now)}: changes in this time may be missing.` }))));
    if (this.#ended && this.#begin !== null) {
      const text = `The history begins on ${sayMoment(this.#begin, now)}.`;
      this.list.append(el('li', { class: 'version-begin', text }));
    }
    this.more.hidden = this.#ended;
    if (this.unread) say(this.state, 'It changed too often: the newest of its changes are not shown.');
    this.#mark();
  }

  // shown is the version of the moment that the page shows.
  #shown() {
    const at = this.#target.at ? Date.parse(this.#target.at) : Infinity;
    return this.#items.find((c) => c.at <= at);
  }

  // time is the time of a version, with milliseconds if another version has the same second.
  #time(item, now) {
    return this.#seconds.get(Math.floor(item.at / 1000)) === 1 ? brief(item.at, now) : exact(item.at, now);
  }

  #item(item, shown, now) {
    const first = item.type === 'Added' && item.at === this.#begin;
    const pick = (side, name) => el('input', {
      type: 'radio',
      name: `version-${side}`,
      value: item.id,
      'aria-label': `${name} ${this.#time(item, now)}`,
      onchange: () => this.#pick(side, item.id),
    });
    return el('li', { class: 'version', 'data-id': item.id, 'data-type': item.type },
      pick('before', 'Compare'), pick('after', 'with'),
      el('button', {
        type: 'button',
        class: 'version-time',
        title: `${item.time}: compare it with the version before it`,
        text: this.#time(item, now),
        onclick: () => this.#pickOne(item.id),
      }),
      el('span', { class: 'version-type', text: WORDS[item.type] ?? item.type }),
      el('span', { class: 'version-by', text: item.by.join(', ') }),
      el('span', { class: 'version-what', text: first ? 'was there when the history began' : item.what }),
      ...(shown ? [el('span', { class: 'version-shown', text: this.#target.at ? 'shown' : 'now' })] : []));
  }

  #pick(side, id) {
    const [before, after] = this.#pair;
    this.#pair = side === 'before' ? [id, after] : [before, id];
    this.#picked();
  }

  #pickOne(id) {
    this.#pair = [this.#before(id), id];
    this.#picked();
  }

  #picked() {
    const [before, after] = this.#pair.map((id) => this.#items.find((c) => c.id === id)?.time ?? '');
    this.onpick(before, after);
  }

  // before returns the id of the version before another one, '' if there is none.
  #before(id) {
    return this.#items[this.#items.findIndex((c) => c.id === id) + 1]?.id ?? '';
  }

  // choose sets the pair to the times in the URL, or to the version that is shown and the one before it.
  #choose() {
    if (this.#items.length === 0) return;
    const at = (time) => (time ? this.#items.find((c) => c.time === time)?.id : undefined);
    const after = at(this.#target.after) ?? (this.#shown() ?? this.#items.at(-1)).id;
    this.#pair = [at(this.#target.before) ?? this.#before(after), after];
    this.#mark();
    this.#show();
  }

  #mark() {
    for (const row of this.list.querySelectorAll('.version')) {
      const [before, after] = row.querySelectorAll('input');
      before.checked = row.dataset.id === this.#pair[0];
      after.checked = row.dataset.id === this.#pair[1];
      mark(row, 'data-side', before.checked ? 'before' : after.checked ? 'after' : null);
    }
  }

  // show reads the two versions and draws their differences.
  async #show() {
    this.#compare.abort();
    this.#compare = new AbortController();
    const { signal } = this.#compare;
    const pair = this.#pair.map((id) => this.#items.find((c) => c.id === id));
    try {
      const [before, after] = await Promise.all(pair.map((item) => this.#lines(item, signal)));
      if (!signal.aborted) this.#print(pair, before, after);
    } catch (err) {
      if (signal.aborted) return;
      this.diff.replaceChildren(el('p', { class: 'complaint', text: explain(err, { now: this.now() }) }));
      if (err.retryAfter > 0) setTimeout(() => !signal.aborted && this.#show(), err.retryAfter * 1000);
    }
  }

  // lines returns a version as lines of YAML. There is nothing of a version that does not exist.
  async #lines(item, signal) {
    if (!item || item.type === 'Deleted') return [];
    if (!this.#texts.has(item.id)) {
      const { text } = await readObject(this.#target.path, item.time, signal);
      const object = parse(text);
      delete object.metadata?.resourceVersion; // it is another one in each version
      delete object.metadata?.annotations?.['mirador.dev/resource-version']; // the same, at /fleet
      this.#texts.set(item.id, this.toText(object).trimEnd().split('\n'));
    }
    return this.#texts.get(item.id);
  }

  #print([a, b], before, after) {
    const now = this.now();
    const head = (item, otherwise) => el('div', { class: 'diff-head' },
      el('strong', { text: item ? this.#time(item, now) : otherwise }),
      el('span', { text: item ? [WORDS[item.type], item.version && `version ${item.version}`, ago(item.at, now)]
        .filter(Boolean).join(' · ') : '' }));
    const all = runs(before, after);
    const drawn = rows(all).slice(0, MAX_LINES);
    const equal = all.every((run) => run.same);
    this.diff.replaceChildren(
      el('div', { class: 'diff-row diff-top' }, head(a, 'nothing is known before'), head(b, 'nothing')),
      ...(equal ? [el('p', { class: 'diff-equal', text: 'Both are the same.' })] : []),
      ...drawn.map((row) => (row.fold ? foldOf(row.fold) : rowOf(row))));
  }
}

function foldOf(lines) {
  const text = `${lines.length} unchanged lines`;
  const button = el('button', { type: 'button', class: 'diff-fold', text });
  button.addEventListener('click', () => {
    const opened = lines.map((line) => rowOf({ before: line, after: line, same: true }));
    button.replaceWith(...opened);
  });
  return button;
}

// rowOf is a line of both versions. What differs within a line is marked.
function rowOf({ before, after, same }) {
  const cut = !same && before !== null && after !== null ? parts(before, after) : null;
  const side = (name, text, pieces) => {
    const cell = el('div', { class: 'diff-cell', 'data-side': same ? null : text === null ? 'none' : name });
    if (!same && text !== null) cell.append(el('span', { class: 'unseen', text: `${name}: ` }));
    if (pieces && (pieces[0].trim() || pieces[2].trim())) {
      cell.append(pieces[0], el('mark', { text: pieces[1] }), pieces[2]);
    } else {
      cell.append(text ?? '');
    }
    return cell;
  };
  return el('div', { class: 'diff-row', 'data-same': same ? 'yes' : null }, side('before', before, cut?.[0]),
    side('after', after, cut?.[1]));
}
