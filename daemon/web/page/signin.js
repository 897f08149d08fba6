// The form for users that are not logged in: a button that leads to the issuer, where there is one, and the token.

import { byId, mark, say } from './dom.js';
import { accepts } from './api.js';
import { hostOf, logIn, readSession } from './session.js';
import { onAsk, use } from './token.js';

// A header can carry these and no others.
const PRINTABLE = /^[\x20-\x7e]+$/;

// setUp wires the form. onask is told when the page waits for the user and when it goes on.
export function setUp({ onask }) {
  const dialog = byId('sign-in');
  const field = byId('sign-in-token');
  const keep = byId('sign-in-keep');
  const error = byId('sign-in-error');
  const submit = byId('sign-in-submit');
  const begin = byId('sign-in-begin');
  const byToken = byId('sign-in-by-token');
  let done = null;
  let session = {};

  const complain = (text, select = true) => {
    say(error, text);
    error.hidden = text === '';
    mark(field, 'aria-invalid', text && select ? 'true' : null);
    if (text && select) field.select();
  };

  // offer shows the ways to log in that the daemon has.
  const offer = () => {
    const issuer = Boolean(session.issuer);
    say(byId('sign-in-title-text'), issuer ? 'Log in' : 'This daemon asks for a token');
    byId('sign-in-issuer').hidden = !issuer;
    say(byId('sign-in-host'), hostOf(session.issuer ?? ''));
    byToken.open = !issuer;
    byId('sign-in-summary').hidden = !issuer;
    mark(submit, 'class', issuer ? null : 'primary');
    byId('sign-in-end').hidden = !session.endSession;
    mark(byId('sign-in-end-link'), 'href', session.endSession ?? null);
    say(byId('sign-in-end-host'), hostOf(session.issuer ?? ''));
    (issuer ? begin : field).focus();
  };

  onAsk(async (refused) => {
    session = await readSession();
    onask(true);
    dialog.showModal();
    offer();
    const again = refused ? 'The daemon no longer accepts the token that this tab had.' : '';
    complain(session.problem || again, false);
    return new Promise((resolve) => {
      done = resolve;
    });
  });

  begin.addEventListener('click', () => {
    begin.disabled = true;
    logIn(session);
  });
  // A browser may restore the page as it was when the user goes back from the issuer.
  addEventListener('pageshow', () => {
    begin.disabled = false;
  });
  byToken.addEventListener('toggle', () => {
    if (byToken.open && session.issuer) field.focus();
  });

  dialog.querySelector('form').addEventListener('submit', async (event) => {
    event.preventDefault();
    const given = field.value.trim();
    if (!PRINTABLE.test(given)) {
      complain(given ? 'A token is made of plain letters, digits and signs.' : 'Paste the token.');
      return;
    }
    complain('');
    submit.disabled = true;
    say(submit, 'Asking…');
    try {
      if (!(await accepts(given))) {
        complain('The daemon does not accept this token.');
        return;
      }
      use(given, keep.checked);
      field.value = '';
      const resolve = done;
      done = null;
      dialog.close();
      onask(false);
      resolve();
    } catch (err) {
      complain(err.message);
    } finally {
      submit.disabled = false;
      say(submit, 'Open');
    }
  });
  // Without a user there is nothing to see: Escape, which a browser lets close it, opens it again.
  dialog.addEventListener('close', () => {
    if (done) dialog.showModal();
  });
}
