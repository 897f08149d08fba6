// Run in Chromium by make web-test, or with: node --test daemon/web/unit

import test from 'node:test';
import assert from 'node:assert/strict';
import { moved } from '../page/namespaces.js';

test('a namespace is converted between views', () => {
  assert.equal(moved('web', 'eu', ''), 'eu.web');
  assert.equal(moved('eu.web', '', 'eu'), 'web');
  assert.equal(moved('eu.web', '', 'us'), 'web');
  assert.equal(moved('web', 'eu', 'us'), 'web');
  assert.equal(moved('eu.web', '', ''), 'eu.web');
  assert.equal(moved('', 'eu', ''), '');
  assert.equal(moved(undefined, 'eu', ''), undefined);
});
