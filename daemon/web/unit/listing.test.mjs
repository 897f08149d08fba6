// Run in Chromium by make web-test, or with: node --test daemon/web/unit
// The list against a server that is a few functions: pages of a snapshot, and a watch that
// says what the test says.

import test from 'node:test';
import assert from 'node:assert/strict';

globalThis.document ??= { hidden: false, addEventListener() {}, removeEventListener() {} };
globalThis.requestAnimationFrame = (run) => setTimeout(run, 1);
globalThis.cancelAnimationFrame = clearTimeout;

const { Listing } = await import('../page/listing.js');

const columnDefinitions = [{ name: 'Name' }, { name: 'Status' }];
const row = (name, status = 'Running', version = '1') =>
  ({ cells: [name, status], object: { metadata: { name, namespace: 'web', resourceVersion: version } } });
const eventOf = (type, r) => JSON.stringify({ type, object: { columnDefinitions: [], metadata: {}, rows: [r] } }) +
  '\n';
const status = (code, message) => new Response(JSON.stringify({ kind: 'Status', code, message }), { status: code });

// serve replaces fetch. Pages are answered in turn; send tells the watch, end ends it.
function serve(pages) {
  const server = { lists: [], watches: [], streams: [] };
  globalThis.fetch = async (url, { signal }) => {
    const query = new URL(url, 'http://here').searchParams;
    if (query.get('watch') !== 'true') {
      server.lists.push(query);
      const page = pages.shift();
      return page instanceof Response ? page : new Response(JSON.stringify({ columnDefinitions, ...page }));
    }
    server.watches.push(query);
    if (server.refuse) return server.refuse;
    const body = new ReadableStream({
      start(controller) {
        const bytes = new TextEncoder();
        server.streams.push({ send: (text) => controller.enqueue(bytes.encode(text)), end: () => controller.close() });
        signal.addEventListener('abort', () => {
          try {
            controller.error(new DOMException('', 'AbortError'));
          } catch {
            // the stream has already ended
          }
        });
      },
    });
    return new Response(body);
  };
  return server;
}

const page = (names, token, remaining) => ({
  metadata: { resourceVersion: '10', continue: token, remainingItemCount: remaining },
  rows: names.map((n) => row(n)),
});

async function until(what, done) {
  for (let i = 0; i < 500; i++) {
    if (done()) return;
    await new Promise((resume) => setTimeout(resume, 5));
  }
  assert.fail(`waited in vain: ${what}`);
}

function listing(t, query = {}) {
  const events = [];
  const list = new Listing({ cluster: 'eu', resource: { group: '', version: 'v1', resource: 'pods' }, filter: '',
    text: '', order: '', ...query }, { onchange() {}, onevent: (e) => events.push(e) });
  t.after(() => list.stop());
  return { list, events };
}

const names = (list) => list.rows.map((r) => r.name).join(' ');

test('all pages are from one snapshot', async (t) => {
  const server = serve([page(['a', 'b'], 'T', 1), page(['c'])]);
  const { list } = listing(t, { filter: 'where', text: 'true' });
  await list.start();
  assert.deepEqual([names(list), list.complete, list.remaining], ['a b', false, 1]);
  await list.more();
  assert.deepEqual([names(list), list.complete], ['a b c', true]);
  await list.more();
  assert.equal(server.lists.length, 2);
  assert.deepEqual([server.lists[1].get('continue'), server.lists[1].get('where'), server.lists[0].get('limit')],
    ['T', 'true', '100']);
  await until('the watch', () => server.watches.length === 1);
  assert.deepEqual([server.watches[0].get('resourceVersion'), server.watches[0].get('where')], ['10', 'true']);
});

test('changes of the watch replace rows of later pages', async (t) => {
  const server = serve([page(['a', 'b'], 'T', 4), page(['c', 'd', 'e', 'f'])]);
  const { list, events } = listing(t);
  await list.start();
  await until('the watch', () => server.streams.length === 1);
  server.streams[0].send(eventOf('MODIFIED', row('d', 'Evicted')) + eventOf('DELETED', row('e')) +
    eventOf('ADDED', row('cc', 'Pending')) + eventOf('ADDED', row('aa', 'Pending')));
  await until('the events', () => events.length === 4);
  assert.equal(names(list), 'a aa b', 'only what is within the loaded part shows');
  await list.more();
  assert.equal(names(list), 'a aa b c cc d f');
  assert.equal(list.rows.find((r) => r.name === 'd').cells[1], 'Evicted');
});

test('changes of one object are coalesced, and a deleted row fades', async (t) => {
  const server = serve([page(['a', 'b'])]);
  const { list, events } = listing(t);
  await list.start();
  await until('the watch', () => server.streams.length === 1);
  server.streams[0].send([1, 2, 3, 4].map((n) => eventOf('MODIFIED', row('a', `S${n}`))).join(''));
  await until('the event', () => events.length > 0);
  assert.deepEqual([events.length, events[0].times, list.rows[0].cells[1], events[0].before.cells[1]],
    [1, 4, 'S4', 'Running']);
  server.streams[0].send(eventOf('DELETED', row('b')));
  await until('the mark', () => list.rows[1]?.gone > 0);
  await until('the end', () => names(list) === 'a');
});

test('an object that is created again while it fades stays', async (t) => {
  const server = serve([page(['a'])]);
  const { list } = listing(t);
  await list.start();
  await until('the watch', () => server.streams.length === 1);
  server.streams[0].send(eventOf('DELETED', row('a')));
  await until('the mark', () => list.rows[0]?.gone > 0);
  server.streams[0].send(eventOf('ADDED', row('a', 'Again')));
  await until('the return', () => list.rows[0]?.cells[1] === 'Again' && list.rows[0].gone === 0);
  await new Promise((resume) => setTimeout(resume, 1700));
  assert.equal(names(list), 'a');
});

test('a watch that ends is reopened from its version', async (t) => {
  const server = serve([page(['a'])]);
  const { list } = listing(t);
  await list.start();
  await until('the watch', () => server.streams.length === 1);
  server.streams[0].send(eventOf('MODIFIED', row('a', 'X', '17')));
  await until('the change', () => list.rows[0].cells[1] === 'X');
  server.streams[0].end();
  await until('the next watch', () => server.watches.length === 2);
  assert.equal(server.watches[1].get('resourceVersion'), '17');
  assert.equal(server.lists.length, 1);
});

test('the list is read again after 410', async (t) => {
  const server = serve([page(['a']), page(['b'])]);
  const { list } = listing(t);
  await list.start();
  await until('the watch', () => server.streams.length === 1);
  server.streams[0].send(JSON.stringify({ type: 'ERROR',
    object: { kind: 'Status', code: 410, message: 'too old' } }) + '\n');
  await until('the new list', () => names(list) === 'b');
  assert.match(list.notice, /read again/);
});

test('an expired page starts the list again', async (t) => {
  serve([page(['a'], 'T', 1), status(410, 'expired'), page(['a', 'b'])]);
  const { list } = listing(t);
  await list.start();
  await list.more();
  await until('the new list', () => names(list) === 'a b' && list.complete);
});

test('an error keeps the loaded rows, and retry continues', async (t) => {
  serve([page(['a'], 'T', 1), status(500, 'out of order'), page(['b'])]);
  const { list } = listing(t);
  await list.start();
  await list.more();
  assert.deepEqual([names(list), list.error.message], ['a', 'out of order']);
  await list.retry();
  assert.deepEqual([names(list), list.error, list.complete], ['a b', null, true]);
});

test('a refused watch is reported and not retried', async (t) => {
  const server = serve([page(['a'])]);
  server.refuse = status(400, 'no where= on a watch');
  const { list } = listing(t);
  await list.start();
  await until('the notice', () => list.live === 'refused');
  assert.match(list.notice, /no where= on a watch/);
  assert.equal(server.watches.length, 1);
});

test('with an order, new objects come first', async (t) => {
  const server = serve([page(['b', 'a'], 'T', 5)]);
  const { list, events } = listing(t, { order: '-metadata.creationTimestamp' });
  await list.start();
  await until('the watch', () => server.streams.length === 1);
  server.streams[0].send(eventOf('MODIFIED', row('x')) + eventOf('ADDED', row('z')));
  await until('the events', () => events.length === 2);
  assert.equal(names(list), 'z b a');
  assert.equal(server.watches[0].get('orderBy'), null);
});

test('a pause holds changes back', async (t) => {
  const server = serve([page(['a'])]);
  const { list } = listing(t);
  await list.start();
  await until('the watch', () => server.streams.length === 1);
  list.paused = true;
  server.streams[0].send(eventOf('MODIFIED', row('a', 'X')));
  await until('it is counted', () => list.waiting === 1);
  assert.equal(list.rows[0].cells[1], 'Running');
  list.paused = false;
  await until('it shows', () => list.rows[0].cells[1] === 'X');
});

test('a starting daemon is retried, and its warnings are shown', async (t) => {
  const starting = new Response(JSON.stringify({ kind: 'Status', code: 503, message: 'the daemon is starting' }),
    { status: 503, headers: { 'Retry-After': '0.01' } });
  const warned = new Response(JSON.stringify({ columnDefinitions, ...page(['a']) }),
    { headers: { Warning: '299 mirador "cluster us is left out: \\"no\\" answer", 299 mirador "cluster eu is old"' } });
  const server = serve([starting, warned]);
  const { list } = listing(t);
  await list.start();
  assert.deepEqual([names(list), list.error, server.lists.length], ['a', null, 2]);
  assert.equal(list.notice, 'cluster us is left out: "no" answer. cluster eu is old.');
});

test('a list of the past is not watched', async (t) => {
  const warned = new Response(JSON.stringify({ columnDefinitions, ...page(['a'], 'T', 1) }),
    { headers: { Warning: '299 mirador "changes were not seen"' } });
  const server = serve([warned, page(['b'])]);
  const { list } = listing(t, { at: '2026-11-17T10:00:00Z' });
  await list.start();
  await list.more();
  assert.deepEqual([names(list), list.live, list.warnings, list.notice], ['a b', 'off', ['changes were not seen'], '']);
  assert.deepEqual(server.lists.map((q) => q.get('at')), ['2026-11-17T10:00:00Z', '2026-11-17T10:00:00Z']);
  await new Promise((resume) => setTimeout(resume, 50));
  assert.equal(server.watches.length, 0);
});
