// A row of a Table, as small as the page needs it: fifty thousand of them are kept.

// The annotation that says, in the fleet's view, which cluster an object is of.
const CLUSTER = 'mirador.dev/cluster';

// rowOf keeps what the page needs of a Table's row. place is where the server's own order
// has it: by cluster, then by namespace and name.
export function rowOf(raw) {
  const meta = raw.object?.metadata ?? {};
  const served = meta.namespace ?? '';
  const name = meta.name ?? '';
  const cluster = meta.annotations?.[CLUSTER] ?? '';
  const namespace = cluster && served.startsWith(`${cluster}.`) ? served.slice(cluster.length + 1) : served;
  return {
    key: `${served}/${name}`,
    place: `${cluster}\u0000${namespace}/${name}`,
    served,
    name,
    cluster,
    namespace,
    created: meta.creationTimestamp ? Date.parse(meta.creationTimestamp) : 0,
    version: meta.resourceVersion ?? '',
    cells: raw.cells ?? [],
    touched: 0,
    gone: 0,
  };
}
