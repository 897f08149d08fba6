// The object browser: the choice of cluster, namespace, resource, filter and moment, the list, its changes, and one
// object in detail. The whole choice is in the URL.

import { byId, el, say, mark } from './dom.js';
import { address, resourceId } from './api.js';
import { placeOf, readChanges } from './changes.js';
import { count } from './format.js';
import { explain, parse } from './moment.js';
import { go, read } from './route.js';
import { Detail } from './detail.js';
import { Feed } from './feed.js';
import { Grid, columnsOf } from './grid.js';
import { Listing } from './listing.js';
import { Namespaces, moved } from './namespaces.js';
import { TimeBar } from './timebar.js';

const HINTS = {
  labels: 'app=web, tier in (front, back), !canary',
  where: 'status.phase != "Running"',
  fields: 'spec.nodeName=node-1, status.phase!=Running',
};

// What changed before a moment is read for selections up to this size: the daemon looks at each object.
const MAX_CHANGING = 2000;

const BEFORE = 15 * 60000; // milliseconds before a moment whose changes are shown

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
  #kept = false; // the rows of another moment stay until those of this one are there
  #time = null; // the moment in milliseconds, null for now; NaN if it is malformed
  #before = { state: '', stop: new AbortController() }; // the changes before the moment

  constructor() {
    const now = () => Date.now() + this.#skew;
    this.now = now;
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
    this.why = byId('list-why');
    this.beginning = byId('list-beginning');
    this.more = byId('more');
    this.list = byId('list');
    this.timebar = new TimeBar({ onmove: (at, how) => go('objects', { ...this.#params, at }, how), now });
    this.detail = new Detail({
      onclose: () => this.#closed(),
      ongo: (change, how) => go('objects', { ...this.#params, ...change }, how),
      onwarn: (warnings) => this.timebar.warn(warnings),
      timebar: this.timebar,
      now,
    });
    this.feed = new Feed(byId('feed'), {
      onopen: (row) => this.#open(row),
      onpast: (change) => this.#openPast(change),
    });
    this.grid = new Grid({
      onopen: (row) => this.#open(row),
      onneed: () => this.#listing?.more(),
      now: () => (this.#time === null || Number.isNaN(this.#time) ? now() : this.#time),
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
    this.beginning.addEventListener('click', () => this.timebar.beginning());
  }

  #retry() {
    if (this.#listing?.error) this.#listing.retry();
    else this.#listing?.more();
  }

  #go(change) {
    const { namespace, name, tab, before, after, ...rest } = this.#params;
    go('objects', { ...rest, ...change });
  }

  #open(row) {
    go('objects', { ...this.#params, namespace: row.served, name: row.name });
  }

  // openPast opens the history of an object at one of its changes.
  #openPast(change) {
    go('objects', { ...this.#params, ...placeOf(change, !this.#params.cluster), tab: 'history', after: change.time });
  }

  #closed() {
    const { view, params } = read();
    if (view !== 'objects' || !params.name) return; // closed because the URL changed
    for (const name of ['name', 'namespace', 'tab', 'before', 'after']) delete params[name];
    go('objects', params);
    this.grid.node.focus({ preventScroll: true });
  }

  // choices updates the clusters and resources to choose from.
  choices(doc) {
    this.#doc = doc;
    this.#skew = Date.parse(doc.now) - Date.now();
    this.timebar.tick();
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
    this.namespaces.show(cluster, ns, this.#resources.get(resource)?.namespaced ?? true, this.#params.at ?? '');
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
    const at = params.at ?? '';
    if (at.startsWith('-')) { // a link to it must show the same later
      const got = parse(at, this.now());
      if (got) return go('objects', { ...params, at: got.text }, { replace: true });
    }
    this.#params = params;
    this.#time = at === '' ? null : (parse(at, this.now())?.time ?? NaN);
    if (this.#doc) this.choices(this.#doc);
    const query = {
      cluster: params.cluster ?? '',
      namespace: params.ns ?? '',
      resource: parseId(params.resource ?? 'pods.v1'),
      filter: params.filter ?? '',
      text: params.text ?? '',
      order: params.order ?? '',
      at,
    };
    const signature = JSON.stringify(query);
    if (signature !== this.#query || !this.#listing) {
      const { at: was, ...rest } = this.#listing ? JSON.parse(this.#query) : {};
      this.#kept = JSON.stringify({ ...rest, at }) === signature;
      this.#query = signature;
      this.#begin(query);
    }
    this.wide.checked = params.wide === '1';
    this.timebar.show(at, this.#time, params.name ? ofObject(query, params) : ofList(query));
    this.#draw();
    if (params.name) this.#detail(query, params);
    else this.detail.close();
  }

  // leave ends the requests of the view.
  leave() {
    this.#listing?.stop();
    this.#listing = null;
    this.#query = '';
    this.#before.stop.abort();
    this.detail.close();
  }

  #begin(query) {
    this.#listing?.stop();
    this.feed.clear();
    if (!this.#kept) this.grid.reset();
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

  #detail(query, { namespace = '', name, tab, before, after }) {
    this.detail.open({
      key: `${namespace}/${name}`,
      path: address(query.cluster, query.resource, namespace, name),
      name,
      place: [query.resource.resource, namespace, query.cluster || 'fleet'].filter(Boolean).join(' · '),
      at: query.at,
      tab,
      before,
      after,
    });
  }

  #draw() {
    const list = this.#listing;
    if (!list) return;
    const total = list.remaining === null ? null : list.rows.length + list.remaining;
    const namespaced = list.namespaced && !this.#params.ns;
    // While another moment of the same list is read, the rows stay.
    this.#kept &&= list.rows.length === 0 && !list.error && !list.complete;
    mark(this.list, 'data-kept', this.#kept ? 'yes' : null);
    if (!this.#kept) {
      this.grid.show(list.rows, columnsOf(list.columns, { namespaced, wide: this.wide.checked }), total);
      this.grid.busy = list.loading && list.rows.length === 0;
    }
    this.feed.flush();
    this.#showStatus(list, total);
    this.#showError(list);
    this.#showPast(list, total);
    mark(this.pause, 'aria-pressed', list.paused);
    say(this.pause, list.paused ? `Resume${list.waiting ? ` (${count(list.waiting)})` : ''}` : 'Pause');
    byId('feed-empty').hidden = byId('feed').childElementCount > 0;
  }

  // showPast shows the warnings of a list of the past, and what changed before its moment.
  #showPast(list, total) {
    const past = this.#time !== null;
    this.pause.hidden = past;
    say(byId('feed-title'), past ? 'Before this moment' : 'Just now');
    if (!past) say(byId('feed-empty'), 'Changes show here as they happen.');
    if (past && !this.#params.name) this.timebar.warn(list.warnings);
    if (list.loading || list.error) return;
    const why = this.#whyNoChanges(list, total);
    this.timebar.mayMark(this.#params.name ? '' : why);
    if (past) this.#readBefore(list, why);
  }

  // whyNoChanges says why it is not shown what changed in a list, '' if it is.
  #whyNoChanges(list, total) {
    const { filter, text, namespace } = JSON.parse(this.#query);
    if (filter === 'where' && text) return 'Changes cannot be selected with CEL: use labels to see what changed.';
    const size = total ?? list.rows.length;
    if (size <= MAX_CHANGING || namespace || (filter === 'labels' && text)) return '';
    return `Choose a namespace or labels to see what changed: there are ${count(size)} objects.`;
  }

  async #readBefore(list, why) {
    if (this.#before.list === list || Number.isNaN(this.#time)) return;
    this.#before.stop.abort();
    this.#before = { list, stop: new AbortController() };
    const { signal } = this.#before.stop;
    say(byId('feed-empty'), why || 'Reading what changed…');
    if (why) return;
    const query = JSON.parse(this.#query);
    const { path, params } = ofList(query);
    try {
      const { items } = await readChanges(path, params, { from: this.#time - BEFORE, to: query.at, most: 4 }, signal);
      if (signal.aborted) return;
      this.feed.showPast(items, this.now());
      say(byId('feed-empty'), 'Nothing changed in the 15 minutes before.');
    } catch (err) {
      if (signal.aborted) return;
      say(byId('feed-empty'), `What changed is not known: ${err.message}.`);
    }
    this.#draw();
  }

  #showStatus(list, total) {
    const past = this.#time !== null;
    const parts = [];
    if (list.loading && list.rows.length === 0) parts.push('reading…');
    else if (!list.error || list.rows.length > 0) {
      parts.push(count(list.rows.length) + (list.complete ? '' : total === null ? ' and more' : ` of ${count(total)}`));
    }
    say(this.status, parts.join(' '));
    const live = past ? 'not live: the past' : list.paused ? 'paused'
      : { on: 'live', lost: 'reconnecting', refused: 'not live', off: '' }[list.live];
    say(byId('list-live'), live);
    mark(byId('list-live'), 'data-live', past ? 'past' : list.paused ? 'paused' : list.live);
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
    const past = this.#time !== null;
    const ofMoment = past && error && (error.gone || error.cause !== '' || !(this.#time <= this.now()));
    const ofFilter = error && error.status >= 400 && error.status < 500 && !error.forbidden && !ofMoment &&
      JSON.parse(this.#query).text !== '';
    say(this.error, ofFilter ? error.message : '');
    this.error.hidden = !ofFilter;
    mark(this.text, 'aria-invalid', ofFilter ? 'true' : null);
    const empty = !error && list.complete && list.rows.length === 0 ? this.#emptyText() : '';
    say(this.why, error && !ofFilter ? this.#whyFailed(list, past) : empty);
    this.trouble.hidden = this.why.textContent === '';
    if (ofMoment) this.more.hidden = true; // the answer would be the same
    this.beginning.hidden = !(past && error?.gone && list.beginning);
    mark(this.trouble, 'data-kind', error && !error.forbidden && !ofMoment ? 'error' : 'empty');
    mark(this.list, 'data-empty', list.rows.length === 0 && !list.loading ? 'yes' : null);
  }

  #whyFailed(list, past) {
    const { error } = list;
    if (error.forbidden) {
      return `You may not see this: ${error.message}. An administrator of the cluster can grant the right.`;
    }
    if (!past) return error.message;
    if (error.gone && list.beginning === undefined) {
      list.beginning = null; // until it is known
      this.timebar.begin().then((begin) => {
        list.beginning = begin;
        this.#draw();
      });
    }
    return explain(error, { now: this.now(), beginning: list.beginning });
  }
}

// ofList and ofObject are what a timeline is about: where its gaps are read, and its changes.

function ofList({ cluster, resource, namespace, filter, text }) {
  const filtered = cluster ? 'true' : ''; // at /fleet it always is
  return {
    path: address(cluster, resource, namespace),
    history: { filtered },
    params: {
      filtered,
      history: 'true',
      labelSelector: filter === 'labels' ? text : '',
      fieldSelector: filter === 'fields' ? text : '',
    },
  };
}

function ofObject({ cluster, resource }, { namespace = '', name }) {
  return { path: `${address(cluster, resource, namespace, name)}/history`, history: {}, params: {} };
}

function parseId(id) {
  const [resource, version = 'v1', ...group] = id.split('.');
  return { resource, version, group: group.join('.') };
}
