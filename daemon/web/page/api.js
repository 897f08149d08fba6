// The daemon's API: its own /clusters and the Kubernetes API under /fleet and /clusters/{name}. Every request carries
// the token, if there is one, or else the cookie of a session. A request that is refused waits until the user has
// logged in.

import { Report } from './report.js';
import { another, current } from './token.js';

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';

// The maximal length of a line in a stream. No Kubernetes object is longer.
const MAX_LINE = 64 << 20;

// The daemon checks the fleet's state for changes once a second. No line for this many milliseconds means no change.
const CALM = 1500;

// The daemon sends a line at least every ten seconds. After this many milliseconds without one the connection is dead.
const DEAD = 30000;

// A stream lets the browser handle other events after this many milliseconds of parsing.
const SLICE = 8;

// ApiError is the error of a request, with the server's message.
export class ApiError extends Error {
  constructor(message, status, reason, { retryAfter = 0, cause = '' } = {}) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.reason = reason;
    this.retryAfter = retryAfter; // seconds after which to retry, 0 if the server does not say
    this.cause = cause; // the first cause in the server's details, such as NoHistory
  }

  // forbidden: the user lacks a right, which the message names.
  get forbidden() {
    return this.status === 403 && / cannot /.test(this.message);
  }

  // gone: the version or the continue token is too old.
  get gone() {
    return this.status === 410;
  }
}

// fromStatus converts a Kubernetes Status object to an error.
export function fromStatus(status) {
  return new ApiError(status?.message || 'the server gave no reason', status?.code ?? 0, status?.reason ?? '');
}

async function request(path, options) {
  for (;;) {
    const token = current();
    const response = await send(path, token, options);
    if (response.ok) return response;
    if (response.status !== 401) throw await refusal(response);
    response.body?.cancel().catch(() => {});
    await another(token, options.signal);
  }
}

async function send(path, token, { method = 'GET', accept = 'application/json', body, signal }) {
  const headers = { Accept: accept };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (token) headers.Authorization = `Bearer ${token}`;
  try {
    return await fetch(path, {
      method,
      headers,
      signal,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: 'no-store',
      credentials: 'same-origin',
      redirect: 'error', // the token must not be sent to another server
    });
  } catch (err) {
    if (err.name === 'AbortError') throw err;
    throw new ApiError('the daemon does not answer; see whether it is running', 0, 'Unreachable');
  }
}

const SELF = '/fleet/apis/authentication.k8s.io/v1/selfsubjectreviews';
const SELF_REVIEW = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };

// whoAmI returns the user that the daemon takes this page for: username, groups and extra.
export async function whoAmI() {
  const response = await request(SELF, { method: 'POST', body: SELF_REVIEW });
  return (await response.json()).status?.userInfo ?? {};
}

// accepts asks the daemon whether a token is valid. Every user may ask who it is, whatever else it may do.
export async function accepts(token) {
  const response = await send(SELF, token, { method: 'POST', body: SELF_REVIEW });
  response.body?.cancel().catch(() => {});
  if (response.status === 401) return false;
  if (!response.ok) throw new ApiError(`the daemon answered ${response.status}; try again`, response.status, '');
  return true;
}

async function refusal(response) {
  const text = await response.text().catch(() => '');
  let message = `the daemon answered ${response.status} ${response.statusText}`.trim();
  let reason = '';
  let cause = '';
  try {
    const status = JSON.parse(text);
    message = status.message || message;
    reason = status.reason || '';
    cause = status.details?.causes?.[0]?.reason ?? '';
  } catch {
    if (text && text.length < 300) message = text.trim();
  }
  const retryAfter = Number(response.headers.get('Retry-After')) || 0;
  return new ApiError(message, response.status, reason, { retryAfter, cause });
}

// warningsOf returns the texts of a Warning header: which clusters are left out, or may be out of date.
export function warningsOf(header) {
  return [...(header ?? '').matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g)].map(([, text]) => text.replace(/\\(.)/g, '$1'));
}

// documents yields one JSON document per line until the server ends the stream. It pauses regularly, so that a burst of
// lines does not delay user input.
async function* documents(path, options) {
  const response = await request(path, options);
  options.onopen?.();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    let rest = '';
    let began = performance.now();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split('\n');
      rest = lines.pop();
      if (rest.length > MAX_LINE) throw new ApiError('the daemon sent a line that is too long', 0, 'TooLong');
      for (const line of lines) {
        if (line.trim() !== '') yield JSON.parse(line);
        if (performance.now() - began > SLICE) {
          await new Promise((resume) => setTimeout(resume));
          began = performance.now();
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// watchFleet yields the state of all clusters whenever it changes, and about once a second while it does not.
export async function* watchFleet(signal) {
  const report = new Report();
  const end = new AbortController(); // the only way to end a waiting read
  const lines = documents('/clusters?watch=true', { signal: AbortSignal.any([signal, end.signal]) });
  const read = () => {
    const line = lines.next();
    line.catch(() => {}); // the code that awaits it handles the error
    return line;
  };
  try {
    let next = read();
    let doc = null;
    let heard = 0;
    let wait = CALM;
    for (;;) {
      const got = doc ? await within(next, wait) : await next;
      const passed = performance.now() - heard;
      if (got === LATE) {
        wait = 1000;
        if (passed > DEAD) {
          throw new ApiError(`the daemon has sent nothing for ${Math.round(passed / 1000)} seconds`, 0, 'Silent');
        }
        yield report.later(new Date(Date.parse(doc.now) + passed).toISOString());
        continue;
      }
      if (got.done) return;
      doc = report.take(got.value);
      heard = performance.now();
      wait = CALM;
      next = read();
      yield doc;
    }
  } finally {
    end.abort();
  }
}

const LATE = Symbol('late');

// within waits for a promise, but at most for some milliseconds.
async function within(promise, milliseconds) {
  let timer = 0;
  const late = new Promise((resolve) => {
    timer = setTimeout(() => resolve(LATE), milliseconds);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

// join makes the daemon mirror a cluster.
export async function join(name, kubeconfig, context) {
  await request('/clusters', { method: 'POST', body: { name, kubeconfig, context } });
}

// leave makes the daemon stop mirroring a cluster.
export async function leave(name) {
  await request(`/clusters/${encodeURIComponent(name)}`, { method: 'DELETE' });
}

// resourceId is the full name of a resource, as in kubectl: pods.v1, deployments.v1.apps.
export function resourceId(r) {
  return [r.resource, r.version, r.group].filter(Boolean).join('.');
}

// address is the path of a resource or of one of its objects. Without a cluster it is below /fleet.
export function address(cluster, r, namespace, name) {
  const part = encodeURIComponent;
  let path = cluster ? `/clusters/${part(cluster)}` : '/fleet';
  path += r.group ? `/apis/${part(r.group)}/${part(r.version)}` : `/api/${part(r.version)}`;
  if (namespace) path += `/namespaces/${part(namespace)}`;
  path += `/${part(r.resource)}`;
  return name ? `${path}/${part(name)}` : path;
}

// discover returns the resources of the fleet that can be listed, for users that may not see the state of the clusters.
export async function discover() {
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
  const lists = await Promise.all(['/fleet/api', '/fleet/apis'].map(async (path) =>
    (await request(path, { accept })).json()));
  return lists.flatMap(({ items = [] }) => items).flatMap(({ metadata, versions = [] }) =>
    versions.slice(0, 1).flatMap(({ version, resources = [] }) => resources.filter((r) => r.verbs?.includes('list'))
      .map((r) => ({
        group: metadata?.name ?? '', version, resource: r.resource, namespaced: r.scope === 'Namespaced',
      }))));
}

function withQuery(path, params) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== '') query.set(name, value);
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

// listTable reads one page of a resource as a Table, with the server's warnings, and whether the user may see only a
// part.
export async function listTable(path, params, signal) {
  const response = await request(withQuery(path, params), { accept: TABLE, signal });
  const table = await response.json();
  return {
    ...table,
    warnings: warningsOf(response.headers.get('Warning')),
    filtered: response.headers.get('Mirador-Filtered') === 'true',
  };
}

// watchTable yields watch events whose objects are Tables. onopen is called when the watch is open, which may be long
// before the first event.
export function watchTable(path, params, signal, onopen) {
  const query = { ...params, watch: 'true', allowWatchBookmarks: 'true' };
  return documents(withQuery(path, query), { accept: TABLE, signal, onopen });
}

// readObject reads one object, now or at a moment, with the server's warnings. It is JSON text, in which numbers that
// JavaScript cannot represent are still exact.
export async function readObject(path, at, signal) {
  const response = await request(withQuery(path, { at }), { signal });
  return { text: await response.text(), warnings: warningsOf(response.headers.get('Warning')) };
}

// listChanges reads what changed in a resource or, at a path that ends with /history, in an object.
export async function listChanges(path, params, signal) {
  const response = await request(withQuery(path, params), { signal });
  return { ...(await response.json()), warnings: warningsOf(response.headers.get('Warning')) };
}
