package main

import (
	"log/slog"
	"runtime"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

func releasedBytes() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func TestWhatOnlyTheStartHasNeededIsReturned(t *testing.T) {
	const size = 64 << 20
	needed := make([]byte, size)
	for i := range needed {
		needed[i] = 1
	}
	runtime.KeepAlive(needed)
	before := int64(releasedBytes())
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		afterStart(t.Context(), func() []*fleet.Cluster { return nil }, nil, slog.New(slog.DiscardHandler))
		if took := time.Since(began); took != readCheckEvery {
			t.Errorf("it took %s", took)
		}
	})
	if n := int64(releasedBytes()) - before; n < size/2 {
		t.Errorf("%d bytes were released", n)
	}
}
