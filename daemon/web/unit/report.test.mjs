// Run in Chromium by make web-test, or with: node --test daemon/web/unit

import test from 'node:test';
import assert from 'node:assert/strict';
import { Report } from '../page/report.js';

const at = (second) => new Date(second * 1000).toISOString();
const resource = (name, more = {}) => ({ group: '', version: 'v1', resource: name, objects: 1, lastHeardSeconds: 1,
  ...more });
const cluster = (name, resources, more = {}) => ({ name, state: 'ready', lastHeardSeconds: 1, resources, ...more });
const whole = (second) => ({ now: at(second), whole: true, memory: { rssBytes: 1 }, clusters: [
  cluster('eu', [resource('pods'), resource('nodes')]), cluster('us', [resource('pods')])] });
const counts = (resources) => resources.map((r) => `${r.resource}=${r.objects}`).join();
const objects = (doc) => doc.clusters.map((c) => `${c.name}:${counts(c.resources)}`).join(' ');

test('changes replace what they change', () => {
  const report = new Report();
  assert.equal(objects(report.take(whole(100))), 'eu:pods=1,nodes=1 us:pods=1');
  const doc = report.take({ now: at(101), memory: { rssBytes: 2 },
    changed: [cluster('eu', [resource('nodes', { objects: 7 })], { state: 'degraded' })] });
  assert.equal(objects(doc), 'eu:pods=1,nodes=7 us:pods=1');
  assert.deepEqual([doc.now, doc.memory.rssBytes, doc.clusters[0].state, doc.clusters[1].state],
    [at(101), 2, 'degraded', 'ready']);
});

test('clusters join, leave and change their resources', () => {
  const report = new Report();
  report.take(whole(100));
  const doc = report.take({ now: at(101), left: ['us'],
    clusters: [cluster('asia', [resource('pods')]), cluster('eu', [resource('jobs')])] });
  assert.equal(objects(doc), 'asia:pods=1 eu:jobs=1');
});

test('a whole line replaces everything', () => {
  const report = new Report();
  report.take({ now: at(99), whole: true, clusters: [cluster('old', [resource('pods')])] });
  assert.equal(objects(report.take(whole(100))), 'eu:pods=1,nodes=1 us:pods=1');
  assert.equal(objects(report.take({ now: at(101), whole: true, clusters: [] })), '');
});

test('only high last-event ages grow without a line', () => {
  const report = new Report();
  report.take(whole(100));
  report.take({ now: at(101), changed: [cluster('eu', [resource('nodes', { lastHeardSeconds: 120 })])],
    lastHeard: { us: 33 } });
  const lags = (doc) => [...doc.clusters[0].resources.map((r) => r.lastHeardSeconds), doc.clusters[1].lastHeardSeconds];
  assert.deepEqual(lags(report.later(at(111))), [1, 130, 33]);
  assert.deepEqual(lags(report.take({ now: at(111), lastHeard: { us: 43 } })), [1, 130, 43]);
  assert.deepEqual(lags(report.take({ now: at(112),
    changed: [cluster('eu', [resource('nodes', { lastHeardSeconds: 0.5 })])] })), [1, 0.5, 43]);
});
