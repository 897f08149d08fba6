// Run in Chromium by make web-test, or with: node --test daemon/web/unit

import test from 'node:test';
import assert from 'node:assert/strict';
import { age, bytes, brief, count, heard, perSecond, plural } from '../page/format.js';
import { Rates, troubled } from '../page/rates.js';
import { address, resourceId } from '../page/api.js';

test('numbers are formatted for people', () => {
  assert.deepEqual([count(50000), brief(9999), brief(50000), brief(1234567)], ['50,000', '9,999', '50k', '1.2M']);
  assert.deepEqual([bytes(0), bytes(1536), bytes(200 * 2 ** 20)], ['0 B', '1.5 KiB', '200 MiB']);
  assert.deepEqual([heard(0.2), heard(1.25), heard(75)], ['200 ms', '1.3 s', '75s']);
  assert.deepEqual([perSecond(0), perSecond(0.25), perSecond(37.4), perSecond(12345)], ['0', '0.3', '37', '12k']);
  assert.deepEqual([plural(1, 'object'), plural(2, 'object')], ['1 object', '2 objects']);
});

test('ages are formatted as in kubectl', () => {
  const cases = { 45: '45s', 119: '119s', 330: '5m30s', 3600: '60m', 11520: '3h12m', 43200: '12h', 180000: '2d2h',
    864000: '10d', 31536000: '365d', 94608000: '3y' };
  for (const [seconds, want] of Object.entries(cases)) assert.equal(age(Number(seconds)), want, seconds);
});

const pods = { group: '', version: 'v1', resource: 'pods', state: 'streaming', queue: 0, error: '' };
const doc = (second, events, more = {}) => ({ now: new Date(second * 1000).toISOString().replace('.000', ''),
  clusters: [{ name: 'eu', resources: [{ ...pods, events, ...more }] }] });

test('a rate is computed from two documents', () => {
  const rates = new Rates();
  rates.take(doc(100, 1000), 0);
  assert.equal(rates.of('eu', pods).rate, 0);
  rates.take(doc(102, 1010), 2000);
  assert.equal(rates.of('eu', pods).rate, 5);
  assert.equal(rates.of('eu').rate, 5);
});

test('times in whole seconds cause no peaks', () => {
  const rates = new Rates();
  rates.take(doc(100, 0), 0);
  rates.take(doc(102, 10), 1000); // one second passed; the clock says two
  assert.equal(rates.of('eu', pods).rate, 10);
});

test('delayed documents are timed by the clock of the server', () => {
  const rates = new Rates();
  rates.take(doc(100, 0), 60000);
  rates.take(doc(101, 10), 60001);
  assert.equal(rates.of('eu', pods).rate, 10);
});

test('a smaller total is a reset counter', () => {
  const rates = new Rates();
  rates.take(doc(100, 1000), 0);
  rates.take(doc(101, 3), 1000);
  assert.equal(rates.of('eu', pods).rate, 0);
});

test('a resource is quiet after 30 seconds unless it has an error', () => {
  const rates = new Rates();
  rates.take(doc(100, 0), 0);
  rates.take(doc(101, 1), 1000);
  assert.equal(rates.quiet('eu', pods), false);
  rates.take(doc(140, 1), 40000);
  assert.equal(rates.quiet('eu', pods), true);
  for (const r of [{ ...pods, error: 'x' }, { ...pods, state: 'retrying' }, { ...pods, state: 'listing' },
    { ...pods, queue: 1 }]) {
    assert.equal(rates.quiet('eu', r), false, JSON.stringify(r));
  }
  assert.equal(troubled(pods), false);
});

test('resources that are gone are dropped', () => {
  const rates = new Rates();
  rates.take(doc(100, 0), 0);
  rates.take(doc(101, 9), 1000);
  rates.take({ now: new Date(102000).toISOString(), clusters: [] }, 2000);
  assert.equal(rates.of('eu', pods).rate, 0);
  assert.equal(rates.of('eu', pods).history.length, 0);
});

test('paths are escaped', () => {
  const deployments = { group: 'apps', version: 'v1', resource: 'deployments' };
  assert.equal(address('', deployments, 'eu.web', 'a'), '/fleet/apis/apps/v1/namespaces/eu.web/deployments/a');
  assert.equal(address('eu', pods), '/clusters/eu/api/v1/pods');
  assert.equal(address('', { group: '', version: 'v1', resource: 'nodes' }, '', 'eu:a/b?c'),
    '/fleet/api/v1/nodes/eu%3Aa%2Fb%3Fc');
  assert.equal(resourceId(deployments), 'deployments.v1.apps');
});
