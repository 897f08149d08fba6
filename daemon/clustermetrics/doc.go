// Package clustermetrics exports the clusters of a fleet to Prometheus. Package metrics exports single mirrors, which
// are too many in a large fleet.
//
// What it promises:
//
//   - The number of series is bounded: each cluster has a fixed set, one series for each reason of failure, and one for
//     each kind of problem. The resources of all clusters have series for the two hundred with most bytes, and one for
//     the others.
//   - Counters do not decrease when a mirror of the cluster ends.
//   - Metrics cost nothing between scrapes.
//
// The names of metrics begin with mirador_cluster_, mirador_resource_ and mirador_fleet_.
package clustermetrics
