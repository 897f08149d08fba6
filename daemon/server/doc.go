// Package server answers the Kubernetes API, read-only, from the mirrors of a fleet.
//
//	fl, err := fleet.New(fleet.Options{})
//	srv, err := server.New(fl, server.Options{})
//	go fl.Run(ctx)
//	go srv.Run(ctx)
//	err = http.ListenAndServe("127.0.0.1:8090", srv)
//
// /clusters/{name} serves one cluster the way its own API server does: discovery, GET, LIST and WATCH of every
// mirrored resource, as JSON, as Table and as PartialObjectMetadata; a watch may also be a WebSocket. If a resource
// has several versions, only the version that the cluster prefers is mirrored, and the answer to a request for
// another one names it.
//
// /fleet serves all clusters at once. An object of cluster eu in namespace web is in namespace eu.web there. An object
// without a namespace has the name eu:name, and the namespace itself has the name eu.web. A list or watch of namespace
// web, without a cluster, has the objects of that namespace of every cluster. Versions are the daemon's own. References
// between objects use these names too: a pod's node, the object of an event, owners, volumes and claims, endpoints,
// roles; names of classes are not changed. Selectors, expressions and orders see objects as they are shown, except for
// their versions. In a field selector, metadata.name and metadata.namespace may also be names without a cluster, which
// match objects of every cluster.
//
// /clusters reports the health of all clusters, and lets clusters join and leave. With watch=true the answer
// continues: each line after the first has what changed (see ReportUpdate), and there is a line at least every 10
// seconds even if nothing changes.
//
// /livez, /healthz and /readyz report the health of the daemon. For kubelets, they accept any host name and need no
// token. The daemon is ready once /fleet is answered, and stays so if a cluster fails later. ?verbose shows each
// cluster and needs the token. The same paths below /clusters/{name} report the health of that cluster.
//
// The package promises:
//
//   - No request reaches a cluster. This package cannot even send one: it does not import a source.
//   - One dead cluster delays no answer about others. A cluster that was never read is left out of /fleet, and a
//     Warning header names it; if the request names it or asks for a complete answer (complete=true), the answer is
//     503. A cluster that was read and can no longer be reached is shown in its last known state.
//   - A restart does not look like a deletion: /fleet is 503 with Retry-After until every cluster that was a member
//     when Run began is synced, or has been unreachable for Options.StartGrace. The objects of clusters that become
//     ready later are sent to watches as additions.
//   - A watch sends every change after its version in order, or ends with 410. A watch whose client reads too slowly
//     ends in this way, and its queue is dropped. An object that no longer matches a selector is sent as deleted.
//   - All pages of a list are from one snapshot.
//   - Work is bounded: per request, by rate, by the number of watches, and in total for all requests in progress, in
//     processors and in memory. Each client has a share, so that scans, slow readers and floods of one client do not
//     delay the others, and a GET is quick beside any number of scans. A request beyond the share is 429 with
//     Retry-After.
//   - It serves only this machine unless Access allows more, and then needs a token and TLS. Requests for an unknown
//     host name are refused, and so are those from a page of another origin, unless a bearer token shows that a
//     program sends them.
//   - A write is 405, and so is what only the cluster's own server can do, such as logs, exec and port-forward. The
//     answer names that server. Self-reviews, in which users ask what they may do, are answered: they may get, list
//     and watch mirrored resources, and nothing else.
//   - A fleet does not mirror itself: a request of its own is refused below /fleet with 508.
//   - However a watch ends, its client misses nothing: it either continues from its version or is asked to relist.
//
// In addition to what an API server has, lists and watches take where=, an expression in CEL, clusters= and complete=;
// lists take orderBy=; and field selectors work on any field. A field label that an API server knows has the same
// meaning here, including computed and defaulted values: spec.unschedulable=false finds the nodes without that field.
// Any other label must be the path of a string, number or bool in the schema of the kind, or else it is refused with
// the API server's own message. If a kind is neither built in nor defined by a CustomResourceDefinition, only its
// metadata is known.
package server
