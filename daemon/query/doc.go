// Package query answers lists over snapshots of a store, of one cluster or many: what is visible, selectors,
// expressions, order, counts and pages. It reads nothing but the snapshots it is given, so no query ever reaches a
// cluster.
//
// An Engine answers Requests over Views, which are snapshots with the names of their clusters. Objects are JSON,
// whatever type the store has for them; the Engine gets their bytes from a function.
//
// The package promises:
//
//   - Visibility comes first: an object that is not in the Visible set of its View is not counted, paged, compared or
//     evaluated, and no error or limit depends on it. If the set changes between two pages, the list has expired.
//
//   - One moment. All pages of a list are from the snapshots of its first page. A token has a small fixed length,
//     cannot be guessed, and is valid only for the user and the request it was made for. Unfinished lists are held up
//     to a number and an age; after that, their tokens are ErrExpired. Beyond the number, the user that holds the most
//     loses its oldest list. The last 16 pages of a list can be requested
//     again until its end has been read. A caller that can read the same snapshots again may continue a list that is not
//     held with Request.Resume.
//
//   - One order. Items are sorted by cluster and key, or by the paths of an Order; items with equal values are sorted
//     by cluster and key. The same snapshots give the same list, whatever the size of the pages.
//
//   - No page reads objects that earlier pages have read, unless the list is resumed. A list with an order is sorted
//     once.
//
//   - Bounded work. A request fails with ErrTooMuch if it reads more objects, finds more, collects more bytes or takes
//     longer than its limits allow, or if an expression costs more than 100,000 on one object. A cancelled context
//     ends it after at most a few hundred objects. Request.Pace is called every few objects, so that a caller with
//     many requests can let them take turns.
//
//   - No text in a request causes a panic. An invalid one is ErrInvalid, with the position of the mistake.
//
// # Selecting
//
// Label selectors are those of Kubernetes. Field selectors have the syntax of Kubernetes and accept any path: a field
// that is absent or null compares as "", a bool or a number by its JSON text, and an object or array is an error.
// metadata.name and metadata.namespace are read from the key. ParseFieldsWith gives labels another meaning.
//
// An expression (Where) is CEL on object, metadata, spec, status and cluster:
//
//	spec.containers.exists(c, c.image.endsWith(':latest')) && metadata.namespace != 'kube-system'
//
// If the expression depends on a field that an object does not have, the object does not match; has() and the optional
// syntax of CEL test for fields. An expression that fails for another reason, such as 'a' < 1, fails the request.
//
// # How it is fast
//
// Objects of a namespace are found by the index "namespace" if the snapshot has one, and otherwise by the order of the
// keys; an object with a known namespace and name is found by its key. Label selectors with =, == or in use the index
// "label", with values such as app=web, if the snapshot has one and that is less work than reading objects. Objects
// that the index decides about are not read at all. Documents are not decoded: a Doc scans the bytes once, and
// selectors compare them in place. Expressions read objects in the same way, field by field.
package query
