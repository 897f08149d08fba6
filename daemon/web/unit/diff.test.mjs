// Run in Chromium by make web-test, or with: node --test daemon/web/unit

import test from 'node:test';
import assert from 'node:assert/strict';
import { parts, rows, runs } from '../page/diff.js';

const run = (r) => (r.same ? `=${r.same.join('')}` : `-${r.before.join('')}+${r.after.join('')}`);
const diff = (a, b) => runs([...a], [...b]).map(run).join(' ');

test('the differences are the shortest ones', () => {
  const cases = [['', '', ''], ['abc', 'abc', '=abc'], ['abc', '', '-abc+'], ['', 'abc', '-+abc'],
    ['abc', 'axc', '=a -b+x =c'], ['abcd', 'acd', '=a -b+ =cd'], ['acd', 'abcd', '=a -+b =cd'],
    ['abcabba', 'xbcabxa', '-a+x =bcab -b+x =a'],
    ['abcdef', 'bcdefg', '-a+ =bcdef -+g'], ['abxcd', 'abycd', '=ab -x+y =cd'], ['aaaa', 'aa', '=aa -aa+']];
  for (const [a, b, want] of cases) assert.equal(diff(a, b), want, `${a} and ${b}`);
});

test('both texts can be put together again from the differences', () => {
  let seed = 7;
  const random = (n) => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return Math.floor((seed / 2147483648) * n);
  };
  for (let i = 0; i < 300; i++) {
    const list = () => Array.from({ length: random(30) }, () => 'abc'[random(3)]);
    const [a, b] = [list(), list()];
    const all = runs(a, b);
    assert.equal(all.flatMap((r) => r.same ?? r.before).join(''), a.join(''), `before, ${i}`);
    assert.equal(all.flatMap((r) => r.same ?? r.after).join(''), b.join(''), `after, ${i}`);
    const drawn = rows(all).flatMap((r) => (r.fold ? r.fold.map((line) => ({ before: line, after: line })) : [r]));
    assert.equal(drawn.map((r) => r.before ?? '').join(''), a.join(''), `drawn, ${i}`);
    assert.equal(drawn.map((r) => r.after ?? '').join(''), b.join(''), `drawn, ${i}`);
  }
});

test('texts that have little in common are not compared for long', () => {
  const a = Array.from({ length: 20000 }, (_, i) => `a${i}`);
  const b = Array.from({ length: 20000 }, (_, i) => `b${i}`);
  const all = runs(['x', ...a], ['x', ...b]);
  assert.deepEqual([all.length, all[0].same.length, all[1].before.length], [2, 1, 20000]);
});

test('unchanged lines far from a change are folded', () => {
  const lines = Array.from({ length: 40 }, (_, i) => `line ${i}`);
  const changed = lines.with(20, 'other');
  const drawn = rows(runs(lines, changed));
  assert.deepEqual(drawn.map((r) => (r.fold ? r.fold.length : r.same ? '=' : `${r.before} ${r.after}`)),
    [17, '=', '=', '=', 'line 20 other', '=', '=', '=', 16]);
  assert.deepEqual(rows(runs(['a', 'b'], ['a', 'c'])).map((r) => r.fold), [undefined, undefined]);
  assert.deepEqual(rows(runs(lines, lines)).map((r) => r.fold?.length), [40]);
});

test('what differs within two lines is cut out', () => {
  assert.deepEqual(parts('  replicas: 1', '  replicas: 12'), [['  replicas: 1', '', ''], ['  replicas: 1', '2', '']]);
  assert.deepEqual(parts('image: a:1.25', 'image: b:1.25'), [['image: ', 'a', ':1.25'], ['image: ', 'b', ':1.25']]);
});
