// The object browser: the choice of cluster, namespace, resource and filter, the list, its changes, and one object in
// detail. The whole choice is in the URL.

import { byId, el, say, mark } from './dom.js';
import { address, resourceId } from './api.js';
import { count } from './format.js';
import { go, read } from './route.js';
import { Detail } from './detail.js';
import { Feed } from './feed.js';
import { Grid, columnsOf } from './grid.js';
import { Listing } from './listing.js';
import { Namespaces, moved } from './namespaces.js';

const HINTS = {
  labels: 'app=web, tier in (front, back), !canary',
  where: 'status.phase != "Running"',
  fields: 'spec.nodeName=node-1, status.phase!=Running',
};

// Browser is the objects view.
export class Browser {
  #listing = null;
  #params = {};
  #query = '';
  #choices = '';
  #skew = 0; // the server's clock minus ours
  #doc = null;
  #resources = new Map();
  #mirrors = '';

  constructor() {
    this.cluster = byId('pick-cluster');
    this.namespaces = new Namespaces(byId('pick-namespace'));
    this.resource = byId('pick-resource');
    this.filter = byId('filter-kind');
    this.text = byId('filter-text');
    this.order = byId('pick-order');
    this.wide = byId('wide');
    this.pause = byId('pause');
    this.error = byId('filter-error');
    this.status = byId('list-status');
    this.spoken = byId('list-spoken');
    this.trouble = byId('list-trouble');
    this.more = byId('more');
    this.list = byId('list');
    this.detail = new Detail({ onclose: () => this.#closed() });
    this.feed = new Feed(byId('feed'), { onopen: (row) => this.#open(row) });
    this.grid = new Grid({
      onopen: (row) => this.#open(row),
      onneed: () => this.#listing?.more(),
      now: () => Date.now() + this.#skew,
    });
    byId('grid-place').replaceWith(this.grid.node);
    this.#wire();
  }

  #wire() {
    this.cluster.addEventListener('change', () => {
      const { cluster = '', ns } = this.#params;
      this.#go({ cluster: this.cluster.value, ns: moved(ns, cluster, this.cluster.value) });
    });
    this.namespaces.select.addEventListener('change', () => this.#go({ ns: this.namespaces.select.value }));
    this.resource.addEventListener('change', () => {
      const resource = this.resource.value;
      this.#go(this.#resources.get(resource)?.namespaced ? { resource } : { resource, ns: '' });
    });
    this.order.addEventListener('change', () => this.#go({ order: this.order.value }));
    this.wide.addEventListener('change', () => this.#go({ wide: this.wide.checked ? '1' : '' }));
    this.filter.addEventListener('change', () => {
      this.text.placeholder = HINTS[this.filter.value];
    });
    byId('filter').addEventListener('submit', (event) => {
      event.preventDefault();
      const text = this.text.value.trim();
      this.#go({ filter: text ? this.filter.value : '', text });
    });
    byId('filter-clear').addEventListener('click', () => {
      this.text.value = '';
      this.#go({ filter: '', text: '' });
      this.text.focus();
    });
    this.pause.addEventListener('click', () => {
      this.#listing.paused = !this.#listing.paused;
      this.#draw();
    });
    this.more.addEventListener('click', () => this.#retry());
  }

  #retry() {
    if (this.#listing?.error) this.#listing.retry();
    else this.#listing?.more();
  }

  #go(change) {
    const { namespace, name, ...rest } = this.#params;
    go('objects', { ...rest, ...change });
  }

  #open(row) {
    go('objects', { ...this.#params, namespace: row.served, name: row.name });
  }

  #closed() {
    const { view, params } = read();
    if (view !== 'objects' || !params.name) return; // closed because the URL changed
    delete params.name;
    delete params.namespace;
    go('objects', params);
    this.grid.node.focus({ preventScroll: true });
  }

  // choices updates the clusters and resources to choose from.
  choices(doc) {
    this.#doc = doc;
    this.#skew = Date.parse(doc.now) - Date.now();
    const chosen = this.#params.cluster ?? '';
    const clusters = doc.clusters.map((c) => c.name);
    const resources = new Map((doc.resources ?? []).map((r) => [resourceId(r), r]));
    for (const c of doc.clusters) {
      if (chosen && c.name !== chosen) continue;
      for (const r of c.resources ?? []) resources.set(resourceId(r), r);
    }
    this.#resources = resources;
    this.#pickNamespace();
    if (this.#listing) {
      this.namespaces.follow(doc).then((others) => others && this.#pickNamespace());
      this.#retryOnChange(doc);
    }
    const signature = JSON.stringify([chosen, this.#params.resource, clusters, [...resources.keys()]]);
    if (signature === this.#choices) return;
    this.#choices = signature;
    this.#fillClusters(clusters, chosen);
    this.#fillResources(resources);
  }

  // retryOnChange retries a failed list as soon as the state of its mirrors has changed.
  #retryOnChange(doc) {
    const { cluster, resource } = this.#params;
    const mirrors = JSON.stringify(doc.clusters.filter((c) => !cluster || c.name === cluster).map((c) =>
      [c.name, c.resources?.find((r) => resourceId(r) === (resource ?? 'pods.v1'))?.synced]));
    if (mirrors === this.#mirrors) return;
    this.#mirrors = mirrors;
    if (this.#listing.error) this.#listing.retry();
  }

  #pickNamespace() {
    const { cluster = '', ns = '', resource = 'pods.v1' } = this.#params;
    this.namespaces.show(cluster, ns, this.#resources.get(resource)?.namespaced ?? true);
  }

  #fillClusters(clusters, chosen) {
    const names = chosen && !clusters.includes(chosen) ? [...clusters, chosen] : clusters;
    this.cluster.replaceChildren(el('option', { value: '', text: 'All clusters' }),
      ...names.map((name) => el('option', { value: name, text: name })));
    this.cluster.value = chosen;
  }

  #fillResources(resources) {
    const wanted = this.#params.resource ?? 'pods.v1';
    const groups = new Map();
    for (const [id, r] of resources) {
      const group = r.group || 'core';
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push([id, r]);
    }
    const sorted = [...groups].sort(([a], [b]) => (a === 'core' ? -1 : b === 'core' ? 1 : a < b ? -1 : 1));
    this.resource.replaceChildren(...sorted.map(([group, list]) => {
      const versions = new Set(list.map(([, r]) => r.version));
      const options = list.sort(([a], [b]) => (a < b ? -1 : 1)).map(([id, r]) =>
        el('option', { value: id, text: versions.size > 1 ? `${r.resource} (${r.version})` : r.resource }));
      return el('optgroup', { label: group }, ...options);
    }));
    if (!resources.has(wanted)) this.resource.append(el('option', { value: wanted, text: wanted }));
    this.resource.value = wanted;
  }

  // show shows what the URL selects.
  show(params) {
    this.#params = params;
    if (this.#doc) this.choices(this.#doc);
    const query = {
      cluster: params.cluster ?? '',
      namespace: params.ns ?? '',
      resource: parseId(params.resource ?? 'pods.v1'),
      filter: params.filter ?? '',
      text: params.text ?? '',
      order: params.order ?? '',
    };
    const signature = JSON.stringify(query);
    if (signature !== this.#query || !this.#listing) {
      this.#query = signature;
      this.#begin(query);
    }
    this.wide.checked = params.wide === '1';
    this.#draw();
    if (params.name) this.#detail(query, params);
    else this.detail.close();
  }

  // leave ends the requests of the view.
  leave() {
    this.#listing?.stop();
    this.#listing = null;
    this.#query = '';
    this.detail.close();
  }

  #begin(query) {
    this.#listing?.stop();
    this.feed.clear();
    this.grid.reset();
    this.filter.value = query.filter || this.filter.value || 'labels';
    this.text.value = query.text;
    this.text.placeholder = HINTS[this.filter.value];
    this.order.value = query.order;
    this.#listing = new Listing(query, {
      onchange: () => this.#draw(),
      onevent: (event) => {
        this.feed.note(event);
        this.detail.changed(event.row.key, event.type);
      },
    });
    this.#listing.start();
  }

  #detail(query, { namespace = '', name }) {
    this.detail.open({
      key: `${namespace}/${name}`,
      path: address(query.cluster, query.resource, namespace, name),
      name,
      place: [query.resource.resource, namespace, query.cluster || 'fleet'].filter(Boolean).join(' · '),
    });
  }

  #draw() {
    const list = this.#listing;
    if (!list) return;
    const total = list.remaining === null ? null : list.rows.length + list.remaining;
    const namespaced = list.namespaced && !this.#params.ns;
    this.grid.show(list.rows, columnsOf(list.columns, { namespaced, wide: this.wide.checked }), total);
    this.grid.busy = list.loading && list.rows.length === 0;
    this.feed.flush();
    this.#showStatus(list, total);
    this.#showError(list);
    mark(this.pause, 'aria-pressed', list.paused);
    say(this.pause, list.paused ? `Resume${list.waiting ? ` (${count(list.waiting)})` : ''}` : 'Pause');
    byId('feed-empty').hidden = byId('feed').childElementCount > 0;
  }

  #showStatus(list, total) {
    const parts = [];
    if (list.loading && list.rows.length === 0) parts.push('reading…');
    else if (!list.error || list.rows.length > 0) {
      parts.push(count(list.rows.length) + (list.complete ? '' : total === null ? ' and more' : ` of ${count(total)}`));
    }
    say(this.status, parts.join(' '));
    const live = list.paused ? 'paused' : { on: 'live', lost: 'reconnecting', refused: 'not live', off: '' }[list.live];
    say(byId('list-live'), live);
    mark(byId('list-live'), 'data-live', list.paused ? 'paused' : list.live);
    say(byId('list-notice'), list.notice);
    byId('list-filtered').hidden = !list.filtered || Boolean(list.error);
    if (!list.loading) say(this.spoken, list.error ? '' : `${count(list.rows.length)} rows loaded`);
    this.more.hidden = list.complete && !list.error;
    this.more.disabled = list.loading;
    say(this.more, list.error ? 'Try again' : list.loading ? 'Reading…' : 'More');
  }

  // emptyText explains why there are no rows.
  #emptyText() {
    const { resource, namespace, text } = JSON.parse(this.#query);
    const where = namespace ? ` in ${namespace}` : '';
    const seen = this.#listing?.filtered ? ' that you may see' : '';
    return text ? `No ${resource.resource}${where}${seen} match the filter.`
      : `There are no ${resource.resource}${where}${seen}.`;
  }

  // showError shows the error of a filter beside the filter, and any other error in place of the rows.
  #showError(list) {
    const { error } = list;
    const ofFilter = error && error.status >= 400 && error.status < 500 && !error.forbidden &&
      JSON.parse(this.#query).text !== '';
    say(this.error, ofFilter ? error.message : '');
    this.error.hidden = !ofFilter;
    mark(this.text, 'aria-invalid', ofFilter ? 'true' : null);
    const empty = !error && list.complete && list.rows.length === 0 ? this.#emptyText() : '';
    const why = error?.forbidden
      ? `You may not see this: ${error.message}. An administrator of the cluster can grant the right.` : error?.message;
    say(this.trouble, error && !ofFilter ? why : empty);
    this.trouble.hidden = this.trouble.textContent === '';
    mark(this.trouble, 'data-kind', error && !error.forbidden ? 'error' : 'empty');
    mark(this.list, 'data-empty', list.rows.length === 0 && !list.loading ? 'yes' : null);
  }
}

function parseId(id) {
  const [resource, version = 'v1', ...group] = id.split('.');
  return { resource, version, group: group.join('.') };
}
