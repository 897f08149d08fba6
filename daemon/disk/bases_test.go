package disk

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mirador-k8s/mirador/object"
)

// All bases are read before the first state. One that is damaged does harm only if a state needs it.
func TestADamagedBaseHarmsOnlyWhatNeedsIt(t *testing.T) {
	d := mustOpen(t, "data", quiet(vfs.NewMem()))
	defer mustClose(t, d)
	beginResource(t, d, pods, ResourceOptions{})
	m, b := newMirror(t, pods), d.NewBatch()
	for i := range 40 {
		key := object.Key(fmt.Sprint("shop/pod-", i))
		b.Put(pods, m.state(t, key, i+1, start, jsonOf(key, i%4, i+1, "x")))
	}
	b.Reach(pods, "40", start)
	mustCommit(t, b)
	id := d.writer.resources[pods].desc.id
	for _, c := range []struct {
		base    uint32
		damaged bool
	}{{999, false}, {1, true}} {
		if err := d.engine.db.Set(appendBase(nil, id, c.base), []byte{1}, pebble.Sync); err != nil {
			t.Fatal(err)
		}
		r, err := d.Restore(pods)
		if err != nil {
			t.Fatal(err)
		}
		states := 0
		var failed error
		for _, err := range r.States() {
			if failed = err; err == nil {
				states++
			}
		}
		var damage *DamageError
		if errors.As(failed, &damage) != c.damaged || (states == 40) == c.damaged {
			t.Errorf("with a damaged base %d, %d states are read, and then: %v", c.base, states, failed)
		}
	}
}
