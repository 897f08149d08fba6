// What changed: reading it from the daemon, and in words.

import { listChanges } from './api.js';
import { write } from './moment.js';

const LIMIT = 500; // changes of one answer

// readChanges reads what changed between two times, oldest first, in a limited number of answers. complete says whether
// that is everything. A time is a number, or an exact text.
export async function readChanges(path, params, { from, to, most }, signal) {
  const out = { items: [], gaps: [], begins: {}, warnings: [], complete: false };
  let token = '';
  for (let n = 0; n < most; n++) {
    const page = await listChanges(path, {
      ...params,
      from: token ? '' : write(from),
      to: token || to === null ? '' : typeof to === 'string' ? to : write(to),
      limit: LIMIT,
      continue: token,
    }, signal);
    out.items.push(...(page.items ?? []).map(change));
    if (n === 0) Object.assign(out, { gaps: page.gaps ?? [], begins: page.begins ?? {}, warnings: page.warnings });
    token = page.metadata?.continue ?? '';
    if (!token) return { ...out, complete: true };
  }
  return out;
}

// change is a change with only what the page needs.
function change(item) {
  return {
    id: `${item.time} ${item.type} ${item.uid}`,
    time: item.time,
    at: Date.parse(item.time),
    type: item.type,
    cluster: item.cluster,
    namespace: item.namespace ?? '',
    name: item.name,
    version: item.resourceVersion ?? '',
    by: [...new Set((item.by ?? []).map((b) => b.manager))],
    what: inWords(item.changes ?? []),
  };
}

const MOST = 3; // differences in words

// inWords names the fields that changed, the first ones with their values. What was asked for comes before the status.
export function inWords(changes) {
  const rank = ({ path }) => (path.startsWith('/status/') ? 2 : path.startsWith('/metadata/') ? 1 : 0);
  const words = changes.toSorted((a, b) => rank(a) - rank(b)).slice(0, MOST).map(({ op, path, old, new: value }) => {
    const field = path.split('/').slice(1).map((p) => p.replaceAll('~1', '/').replaceAll('~0', '~')).join('.');
    if (op === 'add') return short(value, '') ? `${field} set to ${short(value, '')}` : `${field} added`;
    if (op === 'remove') return `${field} removed`;
    const [was, is] = [short(old, ''), short(value, '')];
    return was && is ? `${field} ${was} → ${is}` : `${field} changed`;
  });
  const more = changes.length - words.length;
  return words.join(', ') + (more > 0 ? ` and ${more} more` : '');
}

// short is a simple value that fits into a line, or another word for it.
function short(value, otherwise) {
  if (value === null || value === undefined || typeof value === 'object') return otherwise;
  const text = String(value);
  return text === '' ? '""' : text.length > 40 || text.includes('\n') ? otherwise : text;
}

// placeOf is where an object is in a view: at /fleet, its cluster is part of its names.
export function placeOf(item, fleet) {
  if (!fleet) return { namespace: item.namespace, name: item.name };
  return item.namespace
    ? { namespace: `${item.cluster}.${item.namespace}`, name: item.name }
    : { namespace: '', name: `${item.cluster}:${item.name}` };
}
