// Where the page is, kept in the part of the address after #: a link to a filtered list
// or to one object can be sent to somebody else, and Back goes back.

// read takes the address apart.
export function read() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  return { view: path === 'objects' ? 'objects' : 'overview', params: Object.fromEntries(new URLSearchParams(query)) };
}

// link is the address of a view.
export function link(view, params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== '') query.set(name, value);
  }
  const text = query.toString();
  return `#/${view === 'overview' ? '' : view}${text ? `?${text}` : ''}`;
}

// go changes the address. With replace, Back does not stop there.
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
