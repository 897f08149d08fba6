// The form that asks for the token, and the button that forgets it.

import { byId, mark, say } from './dom.js';
import { accepts } from './api.js';
import { current, forget, onAsk, use } from './token.js';

// A header can carry these and no others.
const PRINTABLE = /^[\x20-\x7e]+$/;

// setUp wires the form. onask is told when the page waits for a token and when it goes on.
export function setUp({ onask }) {
  const dialog = byId('sign-in');
  const field = byId('sign-in-token');
  const keep = byId('sign-in-keep');
  const error = byId('sign-in-error');
  const submit = byId('sign-in-submit');
  const drop = byId('forget');
  let done = null;

  const complain = (text) => {
    say(error, text);
    error.hidden = text === '';
    mark(field, 'aria-invalid', text ? 'true' : null);
    if (text) field.select();
  };

  onAsk((refused) => {
    complain(refused ? 'The daemon no longer accepts the token that this tab had.' : '');
    drop.hidden = true;
    onask(true);
    dialog.showModal();
    field.focus();
    return new Promise((resolve) => {
      done = resolve;
    });
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
      drop.hidden = false;
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
  // Without a token there is nothing to see: Escape, which a browser lets close it, opens it again.
  dialog.addEventListener('close', () => {
    if (done) dialog.showModal();
  });

  drop.hidden = current() === '';
  drop.addEventListener('click', () => {
    forget();
    location.reload(); // which also ends all streams and drops all that was shown
  });
}
