// The differences of two texts, line by line, for showing them side by side.

const MOST = 1500; // differing lines up to which the shortest difference is looked for
const AROUND = 3; // unchanged lines that are shown around a change

// runs returns the runs of lines that two lists have in common and of those that differ, in order: {same} has lines of
// both, {before, after} what was replaced by what.
export function runs(before, after) {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  while (end < before.length - start && end < after.length - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const out = [];
  if (start > 0) out.push({ same: before.slice(0, start) });
  out.push(...between(before.slice(start, before.length - end), after.slice(start, after.length - end)));
  if (end > 0) out.push({ same: before.slice(before.length - end) });
  return out;
}

// between finds the shortest difference of two lists by Myers' greedy algorithm: for each number of differences, how
// far each diagonal gets.
function between(a, b) {
  if (a.length === 0 && b.length === 0) return [];
  const offset = Math.min(a.length + b.length, MOST) + 1;
  let far = new Int32Array(2 * offset + 1);
  const trace = [];
  for (let d = 0; d < offset; d++) {
    trace.push(far.slice(offset - d - 1, offset + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && far[offset + k - 1] < far[offset + k + 1]);
      let x = down ? far[offset + k + 1] : far[offset + k - 1] + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      far[offset + k] = x;
      if (x >= a.length && x - k >= b.length) return collect(a, b, trace);
    }
  }
  return [{ before: a, after: b }];
}

// collect walks back through the trace.
function collect(a, b, trace) {
  const out = [];
  const add = (kind, line) => {
    const last = out.at(-1);
    if (kind === 'same') {
      if (last?.same) last.same.push(line);
      else out.push({ same: [line] });
      return;
    }
    if (last?.before) last[kind].push(line);
    else out.push({ before: [], after: [], [kind]: [line] });
  };
  let x = a.length;
  let y = b.length;
  for (let d = trace.length - 1; d >= 0; d--) {
    const at = (k) => trace[d][k + d + 1]; // how far the diagonal k got with d - 1 differences
    const k = x - y;
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const from = d === 0 ? 0 : down ? at(k + 1) : at(k - 1) + 1;
    while (x > from) {
      x--;
      y--;
      add('same', a[x]);
    }
    if (d === 0) break;
    if (down) add('after', b[--y]);
    else add('before', a[--x]);
  }
  out.reverse();
  for (const run of out) for (const lines of Object.values(run)) lines.reverse();
  return out;
}

// rows returns the rows of a picture side by side: {before, after, same}, null where a side has no line, and {fold} for
// unchanged lines that are far from any change.
export function rows(all) {
  const out = [];
  const same = (lines) => out.push(...lines.map((line) => ({ before: line, after: line, same: true })));
  all.forEach((run, i) => {
    if (!run.same) {
      for (let n = 0; n < Math.max(run.before.length, run.after.length); n++) {
        out.push({ before: run.before[n] ?? null, after: run.after[n] ?? null, same: false });
      }
      return;
    }
    const head = i > 0 ? AROUND : 0;
    const tail = i < all.length - 1 ? AROUND : 0;
    if (run.same.length <= head + tail + 1) return same(run.same);
    same(run.same.slice(0, head));
    out.push({ fold: run.same.slice(head, run.same.length - tail) });
    same(run.same.slice(run.same.length - tail));
  });
  return out;
}

// parts cuts two lines into what they have in common at the beginning, what differs, and what they have in common at
// the end.
export function parts(before, after) {
  let start = 0;
  const least = Math.min(before.length, after.length);
  while (start < least && before[start] === after[start]) start++;
  let end = 0;
  while (end < least - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const cut = (s) => [s.slice(0, start), s.slice(start, s.length - end), s.slice(s.length - end)];
  return [cut(before), cut(after)];
}
