// The token that the daemon asks for, if it asks for one. It is kept in memory, and for this
// tab alone if somebody wants that: never in the address, never beyond the tab, never in a log.

const KEY = 'mirador.token';

let token = stored();
let asking = null; // done when somebody has given another token
let ask = () => new Promise(() => {});

function stored() {
  try {
    return sessionStorage.getItem(KEY) ?? '';
  } catch {
    return ''; // storage is switched off: the token lasts as long as the page
  }
}

// onAsk sets who asks for a token. It is told whether one was refused, and its promise is
// done once use was called.
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

// forget drops the token wherever it is.
export function forget() {
  use('', false);
}

// another waits for a token in place of one that was refused. Many requests may be
// refused at once; somebody is asked once.
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
