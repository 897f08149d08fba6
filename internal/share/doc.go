// Package share replaces equal parts of different objects by one part. Many pods have the same containers, labels and
// statuses; a mirror needs to store each of them once.
//
// A Table serves a store: Share returns an object whose nested strings, slices, maps and pointers are the table's
// where the table has equal ones, and Release states that an object is no longer stored. Strings is a smaller
// alternative for decoders: a cache of fixed size that replaces equal strings by one. Equal, Hash and Diff compare
// objects as sharing needs it, to the last bit.
//
// What it promises:
//
//   - Share returns an object that is Equal to its argument, for any type (P15): nil and empty differ, floats are
//     compared by their bits, and unexported fields count. Values that are known by their address and not by their
//     contents (channels, functions, locks, time zones, handles) are kept as they are. An object with cycles is kept
//     whole, and counted.
//   - Share never writes to an object that other code refers to, nor to anything that it returned before, so readers
//     need no lock. It does not read what it returned either: a reader that writes to an object by mistake damages
//     that object, and perhaps others that share the part, but not the table.
//   - Slices have no capacity beyond their length, so an append by a reader cannot change a neighbour.
//   - An entry leaves the table with the last stored object that uses it. After the last Release the table is empty.
//   - A part enters the table when it is seen for the second time, so a part that only one object has costs the table
//     nothing. Entries do not keep the buffer that a string was cut from.
//   - Colliding hashes cost only time: contents are always compared.
//   - There are no goroutines, finalizers or locks. One goroutine may use a Table or Strings at a time; any goroutine
//     may call Equal, Hash and Diff.
//
// # How it works
//
// Each type has a plan, compiled once: which parts of its memory are plain, and the offsets of its strings, pointers,
// slices, maps and interfaces. A first walk along the plan hashes every part of the object. A second walk starts at
// the top: a part that the table has is replaced as a whole, and the walk does not go below it; below any other part
// the walk continues. So the containers of a pod, which the name of one volume makes unique, stay the pod's own, while
// their environment, probes and resources are shared.
//
// An entry has the part that objects refer to, and a copy of the table's own, with which new parts are compared.
// Entries count the references to them, from stored objects and from other entries. Share returns the numbers of those
// that an object uses, and Release takes them back.
package share
