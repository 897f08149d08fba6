// Package kube is a source that reads from a Kubernetes API server. It reads one
// resource in one of four forms:
//
//   - Typed: Go structs such as *corev1.Pod, over protobuf if available;
//   - Dynamic: unstructured maps, for any resource;
//   - Metadata: only the metadata, which is all the server then sends;
//   - Raw: the JSON that the server sends, for programs that store or forward it.
//
// A source reads the state with a paged LIST or, if the server supports it, with a
// WATCH that begins with the state (WatchList), and the changes with a WATCH with
// bookmarks. It starts no goroutine and does not retry: its reader handles errors,
// and the reason of an error says how.
//
// Promises, in addition to the contract of package source:
//
//   - P16: A list is decoded object by object while it arrives, in both encodings.
//     Neither a response nor a page is ever in memory as a whole, only one buffer of
//     the size of the largest object.
//   - P10: Every object has its apiVersion and kind. PartialObjectMetadata has its own,
//     as sent by the server.
//   - A response that is cut short at any byte, or is malformed, results in an error
//     with reason Garbled, never in a shorter list. A connection that breaks between
//     two events of a watch is Unavailable.
//   - An object that cannot be decoded affects no other object: a list returns it as an
//     item whose Decode fails, a watch as Undecodable.
//   - Objects above 64 MiB are rejected, and memory is allocated for bytes that have
//     arrived, not for announced lengths. An Allowance bounds the buffers of several
//     sources together.
//   - No error text contains a query, a token or a whole object.
//
// Typed drops fields that the Go type does not have. Dynamic and Raw keep every field.
//
// The version of a paged list is the version of its first page.
package kube
