package disk

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Nothing is compacted in the quiet time after the opening. What was to be compacted then is compacted at its end.
func TestNothingIsCompactedInTheQuietTime(t *testing.T) {
	o := quiet(vfs.NewMem())
	o.Quiet = time.Hour
	d := mustOpen(t, "data", o)
	defer mustClose(t, d)
	e := d.engine
	for i := range 2 * e.options.L0CompactionThreshold {
		b := d.NewBatch()
		b.SetMeta("counter", []byte{byte(i)})
		mustCommit(t, b)
		if err := e.flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	settle(d)
	if n := e.db.Metrics().Compact.Count; n != 0 {
		t.Errorf("%d compactions in the quiet time", n)
	}
	e.compacting.Reset(0)
	for e.db.Metrics().Compact.Count == 0 && t.Context().Err() == nil {
		settle(d)
	}
}
