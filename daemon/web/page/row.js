// A row of a Table with only what the page needs, since there may be fifty thousand rows.

// The annotation with the cluster of an object at /fleet.
const CLUSTER = 'mirador.dev/cluster';

// rowOf converts a row of a Table. place sorts rows in the server's order: by cluster, then by namespace and name.
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
