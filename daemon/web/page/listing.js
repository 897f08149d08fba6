// A list that is read page by page and kept up to date by a watch, unless it is one of the past.
//
// All pages are from one snapshot of the server, and the watch begins at its version. So a page may have an object in a
// state that is older than a change the watch has already sent, and never has an object that was created since. Changes
// of objects that are not loaded yet are therefore held back, and replace the row of the page.

import { ApiError, address, fromStatus, listTable, watchTable } from './api.js';
import { visible, whileVisible } from './awake.js';
import { soon } from './dom.js';
import { rowOf } from './row.js';

const PAGE = 100;
const PER_FRAME = 300; // changes applied before the page is drawn again
const MAX_HELD = 20000; // changes to objects that are not loaded, before the list is read again
const FADE = 1500; // milliseconds that a deleted row stays visible

// Listing is one query and its rows. onchange is called at most once per frame; onevent for each change to show.
export class Listing {
  rows = [];
  columns = [];
  namespaced = false;
  loading = false;
  complete = false;
  remaining = null; // how many more the server has, null if it does not say
  error = null;
  notice = '';
  filtered = false; // the user may see only a part
  live = 'off'; // off, on, lost, refused
  warnings = []; // of the first page of a list at a moment

  #query;
  #hooks;
  #byKey = new Map();
  #held = new Map(); // key -> row, or null for deleted
  #pending = new Map(); // key -> {type, row, times}: received and not yet applied
  #fading = new Set();
  #next = '';
  #stop = new AbortController();
  #paused = false;
  #draw;
  #flush;

  constructor(query, hooks) {
    this.#query = query;
    this.#hooks = hooks;
    this.#draw = soon(() => this.#hooks.onchange());
    this.#flush = soon(() => this.#apply());
  }

  // start reads the first page and then watches. It retries if the answer has a Retry-After: after its start, for
  // example, the daemon waits for its clusters.
  async start() {
    const signal = this.#stop.signal;
    let table = await this.#page('');
    while (!table && this.error?.retryAfter > 0 && !signal.aborted) {
      await new Promise((resume) => setTimeout(resume, this.error.retryAfter * 1000));
      if (signal.aborted) return;
      table = await this.#page('');
      if (table) this.error = null;
    }
    if (!table || signal.aborted) return;
    if (this.#query.at) { // the past does not change
      this.warnings = table.warnings;
      this.#draw();
      return;
    }
    if (table.warnings.length > 0) this.notice = `${table.warnings.join('. ')}.`;
    this.#follow(table.metadata?.resourceVersion ?? '', signal);
  }

  // more reads the next page, if there is one and none is being read.
  async more() {
    if (this.loading || this.complete || this.error || !this.#next) return;
    await this.#page(this.#next);
  }

  // retry continues after an error.
  retry() {
    if (!this.#next) return this.restart();
    this.error = null;
    return this.more();
  }

  // stop ends requests and the watch. A stopped listing stays as it is.
  stop() {
    this.#stop.abort();
  }

  // restart reads everything again.
  restart(notice = '') {
    this.#stop.abort();
    this.#stop = new AbortController();
    Object.assign(this,
      { rows: [], complete: false, remaining: null, loading: false, error: null, notice, live: 'off' });
    for (const m of [this.#byKey, this.#held, this.#pending, this.#fading]) m.clear();
    this.#next = '';
    this.#draw();
    return this.start();
  }

  // pause holds changes back, coalesced; resume shows them.
  set paused(yes) {
    this.#paused = yes;
    if (!yes) this.#flush();
  }

  get paused() {
    return this.#paused;
  }

  // waiting is how many changed objects a pause holds back.
  get waiting() {
    return this.#pending.size;
  }

  #params() {
    const { cluster, filter, text, order, at } = this.#query;
    return {
      at,
      labelSelector: filter === 'labels' ? text : '',
      fieldSelector: filter === 'fields' ? text : '',
      where: filter === 'where' ? text : '',
      orderBy: order,
      filtered: cluster ? 'true' : '', // at /fleet it always is
    };
  }

  get #path() {
    return address(this.#query.cluster, this.#query.resource, this.#query.namespace);
  }

  async #page(token) {
    const signal = this.#stop.signal;
    this.loading = true;
    this.#draw();
    try {
      const table = await listTable(this.#path, { ...this.#params(), limit: PAGE, continue: token }, signal);
      if (signal.aborted) return null;
      this.#take(table);
      return table;
    } catch (err) {
      if (signal.aborted) return null;
      if (err.gone && token) {
        this.restart('The list was too old to continue, so it was read again.');
        return null;
      }
      this.error = err;
      return null;
    } finally {
      if (!signal.aborted) {
        this.loading = false;
        this.#draw();
      }
    }
  }

  #take(table) {
    this.filtered = table.filtered ?? false;
    if (table.columnDefinitions?.length) this.columns = table.columnDefinitions;
    this.#next = table.metadata?.continue ?? '';
    this.complete = this.#next === '';
    this.remaining = this.complete ? 0 : (table.metadata?.remainingItemCount ?? null);
    for (const raw of table.rows ?? []) {
      const row = rowOf(raw);
      const held = this.#held.get(row.key);
      this.#held.delete(row.key);
      if (held === null || this.#byKey.has(row.key)) continue;
      this.#push(held ?? row);
    }
    for (const [key, row] of this.#held) {
      if (row && this.#within(row)) {
        this.#held.delete(key);
        this.#insert(row);
      }
    }
  }

  #push(row) {
    this.namespaced ||= row.namespace !== '';
    this.#byKey.set(row.key, row);
    this.rows.push(row);
  }

  // within: the row belongs to the loaded part of the list.
  #within(row) {
    if (this.complete) return true;
    const last = this.rows.at(-1);
    return !this.#query.order && last !== undefined && row.place < last.place;
  }

  #insert(row) {
    this.namespaced ||= row.namespace !== '';
    this.#byKey.set(row.key, row);
    if (this.#query.order) {
      this.rows.unshift(row); // only the server knows its place in the order
      return;
    }
    let low = 0;
    let high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle].place < row.place) low = middle + 1;
      else high = middle;
    }
    this.rows.splice(low, 0, row);
  }

  async #follow(version, signal) {
    const watch = async (until) => {
      const params = { ...this.#params(), orderBy: '', resourceVersion: version };
      for await (const event of watchTable(this.#path, params, until, () => this.#alive('on'))) {
        if (event.type === 'ERROR') throw fromStatus(event.object);
        wait = 500;
        version = this.#receive(event) || version;
      }
    };
    let wait = 500;
    for (; !signal.aborted; wait = Math.min(wait * 2, 10000)) {
      await visible();
      try {
        if (await whileVisible(watch, signal)) continue;
      } catch (err) {
        if (signal.aborted || this.#ended(err)) return;
        this.#alive('lost');
      }
      await new Promise((resume) => setTimeout(resume, wait * (0.75 + Math.random() / 2)));
    }
  }

  // ended handles an error and returns whether the watch has ended for good.
  #ended(err) {
    if (err.gone) {
      this.restart('The server no longer has the changes after this list, so it was read again.');
      return true;
    }
    if (!(err instanceof ApiError) || err.status < 400 || err.status >= 500 || err.status === 429) return false;
    this.notice = `Live updates are off: ${err.message}`;
    this.#alive('refused');
    return true;
  }

  #alive(state) {
    if (this.live === state) return;
    this.live = state;
    this.#draw();
  }

  // receive keeps an event until the next frame and returns its version.
  #receive(event) {
    const rows = event.object?.rows ?? [];
    let version = event.object?.metadata?.resourceVersion;
    for (const raw of rows) {
      const row = rowOf(raw);
      version = row.version || version;
      if (event.type === 'BOOKMARK') continue;
      const before = this.#pending.get(row.key);
      this.#pending.delete(row.key); // to the end: the newest is applied last
      this.#pending.set(row.key, { type: event.type, row, times: (before?.times ?? 0) + 1 });
    }
    if (this.#pending.size + this.#held.size > MAX_HELD) {
      this.restart('More changed than the page can hold, so the list was read again.');
      return version;
    }
    if (this.#pending.size > 0) (this.#paused ? this.#draw : this.#flush)();
    return version;
  }

  #apply() {
    if (this.#paused) return;
    const now = performance.now();
    let left = PER_FRAME;
    for (const [key, change] of this.#pending) {
      if (left-- === 0) break;
      this.#pending.delete(key);
      this.#change(key, change, now);
    }
    this.#sweep(now);
    this.#hooks.onchange();
    if (this.#pending.size > 0) this.#flush();
  }

  #change(key, { type, row, times }, now) {
    const known = this.#byKey.get(key);
    this.#hooks.onevent({ type, row, times, before: known && { ...known }, columns: this.columns });
    if (type === 'DELETED') {
      if (!known) {
        if (!this.complete) this.#held.set(key, null);
        return;
      }
      known.gone = now;
      this.#fading.add(key);
      setTimeout(this.#flush, FADE);
      return;
    }
    row.touched = now;
    if (known) {
      Object.assign(known, row, { gone: 0 });
      this.#fading.delete(key);
    } else if (this.#within(row) || (this.#query.order && type === 'ADDED')) {
      this.#held.delete(key);
      this.#insert(row);
    } else {
      this.#held.set(key, row);
    }
  }

  // sweep removes rows whose time as deleted rows is over.
  #sweep(now) {
    let any = false;
    for (const key of this.#fading) {
      if (now - this.#byKey.get(key).gone < FADE) continue;
      this.#fading.delete(key);
      this.#byKey.delete(key);
      any = true;
    }
    if (any) this.rows = this.rows.filter((row) => this.#byKey.has(row.key));
  }
}
