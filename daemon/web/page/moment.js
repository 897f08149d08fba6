// Moments of the past: how they are written, and what a timeline shows of a span of time. Times are in milliseconds.

import { age } from './format.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

const two = (n) => String(n).padStart(2, '0');

// parse reads a moment as at= takes it: RFC 3339, or a duration before now such as -15m or -2d. It returns the time and
// the text that stays the same when time passes, or null.
export function parse(text, now) {
  const t = text.trim();
  if (t.startsWith('-')) {
    const before = duration(t.slice(1));
    if (before === null) return null;
    const time = Math.floor((now - before) / SECOND) * SECOND;
    return { time, text: write(time) };
  }
  if (!/^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)$/.test(t)) return null;
  const time = Date.parse(t.replace(' ', 'T'));
  if (Number.isNaN(time)) return null;
  const exact = /:\d\d\.\d+Z$/.test(t) && !t.includes(' '); // it may have more digits than a number can hold
  return { time, text: exact ? t : write(time) };
}

function duration(text) {
  const parts = /^(?:(\d+)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?$/.exec(text);
  if (!parts || text === '') return null;
  const [d, h, m, s] = parts.slice(1).map((n) => Number(n ?? 0));
  return d * DAY + h * HOUR + m * MINUTE + s * SECOND;
}

// write writes a time as RFC 3339, in UTC.
export function write(time) {
  return new Date(time).toISOString().replace('.000Z', 'Z');
}

// say is a moment for people, in their time zone: Tue 17 Nov, 10:00:00.
export function say(time, now) {
  const d = new Date(time);
  const year = d.getFullYear() === new Date(now).getFullYear() ? '' : ` ${d.getFullYear()}`;
  return `${DAYS[d.getDay()]} ${d.getDate()} ${MONTHS[d.getMonth()]}${year}, ${clock(d)}`;
}

// brief is say without the day if it is today.
export function brief(time, now) {
  const [d, today] = [new Date(time), new Date(now)];
  return d.toDateString() === today.toDateString() ? clock(d) : `${d.getDate()} ${MONTHS[d.getMonth()]} ${clock(d)}`;
}

function clock(d) {
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

// exact is brief with milliseconds.
export function exact(time, now) {
  return `${brief(time, now)}.${String(new Date(time).getMilliseconds()).padStart(3, '0')}`;
}

// ago says how long ago a time is.
export function ago(time, now) {
  return `${age((now - time) / 1000)} ago`;
}

// local replaces times in a text of the server by those in the user's time zone.
export function local(text, now) {
  return text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (t) => brief(Date.parse(t), now));
}

// spanOf returns the part of the history that a timeline shows: a length of time around a moment, or until now. Zero is
// everything.
export function spanOf({ begin, now, at, length }) {
  if (!length) return { from: Math.min(begin, now - SECOND), to: now };
  const to = Math.min(now, at === null ? now : at + length / 2);
  const from = Math.max(Math.min(begin, now - SECOND), to - length);
  return { from, to: Math.min(now, Math.max(to, from + length)) };
}

const STEPS = [SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 30 * SECOND, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE,
  30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 90 * DAY];

// stepOf returns the smallest round duration of which at most some fit into a length.
export function stepOf(length, most) {
  return STEPS.find((step) => length / step <= most) ?? 365 * DAY;
}

// ticks returns round times in a span with their labels, in the user's time zone.
export function ticks(from, to, most) {
  const step = stepOf(to - from, most);
  const zone = new Date(from).getTimezoneOffset() * MINUTE;
  const out = [];
  for (let t = Math.ceil((from - zone) / step) * step + zone; t <= to; t += step) {
    const d = new Date(t);
    const midnight = d.getHours() + d.getMinutes() + d.getSeconds() === 0;
    const label = step >= DAY || midnight ? `${d.getDate()} ${MONTHS[d.getMonth()]}`
      : step >= MINUTE ? clock(d).slice(0, 5) : clock(d);
    out.push({ time: t, label });
  }
  return out;
}

// gapRows returns the rows of a timeline: what is not known of each cluster in a span. Only some clusters have a row of
// their own, those with gaps first; all others share one.
export function gapRows({ gaps = [], begins = {} }, { from, to }, most) {
  const rows = new Map(Object.keys(begins).sort().map((name) => [name, { names: [name], spans: [] }]));
  for (const [name, begin] of Object.entries(begins)) {
    const end = Math.min(Date.parse(begin), to);
    if (end > from) rows.get(name).spans.push({ from, to: end, kind: 'before' });
  }
  for (const gap of gaps) {
    const [a, b] = [Date.parse(gap.from), gap.to ? Date.parse(gap.to) : Infinity];
    if (b < from || a > to) continue;
    if (!rows.has(gap.cluster)) rows.set(gap.cluster, { names: [gap.cluster], spans: [] });
    rows.get(gap.cluster).spans.push({ from: Math.max(a, from), to: Math.min(b, to), kind: 'gap' });
  }
  const all = [...rows.values()];
  if (all.length <= most) return all;
  all.sort((a, b) => Number(b.spans.length > 0) - Number(a.spans.length > 0)); // stable: by name
  const rest = all.splice(most - 1);
  return [...all, { names: rest.flatMap((r) => r.names), spans: rest.flatMap((r) => r.spans) }];
}

// gapText says when a cluster was not watched.
export function gapText(gap, now) {
  const from = brief(Date.parse(gap.from), now);
  return `${gap.cluster} was not watched from ${from}${gap.to ? ` to ${brief(Date.parse(gap.to), now)}` : ' on'}`;
}

// explain says in words why a request about the past failed, and what to do.
export function explain(err, { now, beginning = null, detail = false }) {
  if (err.cause === 'NoDataFolder') {
    return 'This daemon does not keep the past. Start it with a data folder (mirador serve --data DIR): it knows ' +
      'what happens from then on.';
  }
  if (err.gone && beginning !== null) {
    return `That is before the history, which begins on ${say(beginning, now)}.`;
  }
  if (err.status === 404 && detail) return 'It did not exist at this moment. Its history says when it did.';
  const text = sentence(local(err.message, now));
  return err.retryAfter > 0 ? `${text} The page asks again in a moment.` : text;
}

function sentence(text) {
  const s = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(s) ? s : `${s}.`;
}
