// The state of the fleet, from the lines of /clusters?watch=true: the first line has everything, each later one what
// has changed. There is a line when something has changed, and at least every ten seconds.

// A last-event age from this many seconds on is sent as a change. It grows until another line has the resource.
const QUIET = 120;

const byName = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
const key = (r) => `${r.group}/${r.version}/${r.resource}`;

// Report combines the lines.
export class Report {
  #doc = null;

  // take adds a line and returns the state of the fleet as a document.
  take(line) {
    const clusters = new Map();
    if (!line.whole && this.#doc) for (const c of this.later(line.now).clusters) clusters.set(c.name, c);
    for (const name of line.left ?? []) clusters.delete(name);
    for (const c of line.clusters ?? []) clusters.set(c.name, c);
    for (const c of line.changed ?? []) {
      const known = clusters.get(c.name);
      if (!known) continue;
      const changed = new Map(c.resources.map((r) => [key(r), r]));
      clusters.set(c.name, { ...c, resources: known.resources.map((r) => changed.get(key(r)) ?? r) });
    }
    for (const [name, lastHeardSeconds] of Object.entries(line.lastHeard ?? {})) {
      if (clusters.has(name)) clusters.set(name, { ...clusters.get(name), lastHeardSeconds });
    }
    this.#doc = { now: line.now, memory: line.memory, disk: line.disk, clusters: [...clusters.values()].sort(byName) };
    return this.#doc;
  }

  // later returns the document for a later time until which nothing has changed.
  later(now) {
    const passed = (Date.parse(now) - Date.parse(this.#doc.now)) / 1000;
    const age = (r) => (r.lastHeardSeconds >= QUIET ? { ...r, lastHeardSeconds: r.lastHeardSeconds + passed } : r);
    const clusters = this.#doc.clusters.map((c) => ({ ...c, resources: (c.resources ?? []).map(age) }));
    return { ...this.#doc, now, clusters };
  }
}
