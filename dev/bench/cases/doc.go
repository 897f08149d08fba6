// Package cases has the measurements, one file for each row or group of rows of the
// table. Each file has the work of both sides next to each other, so that a reader
// can see that it is the same work.
//
// [All] lists them in the order of the table. How our side is opened is in ours.go,
// how client-go's is in peer.go.
package cases
