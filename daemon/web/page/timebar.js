// The control of the moment that is shown: a band that says that it is in the past, and a panel with a timeline.

import { byId, el, mark, say } from './dom.js';
import { listChanges } from './api.js';
import { readChanges } from './changes.js';
import { count, plural } from './format.js';
import { ago, brief, explain, gapText, local, parse, say as sayMoment, spanOf, write } from './moment.js';
import { Timeline } from './timeline.js';

const READING = 'Reading what changed…';
const PAGES = 4; // answers of changes that are read for the marks
const MINUTE = 60000;
const GAPS = 2; // gaps in words
const MOVE_ON = 30000; // milliseconds after which the timeline of the present is read again

// TimeBar calls onmove with the text of a moment, '' for now.
export class TimeBar {
  #at = ''; // as in the URL
  #time = null; // in milliseconds
  #scope = null;
  #open = false;
  #known = null; // {gaps, begins, warnings} of the scope
  #changes = { items: [], complete: true, error: READING };
  #why = null; // why the changes of the scope are not marked, '' if they are, null if that is not known yet
  #span = null;
  #stop = new AbortController();
  #marks = new AbortController();
  #button = null;

  constructor({ onmove, now }) {
    this.onmove = onmove;
    this.now = now;
    this.node = byId('time');
    this.home = this.node.parentElement;
    this.next = this.node.nextElementSibling;
    this.band = byId('past');
    this.panel = byId('time-panel');
    this.input = byId('moment');
    this.length = byId('time-span');
    this.error = byId('moment-error');
    this.note = byId('time-note');
    this.buttons = [byId('time-open'), byId('detail-time')];
    this.timeline = new Timeline({
      now,
      onmove: (time, text) => this.#move(time === null ? '' : (text ?? write(time)), { replace: this.#at !== '' }),
    });
    byId('timeline-place').replaceWith(this.timeline.node);
    for (const button of this.buttons) button.addEventListener('click', () => this.#toggle(button));
    byId('past-back').addEventListener('click', () => this.back());
    byId('moment-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#write();
    });
    byId('change-before').addEventListener('click', () => this.#step(-1));
    byId('change-after').addEventListener('click', () => this.#step(1));
    this.length.addEventListener('change', () => this.#view(true));
    this.panel.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape') return;
      event.preventDefault(); // the panel closes, and not the dialog that it may be in
      event.stopPropagation();
      this.#toggle(this.#button);
      this.#button.focus();
    });
    setInterval(() => this.#open && this.#at === '' && !document.hidden && this.#read(), MOVE_ON);
  }

  // show shows the moment of a view. The scope is what the timeline is about: the path of a list or of an object's
  // history, the parameters of its gaps and those of its changes.
  show(at, time, scope) {
    const moved = at !== this.#at;
    this.#at = at;
    this.#time = time;
    this.band.hidden = at === '';
    for (const button of this.buttons) {
      say(button.querySelector('span'), at === '' ? 'Now' : Number.isNaN(time) ? 'Past' : brief(time, this.now()));
      mark(button, 'data-past', at === '' ? null : 'yes');
    }
    say(byId('past-moment'), at === '' ? '' : Number.isNaN(time) ? at : sayMoment(time, this.now()));
    mark(byId('past-moment'), 'datetime', at || null);
    mark(byId('past-moment'), 'title', at || null);
    this.tick();
    const same = this.#scope && JSON.stringify(this.#scope) === JSON.stringify(scope);
    this.#scope = scope;
    if (!same) {
      this.#known = null;
      this.#span = null;
      this.#why = null;
      this.#changes = { items: [], complete: true, error: READING };
      this.#stop.abort();
      this.#stop = new AbortController();
    }
    if (moved) {
      this.error.hidden = true;
      this.input.value = at;
      this.warn([]);
    }
    if (this.#open && !same) this.#read();
    else if (this.#open && moved) this.#view(false);
  }

  // mayMark says whether the changes of the scope can be marked: '', or why not.
  mayMark(why) {
    if (why === this.#why) return;
    this.#why = why;
    if (this.#open && this.#known) this.#readMarks();
  }

  // tick updates how long ago the moment is.
  tick() {
    say(byId('past-ago'), this.#at === '' || Number.isNaN(this.#time) ? '' : `, ${ago(this.#time, this.now())}`);
  }

  // warn shows the server's warnings about the moment.
  warn(warnings) {
    const list = byId('past-warnings');
    const text = warnings.join('\n');
    if (list.dataset.text === text) return;
    list.dataset.text = text;
    list.replaceChildren(...warnings.map((w) => el('li', { text: `${local(w, this.now())}.` })));
  }

  // moveTo puts the control below a node of a dialog, or back into the page.
  moveTo(node) {
    if (node) node.after(this.node);
    else if (this.node.parentElement !== this.home) this.home.insertBefore(this.node, this.next);
  }

  // back goes to the present.
  back() {
    this.#move('');
  }

  // beginning goes to the first moment that is known of the scope.
  async beginning() {
    const begin = await this.begin();
    if (begin !== null) this.#move(write(Math.ceil(begin / 1000) * 1000));
  }

  // begin returns the first moment that is known of the scope, null if nothing is.
  async begin() {
    try {
      this.#known ??= await this.#gaps(this.#stop.signal);
    } catch {
      return null;
    }
    return this.#begin();
  }

  #begin() {
    const all = Object.values(this.#known?.begins ?? {}).map((b) => Date.parse(b));
    return all.length > 0 ? Math.min(...all) : null;
  }

  #move(text, how) {
    this.onmove(text, how);
  }

  #toggle(button) {
    this.#button = button;
    this.#open = !this.#open;
    this.panel.hidden = !this.#open;
    for (const b of this.buttons) mark(b, 'aria-expanded', this.#open);
    if (!this.#open) return;
    this.input.value = this.#at;
    this.error.hidden = true;
    if (this.#known && this.#span) this.#view(false);
    else this.#read();
  }

  #write() {
    const text = this.input.value.trim();
    const got = text === '' || text === 'now' ? { time: Infinity, text: '' } : parse(text, this.now());
    let wrong = '';
    if (!got) wrong = 'Write a time such as 2026-11-17T10:00:00Z, or how long ago: -15m, -2h, -1d.';
    else if (got.text !== '' && got.time > this.now()) {
      wrong = 'That is in the future. Choose an earlier moment, or leave it empty for now.';
    }
    say(this.error, wrong);
    this.error.hidden = wrong === '';
    mark(this.input, 'aria-invalid', wrong ? 'true' : null);
    if (!wrong) this.#move(got.text);
  }

  #step(direction) {
    const to = this.timeline.step(direction);
    if (to) this.#move(to.time, { replace: this.#at !== '' });
  }

  #gaps(signal) {
    const { path, history } = this.#scope;
    return listChanges(path, { ...history, history: 'gaps' }, signal);
  }

  // read reads what is known of the scope, and then what changed.
  async #read() {
    const { signal } = this.#stop;
    if (!this.#known) {
      mark(this.panel, 'data-state', 'reading');
      say(this.note, 'Reading what is known of the past…');
    }
    try {
      const known = await this.#gaps(signal);
      if (signal.aborted) return;
      this.#known = known;
      this.#view(true);
    } catch (err) {
      if (signal.aborted) return;
      if (err.retryAfter > 0) setTimeout(() => !signal.aborted && this.#read(), err.retryAfter * 1000);
      mark(this.panel, 'data-state', 'none');
      say(this.note, explain(err, { now: this.now() }));
    }
  }

  // view draws a span of time. It is chosen again if the moment is not in it.
  #view(anew) {
    if (!this.#known) return;
    const now = this.now();
    const begin = this.#begin() ?? now;
    const at = Number.isNaN(this.#time) ? null : this.#time;
    const span = this.#span;
    const inside = span && (at === null ? span.to > now - MINUTE : at >= span.from && at <= span.to);
    if (anew || !inside || at === null) {
      this.#span = spanOf({ begin, now, at, length: Number(this.length.value) * MINUTE });
    }
    if (anew || !inside) this.#readMarks();
    else this.#draw();
  }

  async #readMarks() {
    this.#marks.abort();
    this.#marks = new AbortController();
    const { signal } = this.#marks;
    const { path, params } = this.#scope;
    if (this.#why !== '') this.#changes = { items: [], complete: true, error: this.#why ?? READING };
    this.#draw();
    if (this.#why !== '') return;
    const all = AbortSignal.any([signal, this.#stop.signal]);
    try {
      this.#changes = { ...(await readChanges(path, params, { ...this.#span, most: PAGES }, all)), error: '' };
      if (all.aborted) return;
    } catch (err) {
      if (all.aborted) return;
      this.#changes = { items: [], complete: true, error: `What changed is not known: ${err.message}` };
    }
    this.#draw();
  }

  #draw() {
    mark(this.panel, 'data-state', null);
    const at = Number.isNaN(this.#time) ? null : this.#time;
    const { items, complete, error } = this.#changes;
    const until = complete ? Infinity : (items.at(-1)?.at ?? 0);
    this.timeline.show({ span: this.#span, at, ...this.#known, changes: items, until });
    byId('change-before').disabled = !this.timeline.step(-1);
    byId('change-after').disabled = !this.timeline.step(1);
    mark(byId('change-before'), 'title', error || null);
    mark(byId('change-after'), 'title', error || null);
    say(this.note, this.#words());
  }

  // words describe the timeline.
  #words() {
    const now = this.now();
    const { items, complete, error } = this.#changes;
    const begin = this.#begin();
    const gaps = this.#known.gaps.filter((g) => Date.parse(g.from) <= this.#span.to &&
      (!g.to || Date.parse(g.to) >= this.#span.from)).sort((a, b) => Date.parse(a.from) - Date.parse(b.from));
    const out = begin === null ? [] : [`The history begins on ${sayMoment(begin, now)}.`];
    for (const gap of gaps.slice(-GAPS)) out.push(`${gapText(gap, now)}.`);
    if (gaps.length > GAPS) out.push(`And ${plural(gaps.length - GAPS, 'earlier gap')}.`);
    if (error) out.push(error);
    else if (!complete) out.push(`Only the first ${count(items.length)} changes are marked: show a shorter time.`);
    else out.push(`${plural(items.length, 'change')} in this time.`);
    return [...out, ...(this.#known.warnings ?? []).map((w) => `${local(w, now)}.`)].join(' ');
  }
}
