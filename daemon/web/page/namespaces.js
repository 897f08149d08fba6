// The namespaces to choose from. They are read when the stream of the fleet's state shows that they have changed, so
// the picker needs no stream of its own.

import { el, mark } from './dom.js';
import { address, listTable } from './api.js';
import { rowOf } from './row.js';

const RESOURCE = { group: '', version: 'v1', resource: 'namespaces' };
const PAGE = 500;
const MOST = 5000; // namespaces that the picker shows at most
const RETRY = 10000; // milliseconds from a failure to the next try

// Namespaces fills a select. At /fleet a namespace is cluster.namespace.
export class Namespaces {
  #names = [];
  #of = null; // the cluster that the names are of, and the moment
  #seen = ''; // the state of the fleet at which they were read
  #reading = false;
  #notBefore = 0;
  #shown = '';

  constructor(select) {
    this.select = select;
  }

  // show shows the namespaces of a cluster, '' for all, with one chosen, at a moment if at is not empty. For a resource
  // without namespaces there is no choice.
  show(cluster, chosen, namespaced, at = '') {
    if (cluster !== this.#of?.cluster || at !== this.#of.at) {
      if (cluster !== this.#of?.cluster) this.#names = [];
      this.#of = { cluster, at };
      this.#seen = '';
    }
    const names = chosen && !this.#names.includes(chosen) ? [chosen, ...this.#names] : this.#names;
    const all = namespaced ? 'All namespaces' : 'In no namespace';
    const signature = JSON.stringify([all, names, chosen]);
    this.select.disabled = !namespaced;
    if (signature === this.#shown) return;
    this.#shown = signature;
    this.select.replaceChildren(el('option', { value: '', text: all }),
      ...(namespaced ? names.map((name) => el('option', { value: name, text: name })) : []));
    this.select.value = namespaced ? chosen : '';
  }

  // follow reads the names again if a document of the fleet shows that they have changed. It returns whether it did.
  async follow(doc) {
    const of = this.#of;
    const places = of === null ? [] : placesOf(doc, of.cluster);
    const state = of?.at ? of.at : JSON.stringify(places);
    if (of === null || this.#reading || state === this.#seen || performance.now() < this.#notBefore) return false;
    if (!places.some(({ synced }) => synced)) return false; // no namespaces are mirrored yet
    this.#reading = true;
    try {
      const names = await read(of);
      if (of !== this.#of) return false;
      this.#names = names;
      this.#seen = state;
      mark(this.select, 'title', null);
      return true;
    } catch (err) {
      // The names that were read before stay.
      if (of.at && of === this.#of) this.#seen = state; // what is not known of the past stays unknown
      this.#notBefore = performance.now() + RETRY;
      mark(this.select, 'title', `Reading the namespaces failed: ${err.message}`);
      return false;
    } finally {
      this.#reading = false;
    }
  }
}

// placesOf returns a value that changes whenever a namespace was created, changed or deleted.
function placesOf(doc, cluster) {
  return doc.clusters.filter((c) => !cluster || c.name === cluster).map(({ name, resources }) => {
    const mirror = resources?.find((r) => r.group === '' && r.resource === 'namespaces');
    const { epoch, events, objects, synced } = mirror ?? {};
    return { name, epoch, events, objects, synced };
  });
}

async function read({ cluster, at }) {
  const names = [];
  let token = '';
  do {
    const table = await listTable(address(cluster, RESOURCE), {
      at, limit: PAGE, continue: token, filtered: cluster ? 'true' : '',
    });
    for (const raw of table.rows ?? []) names.push(rowOf(raw).name);
    token = table.metadata?.continue ?? '';
  } while (token && names.length < MOST);
  return names;
}

// moved converts a chosen namespace to its name in the view of another cluster.
export function moved(namespace, from, to) {
  if (!namespace || from === to) return namespace;
  const plain = from ? namespace : namespace.slice(namespace.indexOf('.') + 1);
  if (to) return plain;
  return `${from}.${plain}`;
}
