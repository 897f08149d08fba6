package informertest

import (
	"fmt"
	"strings"
	"time"
)

// judged says how each promise is judged, and what a subject without its means is
// spared.
var judged = []struct{ promise, what, free string }{
	{"P1", "the store equals the server half an hour after the last fault at the latest",
		"the same; a stream may stay silent for ever, and this wire has no HTTP/2 pings that would end it"},
	{"P2", "no version of an object goes back unless a new epoch says so",
		"only in seeds without a restored etcd and stale reads: there is no epoch to tell"},
	{"P3", "all handlers see one order; old is what the handler saw last", ""},
	{"P4", "inside a callback the store is at the event, or later", "as P2"},
	{"P5", "the initial state comes marked, whole, before synced",
		"of handlers that join before the first list only the marks"},
	{"P6", "who was announced is announced deleted, once, by UID; missed is marked", ""},
	{"P7", "slow, blocked and panicking handlers hurt only themselves; the backlog is bounded",
		"without panics, which end its process, and without a bound, which is not offered"},
	{"P8", "every snapshot equals the model at its version, with its indexes, and never changes",
		"indexes alone; there are no snapshots"},
	{"P9", "a stop names who still runs and leaves nothing running, its state stays readable, and a start can follow",
		"not offered: nothing is told after the end"},
	{"P10", "objects carry their kind", ""},
	{"P11", "requests are spaced by backoff and Retry-After; cancel is immediate",
		"by the bounds of our backoff; without cancel"},
	{"P12", "every failure is reported, counted and visible", "at least one report where answers were bad"},
	{"P13", "one transform for each version, and one more for each list given up", ""},
	{"P14", "state, version and last word are what happens", "not offered"},
}

// SimTable shows beside each other in how many seeds two subjects broke a promise: one
// that was stepped, and one that ran free.
func SimTable(ours, theirs *SimSummary) string {
	var b strings.Builder
	fmt.Fprintf(&b,
		"| promise | broken by ours, of %d seeds | by client-go's, of %d | how client-go's is judged where that differs "+
			"|\n|---|---|---|---|\n", ours.Seeds, theirs.Seeds)
	for _, j := range judged {
		other := fmt.Sprint(theirs.Broken[j.promise])
		if strings.HasPrefix(j.free, "not offered") {
			other = "–"
			if n := theirs.Broken[j.promise]; n > 0 {
				other = fmt.Sprint(n)
			}
		}
		fmt.Fprintf(&b, "| %s: %s | %d | %s | %s |\n", j.promise, j.what, ours.Broken[j.promise], other, j.free)
	}
	fmt.Fprintf(&b, "\nOurs took %s, client-go's %s. Examples of what client-go's breaks:\n\n",
		ours.Took.Round(time.Second), theirs.Took.Round(time.Second))
	for _, j := range judged {
		if e := theirs.Example[j.promise]; e != "" {
			fmt.Fprintf(&b, "- %s: %s\n", j.promise, e)
		}
	}
	return b.String()
}
