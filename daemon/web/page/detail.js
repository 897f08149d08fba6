// One object: as YAML, now or at a moment, and its history. The YAML of now is read again when the watch reports a
// change. New lines are marked.

import { byId, el, mark, say } from './dom.js';
import { readObject } from './api.js';
import { explain } from './moment.js';
import { Versions } from './versions.js';
import { parse, stringify } from './yaml.js';

const MAX_COLOURED = 4000; // lines; longer texts are shown without colours
const AGAIN = 300; // milliseconds from a change to the next read, which then includes later changes

// Detail is the dialog. onwarn is called with the server's warnings about the moment, ongo with changes of the URL.
export class Detail {
  #target = null;
  #object = null;
  #lines = new Set();
  #stop = new AbortController();
  #timer = 0;

  constructor({ onclose, ongo, onwarn, timebar, now }) {
    this.dialog = byId('detail');
    this.text = byId('detail-yaml');
    this.error = byId('detail-error');
    this.copy = byId('detail-copy');
    this.managed = byId('detail-managed');
    this.tabs = { yaml: byId('detail-tab-yaml'), history: byId('detail-tab-history') };
    this.panes = { yaml: this.text, history: byId('detail-history') };
    this.onwarn = onwarn;
    this.timebar = timebar;
    this.now = now;
    this.versions = new Versions({
      onpick: (before, after) => ongo({ before, after }, { replace: true }),
      toText: (object) => this.#yaml(object),
      now,
    });
    this.managed.addEventListener('change', () => {
      this.#print(false);
      this.versions.print();
    });
    this.copy.addEventListener('click', () => this.#copy());
    this.copy.hidden = !navigator.clipboard;
    this.tabs.yaml.addEventListener('click', () => ongo({ tab: '', before: '', after: '' }));
    this.tabs.history.addEventListener('click', () => ongo({ tab: 'history' }));
    byId('detail-close').addEventListener('click', () => this.dialog.close());
    this.dialog.addEventListener('close', () => {
      this.#forget();
      this.timebar?.moveTo(null);
      onclose();
    });
    this.dialog.addEventListener('click', (e) => {
      if (e.target === this.dialog) this.dialog.close(); // a click outside of the panel
    });
  }

  // open shows the object at a path, at a moment if at is not empty.
  open({ key, path, name, place, at = '', tab = '', before = '', after = '' }) {
    const was = this.dialog.open ? this.#target : null;
    const same = was?.path === path;
    const read = !same || was.at !== at;
    if (!same) this.#forget();
    else if (read) this.#cancel();
    this.#target = { key, path, at };
    this.dialog.dataset.tab = tab === 'history' ? 'history' : 'yaml';
    for (const [id, button] of Object.entries(this.tabs)) {
      mark(button, 'aria-pressed', id === this.dialog.dataset.tab);
      this.panes[id].hidden = id !== this.dialog.dataset.tab;
    }
    say(byId('detail-name'), name);
    say(byId('detail-place'), place);
    if (!this.dialog.open) {
      this.timebar?.moveTo(byId('detail-head'));
      this.dialog.showModal();
      if (tab === '') this.text.focus(); // so that the arrows scroll it
    }
    if (read) {
      say(byId('detail-state'), 'reading…');
      this.error.hidden = true;
      if (!same) this.text.replaceChildren();
      this.#read(same);
    }
    if (tab === 'history') this.versions.show({ path, at, before, after });
    else this.versions.hide();
  }

  // close shuts the dialog if it is open.
  close() {
    if (this.dialog.open) this.dialog.close();
  }

  // changed is called for every change, and ignores those of other objects.
  changed(key, type) {
    if (key !== this.#target?.key || this.#target.at) return;
    if (type === 'DELETED') {
      this.#cancel(); // a read would find nothing
      this.error.hidden = true;
      say(byId('detail-state'), 'deleted');
      return;
    }
    this.#timer ||= setTimeout(() => {
      this.#timer = 0;
      this.#read(true);
      if (this.dialog.dataset.tab === 'history') this.versions.renew();
    }, AGAIN);
  }

  // cancel cancels the current read and the scheduled one.
  #cancel() {
    this.#stop.abort();
    this.#stop = new AbortController();
    clearTimeout(this.#timer);
    this.#timer = 0;
  }

  #forget() {
    this.#cancel();
    this.versions.hide();
    this.#target = null;
    this.#object = null;
    this.#lines = new Set();
  }

  async #read(again) {
    const signal = this.#stop.signal;
    const { path, at } = this.#target;
    try {
      const { text, warnings } = await readObject(path, at, signal);
      const object = parse(text);
      if (signal.aborted) return;
      this.#object = object;
      this.error.hidden = true;
      this.#print(again);
      this.#warn(warnings);
      say(byId('detail-state'), again && !at ? 'just changed' : '');
    } catch (err) {
      if (signal.aborted) return;
      say(byId('detail-state'), '');
      this.#warn([]);
      this.#refuse(err, at);
      if (err.retryAfter > 0) setTimeout(() => !signal.aborted && this.#read(again), err.retryAfter * 1000);
    }
  }

  // refuse shows why there is no object. What was there before it is not shown as if it were that of the moment.
  #refuse(err, at) {
    this.#object = null;
    this.#lines = new Set();
    this.text.replaceChildren();
    const now = err.status === 404 ? 'It does not exist now. Its history may have what it was.'
      : `Reading it failed: ${err.message}`;
    say(this.error, at ? explain(err, { now: this.now(), detail: true }) : now);
    this.error.hidden = false;
  }

  // warn shows the server's warnings, those about the past in the band.
  #warn(warnings) {
    const { at } = this.#target;
    if (at) this.onwarn(warnings);
    say(byId('detail-warning'), at ? '' : warnings.map((w) => `${w}.`).join(' '));
    byId('detail-warning').hidden = at !== '' || warnings.length === 0;
  }

  #yaml(object) {
    const { apiVersion, kind, metadata, ...rest } = object;
    const meta = { ...metadata };
    if (!this.managed.checked) delete meta.managedFields;
    return stringify({ apiVersion, kind, metadata: meta, ...rest });
  }

  #print(compare) {
    if (!this.#object) return;
    const lines = this.#yaml(this.#object).trimEnd().split('\n');
    if (lines.length > MAX_COLOURED) {
      this.text.textContent = lines.join('\n');
    } else {
      const marks = compare && this.#lines.size > 0;
      this.text.replaceChildren(...lines.map((line) => coloured(line, marks && !this.#lines.has(line))));
    }
    this.#lines = new Set(lines);
  }

  async #copy() {
    if (!this.#object) return;
    try {
      await navigator.clipboard.writeText(this.#yaml(this.#object));
      say(this.copy, 'Copied');
    } catch {
      say(this.copy, 'Not allowed');
    }
    setTimeout(() => say(this.copy, 'Copy'), 1500);
  }
}

// coloured marks keys and values in a line. It may be wrong inside a block of text, where a line can look like a key.
function coloured(line, fresh) {
  const node = el('span', { class: fresh ? 'line fresh' : 'line' });
  const parts = /^(\s*(?:- )*)((?:"(?:[^"\\]|\\.)*"|[^\s"'#][^:]*?):)(\s.*)?$/.exec(line);
  if (!parts) {
    node.append(`${line}\n`);
    return node;
  }
  const [, indent, key, value = ''] = parts;
  node.append(indent, el('span', { class: 'key', text: key }));
  if (value) node.append(el('span', { class: kindOf(value.trim()), text: value }));
  node.append('\n');
  return node;
}

function kindOf(value) {
  if (/^(?:true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)$/.test(value)) return 'literal';
  return 'value';
}
