// Connects the parts of the page. The stream of the fleet's state feeds both views; the URL selects the visible one.

import { visible, whileVisible } from './awake.js';
import { byId, say, mark } from './dom.js';
import { discover, watchFleet } from './api.js';
import { clock } from './format.js';
import { read } from './route.js';
import { control } from './theme.js';
import { setUp } from './clusters.js';
import { setUp as setUpSignIn } from './signin.js';
import { comeBack } from './session.js';
import { Account } from './account.js';
import { Overview } from './pipeline.js';
import { Browser } from './browser.js';

const TITLES = { overview: 'Overview', objects: 'Objects' };

let latest = null;

const dialogs = setUp({ onchange: (text) => say(byId('spoken'), text) });
const overview = new Overview(byId('overview'), { onjoin: dialogs.join, onleave: dialogs.leave });
const browser = new Browser();
const account = new Account();
setUpSignIn({
  onask: (waits) => {
    connected(false, waits ? 'not logged in' : 'connecting');
    if (waits) account.hide();
    else account.show();
  },
});

function route() {
  const { view, params } = read();
  for (const name of Object.keys(TITLES)) {
    byId(name).hidden = name !== view;
    mark(byId(`to-${name}`), 'aria-current', name === view ? 'page' : null);
  }
  document.title = `${TITLES[view]} · Mirador`;
  if (view === 'objects') {
    browser.show(params);
  } else {
    browser.leave();
    if (latest) overview.show(latest);
  }
}

function connected(yes, text, trouble = '') {
  mark(byId('connection'), 'data-on', yes ? 'yes' : 'no');
  say(byId('connection'), text);
  const known = latest ? ` This page shows the state of ${clock(new Date(latest.now))}.` : '';
  say(byId('lost'), trouble ? `No connection to the daemon: ${trouble}. Retrying.${known}` : '');
  byId('lost').hidden = !trouble;
}

function take(doc) {
  latest = doc;
  overview.take(doc);
  browser.choices(doc);
  if (read().view === 'overview') overview.show(doc);
  connected(true, clock(new Date(doc.now)));
}

// refused says which right is missing. The objects can be seen all the same.
async function refused(err) {
  connected(false, 'no overview');
  overview.refuse(err.message);
  const resources = await discover().catch(() => []); // the list of objects has the error, too
  if (!latest) browser.choices({ now: new Date().toISOString(), clusters: [], resources });
}

// follow keeps the stream open while the page is visible.
async function follow() {
  let wait = 500;
  const stream = async (until) => {
    for await (const doc of watchFleet(until)) {
      wait = 500;
      take(doc);
    }
  };
  for (;; wait = Math.min(wait * 2, 10000)) {
    await visible();
    try {
      if (await whileVisible(stream)) continue;
      connected(false, 'reconnecting');
    } catch (err) {
      if (err.forbidden) {
        await refused(err);
        wait = 10000;
      } else {
        connected(false, 'no connection', err.message);
      }
    }
    await new Promise((resume) => setTimeout(resume, wait * (0.75 + Math.random() / 2)));
  }
}

control(byId('theme'));
byId('join-open').addEventListener('click', dialogs.join);
// A skip link with its own hash would change the part of the URL that selects the view.
byId('skip').addEventListener('click', (event) => {
  event.preventDefault();
  byId('main').focus();
});
addEventListener('hashchange', route);
comeBack();
route();
follow();
account.show();
