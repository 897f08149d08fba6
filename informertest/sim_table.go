package informertest

import (
	"fmt"
	"strings"
	"time"
)

// judged describes how each promise is checked, and what is not checked for a subject that runs freely.
var judged = []struct{ promise, what, free string }{
	{"P1", "the store equals the server half an hour after the last fault at the latest",
		"the same; a stream may stay silent forever, because this wire has no HTTP/2 pings"},
	{"P2", "no version of an object goes back except in a new epoch",
		"only in seeds without a restored etcd and stale reads: there are no epochs"},
	{"P3", "all handlers see one order; old is what the handler saw last", ""},
	{"P4", "inside a callback the store is at the event, or later", "as P2"},
	{"P5", "the whole initial state is delivered, marked, before synced",
		"for handlers added before the first list only the marks"},
	{"P6", "each added object is deleted once, by UID; missed deletes are marked", ""},
	{"P7", "slow, blocked and panicking handlers affect only themselves; the backlog is bounded",
		"without panics, which end its process, and without a bound, which is not offered"},
	{"P8", "every snapshot equals the model at its version, with its indexes, and never changes",
		"indexes alone; there are no snapshots"},
	{"P9", "a stop names the handlers that still run and leaves nothing running; the store stays readable; a start " +
		"can follow",
		"not offered; only that no event follows the end"},
	{"P10", "objects carry their kind", ""},
	{"P11", "requests are spaced by backoff and Retry-After; cancel is immediate",
		"by the bounds of our backoff; without cancel"},
	{"P12", "every failure is reported, counted and visible", "at least one report where answers were bad"},
	{"P13", "one transform for each version, and one more for each aborted list", ""},
	{"P14", "health's state, version and LastEvent are true", "not offered"},
}

// SimTable compares in how many seeds two subjects broke each promise: ours, which was stepped, and theirs, which ran
// freely.
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
