// Package cases has the measurements, one file for each row or group of rows of the table. Each file has the work of
// both sides next to each other, so that a reader can see that it is the same work.
//
// [All] returns them in the order of the table. ours.go opens our side, peer.go client-go's.
package cases
