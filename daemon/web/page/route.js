// The state of the page in the hash of the URL, so that links to a filtered list or to one object can be shared, and
// the Back button works.

// read parses the hash.
export function read() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  return { view: path === 'objects' ? 'objects' : 'overview', params: Object.fromEntries(new URLSearchParams(query)) };
}

// link returns the hash of a view.
export function link(view, params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== '') query.set(name, value);
  }
  const text = query.toString();
  return `#/${view === 'overview' ? '' : view}${text ? `?${text}` : ''}`;
}

// go changes the hash. With replace, there is no new entry in the browser's history.
export function go(view, params, { replace = false } = {}) {
  const to = link(view, params);
  if (to === location.hash) return;
  if (replace) {
    history.replaceState(null, '', to);
    dispatchEvent(new HashChangeEvent('hashchange'));
  } else {
    location.hash = to;
  }
}
