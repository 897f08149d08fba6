// Run in Chromium by make web-test, or with: node --test daemon/web/unit
// Whether YAML reads back as the same JSON is judged by a real parser, in browsertest;
// here is how it looks.

import test from 'node:test';
import assert from 'node:assert/strict';
import { parse, stringify } from '../page/yaml.js';

const cases = [
  ['a map', { a: 1, b: 'x', c: true, d: null }, 'a: 1\nb: x\nc: true\nd: null\n'],
  ['a list under its key', { a: [{ b: 1, c: 2 }, 'x'] }, 'a:\n- b: 1\n  c: 2\n- x\n'],
  ['lists of lists', [['a', 'b'], ['c']], '- - a\n  - b\n- - c\n'],
  ['nothing in it', { a: [], b: {} }, 'a: []\nb: {}\n'],
  ['strings that look like something else', { a: 'yes', b: '1e3', c: '', d: '2024-01-01', e: 'null', f: '~' },
    'a: "yes"\nb: "1e3"\nc: ""\nd: "2024-01-01"\ne: "null"\nf: "~"\n'],
  ['strings that do not', { a: 'nginx:1.25', b: '10.0.0.1', c: '/bin/sh', d: 'two words', e: '100m' },
    'a: nginx:1.25\nb: 10.0.0.1\nc: /bin/sh\nd: two words\ne: 100m\n'],
  ['text of several lines', { a: 'x\n  y\n', b: 'x\ny', c: 'x\n\n' },
    'a: |\n  x\n    y\nb: |-\n  x\n  y\nc: |+\n  x\n\n'],
  ['text that a block would change', { a: ' x\ny', b: 'x\r\ny' }, 'a: " x\\ny"\nb: "x\\r\\ny"\n'],
  ['a scalar alone', 'x', 'x\n'],
];

for (const [name, value, want] of cases) {
  test(name, () => assert.equal(stringify(value), want));
}

test('deep nesting does not overflow the stack', () => {
  let value = 'x';
  for (let i = 0; i < 2000; i++) value = [value];
  assert.match(stringify(value), /\[\["x"\]\]/);
});

test('a value of several lines never ends up in a key', () => {
  assert.equal(stringify({ 'a\nb': 1 }), '"a\\nb": 1\n');
});

test('numbers are JSON numbers', () => {
  assert.equal(stringify(parse('{"a":1,"b":-2.5,"c":1e+30}')), 'a: 1\nb: -2.5\nc: 1e+30\n');
});
