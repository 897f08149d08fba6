// Package feed gives both sides of a measurement the same input without a server:
//
//   - a [Server] that answers a client's requests inside the process, as an http.RoundTripper, from a file of encoded
//     watch events or from a generator, so that both sides decode the same bytes and no socket is involved;
//   - a [ListWatch] and a [Source] over pods that were made beforehand, so that the figures include no decoding and no
//     allocation by the driver.
//
// Pods are in the order in which a server lists them, the pods of one workload next to each other.
package feed
