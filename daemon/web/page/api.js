// The daemon's API: its own /clusters and the Kubernetes API under /fleet and
// /clusters/{name}. The page knows no other address. Every request carries the token, if
// there is one; one that is refused for its token waits until somebody gives another.

import { Report } from './report.js';
import { another, current } from './token.js';

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';

// A line of a stream that is longer than this is no object of Kubernetes.
const MAX_LINE = 64 << 20;

// The daemon looks once a second for changes of the fleet's state: no line for longer means that there are none.
const CALM = 1500;

// A line comes every ten seconds in any case. After this many milliseconds without one the connection is dead.
const DEAD = 30000;

// A stream hands the page back after this many milliseconds of parsing.
const SLICE = 8;

// ApiError is an answer that is not a success, with the words of the server.
export class ApiError extends Error {
  constructor(message, status, reason, retryAfter = 0) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.reason = reason;
    this.retryAfter = retryAfter; // seconds after which the server wants to be asked again, 0 if it does not say
  }

  // gone: what was asked for was there once, and the server has forgotten it.
  get gone() {
    return this.status === 410;
  }
}

// fromStatus makes an error of a Kubernetes Status object.
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
      redirect: 'error', // the token is for this server and no other
    });
  } catch (err) {
    if (err.name === 'AbortError') throw err;
    throw new ApiError('the daemon does not answer; see whether it is running', 0, 'Unreachable');
  }
}

// accepts asks the daemon whether a token is right.
export async function accepts(token) {
  const response = await send('/clusters', token, {});
  response.body?.cancel().catch(() => {});
  if (response.status === 401) return false;
  if (!response.ok) throw new ApiError(`the daemon answered ${response.status}; try again`, response.status, '');
  return true;
}

async function refusal(response) {
  const text = await response.text().catch(() => '');
  let message = `the daemon answered ${response.status} ${response.statusText}`.trim();
  let reason = '';
  try {
    const status = JSON.parse(text);
    message = status.message || message;
    reason = status.reason || '';
  } catch {
    if (text && text.length < 300) message = text.trim();
  }
  return new ApiError(message, response.status, reason, Number(response.headers.get('Retry-After')) || 0);
}

// warningsOf reads what the server warns of: which clusters are left out of an answer, or may be out of date.
export function warningsOf(header) {
  return [...(header ?? '').matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g)].map(([, text]) => text.replace(/\\(.)/g, '$1'));
}

// documents yields one JSON document per line for as long as the server sends.
// Parsing pauses now and then, so that a burst never holds up a click.
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
      if (rest.length > MAX_LINE) throw new ApiError('the daemon sent a line without end', 0, 'TooLong');
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
  const end = new AbortController(); // a read that waits ends by this alone
  const lines = documents('/clusters?watch=true', { signal: AbortSignal.any([signal, end.signal]) });
  const read = () => {
    const line = lines.next();
    line.catch(() => {}); // whoever awaits it hears of a failure
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
        if (passed > DEAD) throw new ApiError(`the daemon has said nothing for ${Math.round(passed / 1000)} seconds`, 0, 'Silent');
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

// within waits for a promise, but no longer than some milliseconds.
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

// join gives the daemon a cluster.
export async function join(name, kubeconfig, context) {
  await request('/clusters', { method: 'POST', body: { name, kubeconfig, context } });
}

// leave takes a cluster from the daemon.
export async function leave(name) {
  await request(`/clusters/${encodeURIComponent(name)}`, { method: 'DELETE' });
}

// resourceId names a resource as kubectl does in full: pods.v1, deployments.v1.apps.
export function resourceId(r) {
  return [r.resource, r.version, r.group].filter(Boolean).join('.');
}

// address is the path of a resource, or of one object of it. Without a cluster it is
// the fleet's.
export function address(cluster, r, namespace, name) {
  const part = encodeURIComponent;
  let path = cluster ? `/clusters/${part(cluster)}` : '/fleet';
  path += r.group ? `/apis/${part(r.group)}/${part(r.version)}` : `/api/${part(r.version)}`;
  if (namespace) path += `/namespaces/${part(namespace)}`;
  path += `/${part(r.resource)}`;
  return name ? `${path}/${part(name)}` : path;
}

function withQuery(path, params) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== '') query.set(name, value);
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

// listTable reads one page of a resource as a Table, with what the server warns of.
export async function listTable(path, params, signal) {
  const response = await request(withQuery(path, params), { accept: TABLE, signal });
  const table = await response.json();
  return { ...table, warnings: warningsOf(response.headers.get('Warning')) };
}

// watchTable yields watch events whose objects are Tables. onopen is called when the server
// has agreed, which may be long before the first event.
export function watchTable(path, params, signal, onopen) {
  return documents(withQuery(path, { ...params, watch: 'true', allowWatchBookmarks: 'true' }), { accept: TABLE, signal, onopen });
}

// readText reads one object as the JSON text that the server sent: numbers that do not
// fit into JavaScript's are still whole in it.
export async function readText(path, signal) {
  const response = await request(path, { signal });
  return response.text();
}
