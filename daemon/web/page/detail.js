// One object as YAML. It is read again when the watch reports a change, and new lines are marked.

import { byId, el, say } from './dom.js';
import { readText } from './api.js';
import { parse, stringify } from './yaml.js';

const MAX_COLOURED = 4000; // lines; longer texts are shown without colours
const AGAIN = 300; // milliseconds from a change to the next read, which then includes later changes

// Detail is the dialog.
export class Detail {
  #target = null;
  #object = null;
  #lines = new Set();
  #stop = new AbortController();
  #timer = 0;

  constructor({ onclose }) {
    this.dialog = byId('detail');
    this.text = byId('detail-yaml');
    this.error = byId('detail-error');
    this.copy = byId('detail-copy');
    this.managed = byId('detail-managed');
    this.managed.addEventListener('change', () => this.#print(false));
    this.copy.addEventListener('click', () => this.#copy());
    this.copy.hidden = !navigator.clipboard;
    byId('detail-close').addEventListener('click', () => this.dialog.close());
    this.dialog.addEventListener('close', () => {
      this.#forget();
      onclose();
    });
    this.dialog.addEventListener('click', (e) => {
      if (e.target === this.dialog) this.dialog.close(); // a click outside of the panel
    });
  }

  // open shows the object at a path.
  open({ key, path, name, place }) {
    if (this.#target?.path === path && this.dialog.open) return;
    this.#forget();
    this.#target = { key, path };
    say(byId('detail-name'), name);
    say(byId('detail-place'), place);
    say(byId('detail-state'), 'reading…');
    this.error.hidden = true;
    this.text.replaceChildren();
    if (!this.dialog.open) this.dialog.showModal();
    this.text.focus(); // so that the arrows scroll it
    this.#read(false);
  }

  // close shuts the dialog if it is open.
  close() {
    if (this.dialog.open) this.dialog.close();
  }

  // changed is called for every change, and ignores those of other objects.
  changed(key, type) {
    if (key !== this.#target?.key) return;
    if (type === 'DELETED') {
      this.#cancel(); // a read would find nothing
      this.error.hidden = true;
      say(byId('detail-state'), 'deleted');
      return;
    }
    this.#timer ||= setTimeout(() => {
      this.#timer = 0;
      this.#read(true);
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
    this.#target = null;
    this.#object = null;
    this.#lines = new Set();
  }

  async #read(again) {
    const signal = this.#stop.signal;
    try {
      const object = parse(await readText(this.#target.path, signal));
      if (signal.aborted) return;
      this.#object = object;
      this.error.hidden = true;
      this.#print(again);
      say(byId('detail-state'), again ? 'just changed' : '');
    } catch (err) {
      if (signal.aborted) return;
      say(byId('detail-state'), '');
      say(this.error, `Reading it failed: ${err.message}`);
      this.error.hidden = false;
    }
  }

  #yaml() {
    const { apiVersion, kind, metadata, ...rest } = this.#object;
    const meta = { ...metadata };
    if (!this.managed.checked) delete meta.managedFields;
    return stringify({ apiVersion, kind, metadata: meta, ...rest });
  }

  #print(compare) {
    if (!this.#object) return;
    const lines = this.#yaml().trimEnd().split('\n');
    if (lines.length > MAX_COLOURED) {
      this.text.textContent = lines.join('\n');
    } else {
      this.text.replaceChildren(...lines.map((line) => coloured(line, compare && !this.#lines.has(line))));
    }
    this.#lines = new Set(lines);
  }

  async #copy() {
    if (!this.#object) return;
    try {
      await navigator.clipboard.writeText(this.#yaml());
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
