// Who the user is: the name in the bar, and the groups, how the user was authenticated and a way out below it.

import { byId, el, say, mark } from './dom.js';
import { whoAmI } from './api.js';
import { hostOf, logOut, onOtherTab, readSession } from './session.js';
import { current, forget } from './token.js';

const ADMINISTRATORS = 'mirador:administrators';

// Account fills the button and the popover.
export class Account {
  #session = {};

  constructor() {
    this.button = byId('user');
    this.out = byId('log-out');
    this.error = byId('log-out-error');
    this.out.addEventListener('click', () => this.#leave());
    onOtherTab(() => {
      if (current() === '') location.reload();
    });
  }

  // show asks the daemon who the user is. It waits until the user has logged in.
  async show() {
    try {
      const user = await whoAmI();
      this.#session = await readSession();
      this.#fill(user);
    } catch {
      this.button.hidden = true; // the daemon does not answer, which the rest of the page says
    }
  }

  // hide hides the user while none is logged in.
  hide() {
    this.button.hidden = true;
    byId('account').hidePopover();
  }

  #fill({ username = '', groups = [], extra = {} }) {
    say(byId('user-name'), username);
    mark(this.button, 'title', `${username}\n${groups.join('\n')}`);
    mark(this.button, 'aria-label', `User ${username}`);
    say(byId('account-name'), username);
    say(byId('account-how'), this.#how(username, extra));
    byId('account-groups').replaceChildren(...groups.map((group) => el('li', { text: group })));
    say(byId('account-sees'), groups.includes(ADMINISTRATORS)
      ? 'An administrator of the daemon: sees everything that is mirrored.'
      : 'Sees what the clusters allow this user to see.');
    say(this.out, current() ? 'Forget the token' : 'Log out');
    this.out.hidden = !current() && !this.#session.loggedIn;
    this.button.hidden = false;
  }

  #how(username, extra) {
    const id = extra['authentication.kubernetes.io/credential-id']?.[0] ?? '';
    if (username === 'mirador:local') return 'no credentials, which this daemon does not ask for';
    if (id.startsWith('X509')) return 'a client certificate';
    if (current()) return 'a token in this tab';
    if (this.#session.loggedIn) return `a login at ${hostOf(this.#session.issuer)}`;
    return 'a proxy before the daemon, or a client certificate';
  }

  async #leave() {
    this.error.hidden = true;
    try {
      if (current()) forget();
      else await logOut();
      location.reload(); // which also ends all streams and drops all that was shown
    } catch (err) {
      say(this.error, `Logging out failed: ${err.message}`);
      this.error.hidden = false;
    }
  }
}
