// Which namespaces there are to choose from. They are read when the stream of the fleet's
// state says that some came or went, so the picker costs no stream of its own.

import { el, mark } from './dom.js';
import { address, listTable } from './api.js';
import { rowOf } from './row.js';

const RESOURCE = { group: '', version: 'v1', resource: 'namespaces' };
const PAGE = 500;
const MOST = 5000; // more than anybody scrolls through
const PATIENCE = 10000; // milliseconds from a failure to the next try

// Namespaces fills a select. In the view of all clusters a namespace is cluster.namespace.
export class Namespaces {
  #names = [];
  #of = null; // the cluster that the names are of
  #seen = ''; // the state of the fleet at which they were read
  #reading = false;
  #notBefore = 0;
  #shown = '';

  constructor(select) {
    this.select = select;
  }

  // show makes the select one for a cluster, '' for all, with a namespace chosen. A resource
  // that is in no namespace leaves nothing to choose.
  show(cluster, chosen, namespaced) {
    if (cluster !== this.#of) {
      this.#of = cluster;
      this.#names = [];
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

  // follow reads the names again if a document of the fleet says that they are others. It
  // gives back whether they were.
  async follow(doc) {
    const cluster = this.#of;
    const places = placesOf(doc, cluster);
    const state = JSON.stringify(places);
    if (cluster === null || this.#reading || state === this.#seen || performance.now() < this.#notBefore) return false;
    if (!places.some(({ synced }) => synced)) return false; // nothing is mirrored yet that could be asked for
    this.#reading = true;
    try {
      const names = await read(cluster);
      if (cluster !== this.#of) return false;
      this.#names = names;
      this.#seen = state;
      mark(this.select, 'title', null);
      return true;
    } catch (err) {
      // What was read before still stands.
      this.#notBefore = performance.now() + PATIENCE;
      mark(this.select, 'title', `Reading the namespaces failed: ${err.message}`);
      return false;
    } finally {
      this.#reading = false;
    }
  }
}

// placesOf changes whenever a namespace came, changed or went.
function placesOf(doc, cluster) {
  return doc.clusters.filter((c) => !cluster || c.name === cluster).map(({ name, resources }) => {
    const { epoch, events, objects, synced } = resources?.find((r) => r.group === '' && r.resource === 'namespaces') ?? {};
    return { name, epoch, events, objects, synced };
  });
}

async function read(cluster) {
  const names = [];
  let token = '';
  do {
    const table = await listTable(address(cluster, RESOURCE), { limit: PAGE, continue: token });
    for (const raw of table.rows ?? []) names.push(rowOf(raw).name);
    token = table.metadata?.continue ?? '';
  } while (token && names.length < MOST);
  return names;
}

// moved is a chosen namespace as the view of another cluster names it.
export function moved(namespace, from, to) {
  if (!namespace || from === to) return namespace;
  const plain = from ? namespace : namespace.slice(namespace.indexOf('.') + 1);
  if (to) return plain;
  return `${from}.${plain}`;
}
