// Package server answers the Kubernetes API, read-only, from the mirrors of a fleet.
//
//	fl, err := fleet.New(fleet.Options{})
//	srv, err := server.New(fl, server.Options{})
//	go fl.Run(ctx)
//	go srv.Run(ctx)
//	err = http.ListenAndServe("127.0.0.1:8090", srv)
//
// Below /clusters/{name} a cluster is served as it would serve itself: discovery, GET, LIST and WATCH of
// all that is mirrored, as JSON, as Table and as PartialObjectMetadata, a watch as a WebSocket too. Of a resource
// with several versions one is mirrored, the one that the cluster prefers; a request for another is told which. Below
// /fleet all clusters are served at once: an object of cluster eu in namespace web is in namespace eu.web there, one
// without a namespace has the name eu:name, the namespace itself eu.web, and versions are the daemon's own.
// References between objects have these names too: a pod's node, what an event is about, owners, volumes and claims,
// endpoints, roles; names of classes stay as they are. Selectors, expressions and orders see objects as they are
// shown, but for their versions; metadata.name and metadata.namespace in a field selector may also be a cluster's
// own, and then mean those of every cluster. /clusters tells how all is doing, and lets clusters join and leave.
// With watch=true it goes on: each line after the first has what changed (see ReportUpdate), and a line comes every 10
// seconds though nothing did.
//
// /livez, /healthz and /readyz are about the daemon, by any name and without a token, for kubelets: it is ready once
// /fleet is answered, whatever happens to a cluster later. ?verbose shows each cluster, and needs the token. The same
// paths below /clusters/{name} are about that cluster.
//
// What it promises:
//
//   - No answer asks anything of a cluster. This package cannot: it knows no source.
//   - One dead cluster delays no answer about others. A cluster that was never read is left out of /fleet, and a
//     Warning header names it; where it was asked for by name, or a complete answer was (complete=true), the answer
//     is 503. One that was read and cannot be reached any more is shown as it was last seen.
//   - A restart does not look like a deletion: /fleet is 503 with Retry-After until every cluster that was a member
//     when Run began is synced, or has been unreachable for Options.StartGrace. Clusters that come later are told as
//     additions.
//   - A watch tells every change after its version in order, or ends with 410. Whoever reads too slowly is ended
//     so, and nothing is kept for him. An object that leaves a selection is told as deleted.
//   - Pages of a list are of one snapshot.
//   - Work is bounded: by request, by rate, by the number of watches, and in total for all requests that are being
//     answered, in processors and in memory. A client has its share of each, so that scans, slow readers and floods of
//     one client do not delay the others, and a GET is quick beside any number of scans. What exceeds a share is 429
//     with Retry-After.
//   - It is for this machine alone unless Access says otherwise, and then needs a token and TLS. A page of
//     another origin, or a strange name that leads here, is refused.
//   - A write is 405, and so is what only the cluster's own server can do, such as logs, exec and port-forward. The
//     answer names that server. The reviews in which a user asks what it may do are answered: to get, list and watch
//     what is mirrored, and nothing else.
//   - A fleet does not mirror itself: a request that it sent is refused below /fleet with 508.
//   - Every way in which a watch ends is told such that the client misses nothing: it goes on from its version, or
//     lists again.
//
// Beyond what an API server knows, lists and watches take where=, an expression in CEL, clusters= and complete=; lists
// take orderBy=; and field selectors work on any field. A field label that an API server knows means what it means
// there, computed and defaulted values included: spec.unschedulable=false finds the nodes without that field. Any
// other label must be the path of a string, number or bool in the schema of the kind; else it is refused in the
// server's own words. Of a kind that is neither built in nor defined by a CustomResourceDefinition, only the metadata
// is known.
package server
