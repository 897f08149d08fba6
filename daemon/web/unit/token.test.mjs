// Run in Chromium by make web-test, or with: node --test daemon/web/unit
// The token: who carries it, who waits for it, and where it is never found.

import test from 'node:test';
import assert from 'node:assert/strict';
import { accepts, leave, listTable } from '../page/api.js';
import { current, forget, onAsk, use } from '../page/token.js';

// serve replaces fetch by a daemon that wants a token, and notes what each request carried.
function serve(wanted) {
  const seen = [];
  globalThis.fetch = async (url, { headers, method }) => {
    seen.push({ url: String(url), method, auth: headers.Authorization ?? '' });
    const ok = headers.Authorization === `Bearer ${wanted}`;
    return new Response(JSON.stringify(ok ? { rows: [] } : { kind: 'Status', message: 'a valid token is needed' }),
      { status: ok ? 200 : 401 });
  };
  return seen;
}

// person answers when asked, and notes how often and with which words.
function person(token) {
  const asked = [];
  onAsk(async (refused) => {
    asked.push(refused);
    await new Promise((resume) => setTimeout(resume, 5));
    use(token, false);
  });
  return asked;
}

test('refused requests wait for a token and are sent again', async () => {
  forget();
  const seen = serve('right');
  const asked = person('right');
  await Promise.all([listTable('/a', {}), listTable('/b', {}), leave('eu')]);
  assert.deepEqual(asked, [false], 'the user is asked once for all waiting requests');
  assert.equal(seen.length, 6);
  assert.deepEqual(seen.filter((r) => r.auth).map((r) => `${r.method} ${r.url}`).sort(),
    ['DELETE /clusters/eu', 'GET /a', 'GET /b']);
  await listTable('/c', {});
  assert.equal(seen.length, 7, 'the next one carries it at once');
});

test('the user is asked again for a token that is refused later', async () => {
  serve('right');
  use('old', false);
  const asked = person('right');
  await listTable('/a', {});
  assert.deepEqual([asked, current()], [[true], 'right']);
});

test('a token is never part of a URL', async () => {
  const seen = serve('s3cret');
  use('s3cret', false);
  await listTable('/a', { limit: 1 });
  assert.equal(await accepts('s3cret'), true);
  assert.equal(await accepts('s3cre'), false);
  assert.equal(seen.some((r) => r.url.includes('s3cre')), false);
});

test('an aborted request does not wait for a token', async () => {
  forget();
  serve('right');
  onAsk(() => new Promise((resolve) => setTimeout(() => { use('right', false); resolve(); }, 50)));
  const stop = new AbortController();
  const waiting = listTable('/a', {}, stop.signal).then(() => 'answered', (err) => err.name);
  const other = listTable('/b', {}).then(() => 'answered');
  setTimeout(() => stop.abort(), 5);
  assert.equal(await waiting, 'AbortError');
  assert.equal(await other, 'answered');
});

test('forget removes the token everywhere', async () => {
  use('right', true);
  forget();
  assert.equal(current(), '');
  assert.equal(globalThis.sessionStorage?.getItem('mirador.token') ?? null, null);
});
