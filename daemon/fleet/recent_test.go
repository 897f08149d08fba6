package fleet

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

// What is not a chunk is an error, and what is one is encoded as it was.
func FuzzDecodeRecent(f *testing.F) {
	c := recentChunk{number: 7, segment: 5, broken: true, before: "9", settled: time.Unix(3, 4), start: "10", changes: []recentChange{
		{"web/a", "11", "11", time.Unix(1700000000, 3)}, {"web/b", "12", "", time.Unix(1700000001, 0)}}}
	f.Add(c.encode())
	c.broken = false
	f.Add(c.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeRecent(b)
		if err != nil {
			return
		}
		again, err := decodeRecent(c.encode())
		if err != nil || again.number != c.number || again.broken != c.broken || again.start != c.start ||
			again.segment != c.segment || again.before != c.before || !again.settled.Equal(c.settled) ||
			!slices.Equal(again.changes, c.changes) || !bytes.Equal(again.encode(), c.encode()) {
			t.Fatalf("%+v became %+v, %v", c, again, err)
		}
	})
}
