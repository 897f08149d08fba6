// Numbers as people read them.

const whole = new Intl.NumberFormat('en');

// count writes 50000 as 50,000.
export function count(n) {
  return whole.format(n ?? 0);
}

// brief writes 50000 as 50k, for places where there is no room.
export function brief(n) {
  n = n ?? 0;
  if (n < 10000) return count(n);
  if (n < 1e6) return `${Math.round(n / 1000)}k`;
  return `${(n / 1e6).toFixed(n < 1e7 ? 1 : 0)}M`;
}

// bytes writes 1536 as 1.5 KiB.
export function bytes(n) {
  n = n ?? 0;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let u = 0;
  while (n >= 1024 && u < units.length - 1) {
    n /= 1024;
    u++;
  }
  return `${u === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[u]}`;
}

// perSecond formats a rate without its unit.
export function perSecond(r) {
  if (r === 0) return '0';
  if (r < 10) return r.toFixed(1);
  return brief(Math.round(r));
}

// heard formats a last-event age.
export function heard(seconds) {
  const s = seconds ?? 0;
  if (s < 0.95) return `${Math.round(s * 1000)} ms`;
  if (s < 10) return `${s.toFixed(1)} s`;
  return age(s);
}

// age formats a duration in at most two units, as kubectl does: 45s, 5m30s, 3h12m, 5d.
export function age(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 120) return `${s}s`;
  const m = Math.floor(s / 60);
  if (m < 10) return s % 60 ? `${m}m${s % 60}s` : `${m}m`;
  if (m < 180) return `${m}m`;
  const h = Math.floor(m / 60);
  if (h < 8) return m % 60 ? `${h}h${m % 60}m` : `${h}h`;
  if (h < 48) return `${h}h`;
  const d = Math.floor(h / 24);
  if (h < 192) return h % 24 ? `${d}d${h % 24}h` : `${d}d`;
  if (d < 730) return `${d}d`;
  const y = Math.floor(d / 365);
  return d % 365 && y < 8 ? `${y}y${d % 365}d` : `${y}y`;
}

// plural joins a number and its noun.
export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

// clock is the time of day.
export function clock(date) {
  return date.toTimeString().slice(0, 8);
}
