// Package load fills a cluster with pods that look like those of a working
// cluster and, if asked to, keeps changing them.
//
// Pods come from templates. Each template has a Job that owns its pods; the Job
// is marked as managed by this package, so that Kubernetes' own Job controller
// leaves it and its pods alone while the garbage collector still finds their
// owner. Pods are created as the controller manager creates them and get their
// status as the kubelet writes it, so that defaults and managedFields are what
// a real server makes of that.
//
// What it promises:
//
//   - The same seed gives the same templates and pod names; only what is random
//     in a real cluster too (ids, times, addresses) differs.
//   - Running it again tops up: what is there counts, and is not made twice.
//   - An error of the server is retried a bounded number of times, then
//     reported.
package load
