package store

import (
	"fmt"
	"testing"

	"github.com/mirador-k8s/mirador/object"
)

func TestLayoutCountsTheBytesOfPackedObjects(t *testing.T) {
	w := mustNew(t, Options[thing]{Layout: Packed, Codec: thingCodec})
	commit(w, func() {
		for i := range 500 {
			put(w, i+1, fmt.Sprintf("key-%d", i), fmt.Sprintf("some colour that is %d shades of another", i))
		}
	})
	full := w.Reader().Layout().Bytes
	if full < 500 {
		t.Fatalf("500 objects take %d bytes", full)
	}
	commit(w, func() {
		for i := range 500 {
			w.Delete(object.Key(fmt.Sprintf("key-%d", i)), "1000")
		}
	})
	if left := w.Reader().Layout().Bytes; left >= full {
		t.Errorf("after all objects were deleted, %d bytes of %d are left", left, full)
	}
	live := mustNew(t, Options[thing]{})
	commit(live, func() { put(live, 1, "a", "red") })
	if n := live.Reader().Layout().Bytes; n != 0 {
		t.Errorf("a live store counts %d packed bytes", n)
	}
}
