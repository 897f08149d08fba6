// Package query answers lists over snapshots of a store: who may see what, selectors, expressions,
// order, counts and pages, over one cluster or many. It reads nothing but the snapshots it is given, so no
// query ever reaches a cluster.
//
// An Engine answers Requests over Views, which are snapshots with the names of their clusters. Objects are
// JSON, whatever type the store has for them; the Engine gets their bytes by a function.
//
// What it promises:
//
//   - The Authorizer is asked first: for each cluster of a request, and for each page again, before anything is
//     counted, paged or evaluated. A request is answered as a whole or refused as a whole. A list over all
//     namespaces needs the right to all of them; there is no list of what happens to be allowed.
//
//   - One moment. All pages of a list are of the snapshots of its first page. A token is of one small length,
//     cannot be guessed, and is good for the user and the request it was given for. Lists that were not
//     read to their end are held up to a number and an age; after that their tokens are ErrExpired. The last
//     16 pages of a list can be asked for again, until its end was read.
//
//   - One order. Items come by cluster, then by key, or by the paths of an Order; equal ones by cluster and key.
//     The same snapshots give the same list, whatever the pages.
//
//   - No page looks again at what the pages before it looked at. A list with an order is sorted once.
//
//   - Bounded work. A request ends with ErrTooMuch when it looks at more objects, finds more, gathers more
//     bytes or takes longer than its Limits allow; an expression, when it costs more than 100,000 on one object.
//     A cancelled context ends it after at most some hundred objects. Request.Pace is called every few objects, so
//     that a caller with many requests can let them take turns.
//
//   - No text of a request makes it panic. What is wrong with one is said as ErrInvalid, with the place.
//
// # Selecting
//
// Label selectors are those of Kubernetes. Field selectors have its syntax and take any path, not a few: a field that
// is absent or null compares as "", a bool or a number by its JSON text, and an object or array is an error.
// metadata.name and metadata.namespace are answered from the key. ParseFieldsWith gives labels another meaning.
//
// An expression (Where) is CEL on object, metadata, spec, status and cluster:
//
//	spec.containers.exists(c, c.image.endsWith(':latest')) && metadata.namespace != 'kube-system'
//
// A field that is not there makes the object not match, where the expression depends on it; has() and the optional
// syntax of CEL ask for it. An expression that fails otherwise, such as 'a' < 1, fails the request.
//
// # What is used to be fast
//
// A namespace is read by the index "namespace", where a snapshot has one, and else from the order of the keys; an
// object whose namespace and name are given, by its key. Labels that must have one of some values are found by the
// index "label", with values such as app=web, where a snapshot has one and that is less work than to read; objects
// that it alone decides about are not read at all. Documents are not decoded: a Doc goes over the bytes once, and
// selectors compare them where they are. Expressions see objects the same way, field by field.
package query
