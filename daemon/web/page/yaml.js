// JSON as YAML, for reading. What it prints is YAML that every parser, of 1.1 or of
// 1.2, reads back as the same JSON.

// Deeper than this a value is printed as JSON on one line, which is YAML too.
const MAX_DEPTH = 200;

// A key that is longer than parsers look ahead needs a question mark.
const MAX_KEY = 900;

// Words that some version of YAML takes for something else than a string.
const RESERVED = /^(?:~|null|true|false|y|n|yes|no|on|off)$/i;

// What needs no quotes: words of harmless characters with single spaces between. A colon
// may be inside a word and not at its end; a # only inside one.
const PLAIN = /^[A-Za-z_/.(][\w./@%+=()*&!~;<>,$^?:#[\]{}'"|\\-]*(?: [\w./@%+=()*&!~;<>,$^?:[\]{}'"|\\-][\w./@%+=()*&!~;<>,$^?:#[\]{}'"|\\-]*)*$/;

// Words that begin with a digit and are no number, date or time in any version: addresses
// and versions, ids, and words with a letter that no number has.
const DIGITS_FIRST = /^(?:\d+(?:\.\d+){2,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+[\w.-]*[g-np-wyz][\w.-]*)$/;

// Characters that YAML does not print as they are.
const UNPRINTABLE = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;

// Exact is a number whose text says more than a JavaScript number can hold.
class Exact {
  constructor(text) {
    this.text = text;
  }
}

// parse reads JSON and keeps numbers as they were written.
export function parse(text) {
  return JSON.parse(text, (_, value, context) =>
    typeof value === 'number' && context?.source !== undefined && String(value) !== context.source
      ? new Exact(context.source)
      : value,
  );
}

// stringify prints a value, one line break at the end.
export function stringify(value) {
  const out = [];
  if (nested(value)) write(out, '', '', value, 0);
  else out.push(scalar(value, '  '));
  return out.join('\n') + '\n';
}

// nested: a map or a list that has something in it.
function nested(value) {
  return value !== null && typeof value === 'object' && !(value instanceof Exact) && Object.keys(value).length > 0;
}

// write appends the lines of a map or a list. The first begins with first, which may
// end in the dash of a list, the others with rest.
function write(out, first, rest, value, depth) {
  if (depth > MAX_DEPTH) {
    out.push(first + flow(value));
    return;
  }
  let start = first;
  if (Array.isArray(value)) {
    for (const item of value) {
      if (nested(item)) write(out, `${start}- `, `${rest}  `, item, depth + 1);
      else out.push(`${start}- ${scalar(item, `${rest}  `)}`);
      start = rest;
    }
    return;
  }
  for (const [name, item] of Object.entries(value)) {
    const head = key(start, rest, name);
    const deeper = `${rest}  `;
    if (!nested(item)) out.push(`${head} ${scalar(item, deeper)}`);
    else if (depth >= MAX_DEPTH) out.push(`${head} ${flow(item)}`);
    else {
      out.push(head);
      const pad = Array.isArray(item) ? rest : deeper; // a list may stand under its key
      write(out, pad, pad, item, depth + 1);
    }
    start = rest;
  }
}

function key(start, rest, name) {
  const text = plain(name) ? name : quoted(name);
  return text.length > MAX_KEY ? `${start}? ${text}\n${rest}:` : `${start}${text}:`;
}

function scalar(value, pad) {
  if (typeof value === 'string') return string(value, pad);
  if (value instanceof Exact) return value.text;
  if (Array.isArray(value)) return '[]';
  if (value !== null && typeof value === 'object') return '{}';
  return Object.is(value, -0) ? '-0' : String(value);
}

function string(s, pad) {
  if (plain(s)) return s;
  if (literal(s)) return block(s, pad);
  return quoted(s);
}

function plain(s) {
  if (!(PLAIN.test(s) || DIGITS_FIRST.test(s)) || RESERVED.test(s)) return false;
  // Numbers, dates, and the mark that ends a document.
  return !/^\.(?:[\d_+-]|inf|nan|\.\.|$)/i.test(s) && !/^\d{4}-\d/.test(s) && !/:(?: |$)/.test(s);
}

function quoted(s) {
  return JSON.stringify(s).replace(UNPRINTABLE, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

// literal: text of several lines that a block shows exactly.
function literal(s) {
  if (!s.includes('\n') || /^[ \t\n]/.test(s)) return false;
  for (const c of s) {
    const p = c.codePointAt(0);
    const fine = p === 9 || p === 10 || (p >= 0x20 && p < 0x7f) || (p >= 0xa0 && p < 0xd800) ||
      (p > 0xdfff && p < 0xfffe) || p > 0xffff;
    if (!fine || p === 0x2028 || p === 0x2029 || p === 0xfeff) return false;
  }
  return true;
}

function block(s, pad) {
  const ends = /\n*$/.exec(s)[0].length;
  const head = ends === 0 ? '|-' : ends === 1 ? '|' : '|+';
  const body = ends === 0 ? s : s.slice(0, -1); // the last break ends the last line
  return `${head}\n${body.split('\n').map((line) => (line === '' ? '' : pad + line)).join('\n')}`;
}

function flow(value) {
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`;
  if (typeof value === 'string') return quoted(value);
  if (!nested(value)) return scalar(value, '');
  return `{${Object.entries(value).map(([name, item]) => `${quoted(name)}: ${flow(item)}`).join(', ')}}`;
}
