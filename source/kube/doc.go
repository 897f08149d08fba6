// Package kube is a source over a real Kubernetes API server. It reads one
// resource in one of four forms:
//
//   - Typed: Go structs such as *corev1.Pod, over protobuf where there is one;
//   - Dynamic: unstructured maps, for any resource;
//   - Metadata: the metadata alone, which the server cuts out;
//   - Raw: the JSON as served, for those who keep or forward bytes.
//
// A source gives its state by a paged LIST or, where the server can, by a WATCH
// that starts with the state (WatchList), and its changes by a WATCH with
// bookmarks. It starts no goroutine and does not retry: whoever reads it decides
// what to do about an error, and the error's reason says what can be done.
//
// What it promises, beside the contract of package source:
//
//   - A list is decoded object by object while it arrives, in both encodings.
//     Neither a response nor a page is ever held whole; what is held is one
//     buffer, as large as the largest object (P16).
//   - Every object carries its apiVersion and kind (P10). PartialObjectMetadata
//     carries its own, as the server sends it.
//   - A response that is cut short, at whatever byte, or garbled, is an error of
//     reason Garbled, never a short list. A connection that breaks between two
//     events of a watch is Unavailable.
//   - An object that alone cannot be decoded costs that object: a list gives it as
//     an item whose Decode fails, a watch as Undecodable.
//   - No object above 64 MiB is taken in, and no length prefix is believed before
//     the bytes have come. An Allowance bounds the buffers of many sources together.
//   - No error text holds a query, a token or a whole object.
//
// What it does not keep: fields that a typed object's Go type does not have.
// Dynamic and Raw keep every field.
//
// The version of a paged list is its first page's.
package kube
