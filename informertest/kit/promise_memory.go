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

// checkPeak syncs many pods that are mostly text, so that an encoded one is as
// large as a decoded one and whatever is held twice shows. The text is random, and each
// pod's its own: a subject that keeps equal parts once, or compresses, keeps it too.
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
	for range peakTries {
		grown, most = k.syncMeasured()
		if grown < count*size/2 {
			k.fatalf("%d pods of %d bytes made the heap grow by %d bytes only: this measures nothing", count, size, grown)
		}
		if most <= grown*3/2 {
			return
		}
	}
	k.errorf("the heap grew by %d MiB while syncing and by %d MiB in all", most>>20, grown>>20)
}

// peakTries is how often a sync is measured until one stays within its bound. What is allocated while the collector
// runs counts as live until its next run; where others have the processor that it runs on, that is as much as was
// held. Whoever holds a list does so each time.
const peakTries = 6

// syncMeasured lets a subject sync, and gives by how much the live heap has grown with it and meanwhile.
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

// liveHeap is what a collection leaves.
func liveHeap() uint64 {
	// What a finalizer or a pool holds goes with the second collection.
	runtime.GC()
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// watchHeap makes the collector run often and notes what each run leaves, until
// the returned function is called, which gives the highest.
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
