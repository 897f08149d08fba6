// The session of this browser, if users log in at an OIDC issuer. The daemon keeps its tokens, and the browser has a
// cookie that no script can read, so this module only knows what the daemon says about it.

// What the tab showed when it left for the issuer, in the tab's session storage.
const PLACE = 'mirador.place';

const tabs = globalThis.BroadcastChannel ? new BroadcastChannel('mirador.session') : null;

let told = ''; // a problem of a login, which the daemon tells once

// readSession returns what the daemon says: the issuer, the URL where a login begins, whether there is a session, and a
// problem in words. It is empty if users do not log in here.
export async function readSession() {
  let status = {};
  try {
    const response = await fetch('/login/session',
      { cache: 'no-store', credentials: 'same-origin', redirect: 'error' });
    if (response.ok) status = await response.json();
  } catch {
    // the daemon does not answer, which other parts of the page say
  }
  if (status.problem) told = status.problem;
  else if (!status.loggedIn) status.problem = told;
  return status;
}

// hostOf is the name of an issuer for people.
export function hostOf(issuer) {
  try {
    return new URL(issuer).host;
  } catch {
    return issuer;
  }
}

// logIn leaves the page for the issuer.
export function logIn(status) {
  try {
    sessionStorage.setItem(PLACE, location.hash || '#/');
  } catch {
    // storage is switched off: the page opens with its overview
  }
  location.assign(status.begin);
}

// comeBack shows after a login what was shown before, and tells the other tabs.
export function comeBack() {
  try {
    const place = sessionStorage.getItem(PLACE);
    if (place === null) return;
    sessionStorage.removeItem(PLACE);
    if (location.hash === '') history.replaceState(null, '', place);
  } catch {
    return; // see logIn
  }
  tabs?.postMessage('changed');
}

// logOut ends the session.
export async function logOut() {
  const response = await fetch('/login/logout', { method: 'POST', credentials: 'same-origin', redirect: 'error' });
  if (!response.ok) throw new Error(`the daemon answered ${response.status}; try again`);
  tabs?.postMessage('changed');
}

// onOtherTab calls a function when the user has logged in or out in another tab.
export function onOtherTab(run) {
  if (tabs) tabs.onmessage = run;
}
