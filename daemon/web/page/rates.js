// Events per second, computed from totals, and which resources are quiet.

const KEPT = 60; // samples, one a second
const QUIET_AFTER = 30; // seconds without an event
const LEAST = 0.5; // minimal seconds between two documents for a rate

// Rates compares each document with the previous one.
export class Rates {
  #tracks = new Map();
  #time = 0;
  #arrived = 0;

  // take adds a document that arrived at a time of the local clock, in milliseconds, and returns whether there are
  // rates now, which needs two documents. A document that comes too soon after another is ignored.
  take(doc, arrived = performance.now()) {
    const time = Date.parse(doc.now) / 1000;
    const passed = this.#time ? between(time - this.#time, (arrived - this.#arrived) / 1000) : 0;
    if (this.#time && passed < LEAST) return false;
    this.#time = time;
    this.#arrived = arrived;
    const seen = new Set();
    for (const cluster of doc.clusters) {
      let sum = 0;
      for (const r of cluster.resources ?? []) {
        const id = key(cluster.name, r);
        seen.add(id);
        sum += this.#step(id, r.events, passed, time, r.queue > 0);
      }
      seen.add(cluster.name);
      this.#note(cluster.name, passed > 0 ? sum : null, time, false);
    }
    for (const id of this.#tracks.keys()) if (!seen.has(id)) this.#tracks.delete(id);
    return passed > 0;
  }

  #step(id, total, passed, time, busy) {
    const before = this.#tracks.get(id)?.total;
    // A smaller total means that the counter was reset.
    const rate = before === undefined || total < before || passed <= 0 ? 0 : (total - before) / passed;
    const track = this.#note(id, before === undefined ? null : rate, time, busy);
    track.total = total;
    return rate;
  }

  #note(id, rate, time, busy) {
    let track = this.#tracks.get(id);
    if (!track) {
      track = { rate: 0, history: [], active: -Infinity, total: undefined };
      this.#tracks.set(id, track);
    }
    if (busy) track.active = time;
    if (rate === null) return track; // a rate needs two totals
    track.rate = rate;
    track.history.push(rate);
    if (track.history.length > KEPT) track.history.shift();
    if (rate > 0) track.active = time;
    return track;
  }

  // of returns the rate and the last minute of a resource, or of a whole cluster.
  of(cluster, r) {
    return this.#tracks.get(r ? key(cluster, r) : cluster) ?? { rate: 0, history: [], active: -Infinity };
  }

  // quiet: the resource has no error, is not being listed and has had no recent events.
  quiet(cluster, r) {
    if (troubled(r) || r.state === 'listing') return false;
    return r.queue === 0 && this.#time - this.of(cluster, r).active > QUIET_AFTER;
  }
}

// between returns the time between two documents. The server's clock is right when documents were delayed on the way;
// the local clock is more exact when the server's has only whole seconds.
function between(theirs, ours) {
  return ours > 0.5 && Math.abs(theirs - ours) <= 1 ? ours : theirs;
}

// troubled: the resource has an error.
export function troubled(r) {
  return Boolean(r.error) || r.state === 'retrying';
}

function key(cluster, r) {
  return `${cluster}/${r.group}/${r.version}/${r.resource}`;
}
