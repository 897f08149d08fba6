// The token that the daemon requires, if it requires one. It is kept in memory, and in this tab's session storage if
// the user wants that, but never in a URL, another tab or a log.

const KEY = 'mirador.token';

let token = stored();
let asking = null; // resolves when the user has entered another token
let ask = () => new Promise(() => {});

function stored() {
  try {
    return sessionStorage.getItem(KEY) ?? '';
  } catch {
    return ''; // storage is switched off: the token lasts as long as the page
  }
}

// onAsk sets the function that asks the user for a token. Its argument says whether a token was refused, and its
// promise resolves after it has called use.
export function onAsk(run) {
  ask = run;
}

// current is the token that requests carry, '' for none.
export function current() {
  return token;
}

// use makes requests carry a token. With keep, a reload of this tab still has it.
export function use(given, keep) {
  token = given;
  try {
    if (keep) sessionStorage.setItem(KEY, given);
    else sessionStorage.removeItem(KEY);
  } catch {
    // see stored
  }
}

// forget removes the token from memory and storage.
export function forget() {
  use('', false);
}

// another waits for a token that replaces a refused one. Many requests may be refused at once; the user is asked once.
export function another(refused, signal) {
  if (refused !== token) return Promise.resolve(); // there is another already
  asking ??= ask(refused !== '').finally(() => {
    asking = null;
  });
  if (!signal) return asking;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop, { once: true });
    asking.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
