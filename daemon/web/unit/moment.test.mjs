// Run in Chromium by make web-test, or with: node --test daemon/web/unit

import test from 'node:test';
import assert from 'node:assert/strict';
import { inWords, placeOf } from '../page/changes.js';
import { ApiError } from '../page/api.js';
import { exact, explain, gapRows, gapText, local, parse, say, spanOf, stepOf, ticks, write } from '../page/moment.js';

const NOW = Date.parse('2026-11-17T12:00:00Z');
const MINUTE = 60000;

test('a moment is RFC 3339 or a duration before now', () => {
  const cases = {
    '-15m': '2026-11-17T11:45:00Z', '-2d': '2026-11-15T12:00:00Z', '-1d12h': '2026-11-16T00:00:00Z',
    '-1h30m': '2026-11-17T10:30:00Z', '-1.5h': '2026-11-17T10:30:00Z', '-90s': '2026-11-17T11:58:30Z',
    ' 2026-11-17T10:00:00Z ': '2026-11-17T10:00:00Z', '2026-11-17 10:00:00+01:00': '2026-11-17T09:00:00Z',
    '2026-11-17T10:00Z': '2026-11-17T10:00:00Z', '2026-11-17T10:00:00.25Z': '2026-11-17T10:00:00.25Z',
    '2026-11-17T10:00:00.123456789Z': '2026-11-17T10:00:00.123456789Z',
  };
  for (const [text, want] of Object.entries(cases)) assert.equal(parse(text, NOW)?.text, want, text);
  for (const text of ['', '-', '15m', '-15', '-m', '--1h', 'yesterday', '2026-11-17', '2026-13-40T10:00:00Z', '10:00',
    '2026-11-17T10:00:00']) {
    assert.equal(parse(text, NOW), null, text);
  }
  assert.equal(parse('-1m', NOW + 999).text, '2026-11-17T11:59:00Z', 'whole seconds');
  assert.equal(parse('2026-11-17T10:00:00.5Z', NOW).time, Date.parse('2026-11-17T10:00:00.5Z'));
});

test('a timeline shows a length of time around a moment, within the history', () => {
  const begin = NOW - 600 * MINUTE;
  const of = (more) => {
    const { from, to } = spanOf({ begin, now: NOW, at: null, length: 60 * MINUTE, ...more });
    return [(from - NOW) / MINUTE, (to - NOW) / MINUTE];
  };
  assert.deepEqual(of({}), [-60, 0]);
  assert.deepEqual(of({ length: 0 }), [-600, 0]);
  assert.deepEqual(of({ at: NOW - 300 * MINUTE }), [-330, -270]);
  assert.deepEqual(of({ at: NOW - 10 * MINUTE }), [-60, 0]);
  assert.deepEqual(of({ at: NOW - 595 * MINUTE }), [-600, -540]);
  assert.deepEqual(of({ length: 6000 * MINUTE }), [-600, 0]);
  assert.equal(spanOf({ begin: NOW, now: NOW, at: null, length: 0 }).from < NOW, true, 'a span is never empty');
});

test('ticks are round times', () => {
  const hours = ticks(NOW - 360 * MINUTE, NOW, 6);
  assert.deepEqual([hours.length, hours[1].time - hours[0].time], [7, 60 * MINUTE]);
  assert.equal(hours.every((t) => new Date(t.time).getMinutes() === 0), true);
  assert.equal(ticks(NOW - 100 * 24 * 60 * MINUTE, NOW, 6).length <= 7, true);
  assert.match(ticks(NOW - 30000, NOW, 6)[1].label, /^\d\d:\d\d:\d\d$/);
  assert.equal(stepOf(3600000, 120), 30000);
});

const at = (minutes) => write(NOW + minutes * MINUTE);

test('gaps are drawn by cluster, and those without share a row', () => {
  const span = { from: NOW - 60 * MINUTE, to: NOW };
  const known = {
    begins: { us: at(-600), eu: at(-600), asia: at(-30) },
    gaps: [{ cluster: 'us', from: at(-70), to: at(-50) }, { cluster: 'us', from: at(-5) },
      { cluster: 'eu', from: at(-300), to: at(-200) }],
  };
  const spans = (row) =>
    row.spans.map((s) => `${s.kind} ${(s.from - NOW) / MINUTE} ${(s.to - NOW) / MINUTE}`).join(', ');
  const rows = gapRows(known, span, 6);
  assert.deepEqual(rows.map((r) => r.names.join()), ['asia', 'eu', 'us']);
  assert.deepEqual(rows.map(spans), ['before -60 -30', '', 'gap -60 -50, gap -5 0']);
  const few = gapRows({ ...known, begins: { ...known.begins, a: at(-600), b: at(-600) } }, span, 3);
  assert.deepEqual(few.map((r) => r.names.join()), ['asia', 'us', 'a,b,eu']);
});

test('times and gaps are said in words', () => {
  const d = new Date(2026, 10, 17, 9, 5, 3);
  assert.equal(say(d.getTime(), d.getTime()), 'Tue 17 Nov, 09:05:03');
  assert.equal(say(d.getTime(), d.getTime() + 200 * 24 * 60 * MINUTE), 'Tue 17 Nov 2026, 09:05:03');
  const text = write(d.getTime());
  assert.equal(local(`from ${text} to ${text.replace('Z', '.123456789Z')}: so`, d.getTime()),
    'from 09:05:03 to 09:05:03: so');
  assert.equal(exact(d.getTime() + 45, d.getTime()), '09:05:03.045');
  const gap = { cluster: 'eu', from: write(d.getTime()) };
  assert.equal(gapText(gap, d.getTime()), 'eu was not watched from 09:05:03 on');
  assert.equal(gapText({ ...gap, to: write(d.getTime() + MINUTE) }, d.getTime() + 24 * 60 * MINUTE),
    'eu was not watched from 17 Nov 09:05:03 to 17 Nov 09:06:03');
});

test('errors about the past say what to do', () => {
  const error = (status, message, more) => new ApiError(message, status, '', more);
  const explained = (err, more) => explain(err, { now: NOW, ...more });
  assert.match(explained(error(400, 'x', { cause: 'NoDataFolder' })), /--data DIR/);
  assert.match(explained(error(410, 'x'), { beginning: NOW }), /before the history, which begins on Tue 17 Nov/);
  assert.equal(explained(error(410, 'the history begins later')), 'The history begins later.');
  assert.match(explained(error(404, 'x'), { detail: true }), /did not exist at this moment. Its history/);
  assert.equal(explained(error(503, 'starting')), 'Starting.');
  assert.match(explained(error(503, 'starting', { retryAfter: 1 })), /^Starting. The page asks again/);
});

test('a change is said in a few words', () => {
  assert.equal(inWords([{ op: 'replace', path: '/spec/replicas', old: 1, new: 3 }]), 'spec.replicas 1 → 3');
  const label = { op: 'add', path: '/metadata/labels/a~1b', new: 'x' };
  assert.equal(inWords([label, { op: 'remove', path: '/spec/a', old: {} },
    { op: 'replace', path: '/data/text', old: 'a\nb', new: 'c' }, { op: 'add', path: '/spec/b', new: [] }]),
  'spec.a removed, data.text changed, spec.b added and 1 more');
  assert.equal(inWords([{ op: 'add', path: '/status/ready', new: 1 }, label]),
    'metadata.labels.a/b set to x, status.ready set to 1');
  assert.deepEqual(placeOf({ cluster: 'eu', namespace: 'web', name: 'a' }, true), { namespace: 'eu.web', name: 'a' });
  assert.deepEqual(placeOf({ cluster: 'eu', namespace: '', name: 'n' }, true), { namespace: '', name: 'eu:n' });
  assert.deepEqual(placeOf({ cluster: 'eu', namespace: 'web', name: 'a' }, false), { namespace: 'web', name: 'a' });
});
