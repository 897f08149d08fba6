package kit

import (
	"encoding/base64"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync/atomic"

	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informertest"
)

// boundedStart is P16: live memory while syncing stays close to the final size.
func boundedStart() []promise {
	return []promise{
		{"P16_WatchedStateIsNotHeldTwice", func(k *kit) { k.checkPeak() }},
		{"P16_ListIsNotHeldWhole", func(k *kit) {
			k.server.Inject(informertest.Fault{RefuseInitialEvents: true})
			k.checkPeak()
		}},
	}
}

// checkPeak syncs many pods that are mostly text, so that an encoded pod is as large as a decoded one and anything
// kept twice shows. The text is random and different in each pod, so that a subject that shares equal parts, or
// compresses, cannot save memory.
func (k *kit) checkPeak() {
	const count, size = 2000, 16 << 10
	random := rand.NewChaCha8([32]byte{})
	filler := make([]byte, (size-64)*3/4)
	for i := range count {
		p := k.pod("pod-" + strconv.Itoa(10000+i))
		_, _ = random.Read(filler) // it never fails
		p.Annotations = map[string]string{"filler": base64.StdEncoding.EncodeToString(filler)}
		if _, err := k.server.Create(p); err != nil {
			k.fatalf("%v", err)
		}
	}
	k.warm()
	var grown, most int64
	within := 0
	for range peakTries {
		grown, most = k.syncMeasured()
		if grown < count*size/2 {
			k.fatalf("%d pods of %d bytes made the heap grow by only %d bytes: the measurement is invalid", count, size, grown)
		}
		if most <= grown*3/2 {
			within++
		}
		if within == 2 {
			return
		}
	}
	k.errorf("the heap grew by %d MiB while syncing and by %d MiB in total", most>>20, grown>>20)
}

// peakTries is how often a sync is measured until two stay within the bound. Objects allocated while the collector runs
// count as live until its next run, which on a busy machine can be as much as was allocated. A subject that keeps a
// whole list exceeds the bound nearly every time: rarely, the collector does not run while the list is there.
const peakTries = 6

// syncMeasured lets a subject sync, and returns the growth of the live heap after the sync and its highest growth
// during it.
func (k *kit) syncMeasured() (grown, most int64) {
	peak := watchHeap()
	base := liveHeap()
	s := k.subject()
	r := k.startSynced(s)
	highest := peak()
	final := liveHeap()
	runtime.KeepAlive(s)
	r.cancel()
	<-r.done
	return int64(final) - int64(base), int64(highest) - int64(base)
}

// warm makes the server encode everything once, so that its own memory no longer grows.
func (k *kit) warm() {
	client, err := rest.HTTPClientFor(k.setup.Config)
	if err != nil {
		k.fatalf("%v", err)
	}
	defer client.CloseIdleConnections()
	for _, form := range []string{kruntime.ContentTypeJSON, kruntime.ContentTypeProtobuf} {
		req, err := http.NewRequest(http.MethodGet, k.setup.Config.Host+"/api/v1/pods", nil)
		if err != nil {
			k.fatalf("%v", err)
		}
		req.Header.Set("Accept", form)
		resp, err := client.Do(req)
		if err != nil {
			k.fatalf("list the pods: %v", err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || n == 0 {
			k.fatalf("list the pods: %d, %d bytes, %v", resp.StatusCode, n, err)
		}
	}
}

// liveHeap returns the size of the heap after a collection.
func liveHeap() uint64 {
	// Objects held by a finalizer or a pool are freed by the second collection.
	runtime.GC()
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// watchHeap makes the collector run often and records the live heap after each run, until the returned function is
// called, which returns the highest value.
func watchHeap() (peak func() uint64) {
	var highest atomic.Uint64
	var over atomic.Bool
	var again func()
	again = func() {
		runtime.AddCleanup(new([16]byte), func(int) {
			sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
			metrics.Read(sample)
			for live := sample[0].Value.Uint64(); ; {
				if old := highest.Load(); live <= old || highest.CompareAndSwap(old, live) {
					break
				}
			}
			if !over.Load() {
				again()
			}
		}, 0)
	}
	before := debug.SetGCPercent(5)
	again()
	return func() uint64 {
		over.Store(true)
		debug.SetGCPercent(before)
		return highest.Load()
	}
}
