package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const (
	writerCount  = 4
	writerNames  = 25                    // objects that each has of each resource
	writerPause  = 60 * time.Millisecond // between two changes of one writer
	writeTimeout = 5 * time.Second
)

// writers change ConfigMaps and widgets all the time, whatever happens to the
// server, and remember what it said it did.
type writers struct {
	client dynamic.Interface
	ns     string
	// gate is held by those who want the server quiet, and shared by every change.
	gate sync.RWMutex
	// served says whether there are widgets, size of which type their size is.
	served, textual atomic.Bool
	done, failed    atomic.Int64

	mu    sync.Mutex
	model map[subject]outcome
}

// subject names an object that a writer looks after.
type subject struct {
	resource schema.GroupVersionResource
	name     string
}

// outcome is what the server said last of an object. Where it said nothing, nobody
// knows.
type outcome struct {
	version string // "" if it is gone
	sure    bool
}

// start writes until the returned function is called.
func (w *writers) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for i := range writerCount {
		running.Go(func() { w.write(ctx, i, rand.New(rand.NewPCG(1, uint64(i)))) })
	}
	return sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
}

func (w *writers) write(ctx context.Context, writer int, random *rand.Rand) {
	tick := time.NewTicker(writerPause)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		o := subject{configMaps, fmt.Sprintf("w%d-%02d", writer, random.IntN(writerNames))}
		if random.IntN(3) == 0 {
			o.resource = widgets
		}
		w.gate.RLock()
		if o.resource == configMaps || w.served.Load() {
			w.change(ctx, o, n, random.IntN(3) == 0)
		}
		w.gate.RUnlock()
	}
}

// change creates an object that is not there, and changes or deletes one that is.
func (w *writers) change(ctx context.Context, o subject, n int, remove bool) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	w.mu.Lock()
	last := w.model[o]
	w.mu.Unlock()
	api := w.client.Resource(o.resource).Namespace(w.ns)
	var (
		got *unstructured.Unstructured
		err error
	)
	switch {
	case last.version == "" && last.sure:
		got, err = api.Create(ctx, w.content(o, n), metav1.CreateOptions{})
	case remove:
		err = api.Delete(ctx, o.name, metav1.DeleteOptions{})
	default:
		got, err = api.Patch(ctx, o.name, types.MergePatchType, w.patch(o, n), metav1.PatchOptions{})
	}
	now := outcome{sure: true}
	switch {
	case err == nil && got != nil:
		now.version = got.GetResourceVersion()
	case err == nil, apierrors.IsNotFound(err):
	default: // it may have happened or not
		now.sure = false
		w.failed.Add(1)
	}
	w.done.Add(1)
	w.mu.Lock()
	w.model[o] = now
	w.mu.Unlock()
}

// size is what a widget's size is set to: its type depends on the schema.
func (w *writers) size(n int) any {
	if w.textual.Load() {
		return fmt.Sprint("size ", n)
	}
	return int64(n)
}

func (w *writers) content(o subject, n int) *unstructured.Unstructured {
	meta := map[string]any{"name": o.name}
	if o.resource == widgets {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "chaos.mirador.dev/v1", "kind": "Widget",
			"metadata": meta, "spec": map[string]any{"size": w.size(n)}}}
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": meta, "data": map[string]any{"n": fmt.Sprint(n)}}}
}

func (w *writers) patch(o subject, n int) []byte {
	if o.resource == widgets {
		if w.textual.Load() {
			return fmt.Appendf(nil, `{"spec":{"size":"size %d"}}`, n)
		}
		return fmt.Appendf(nil, `{"spec":{"size":%d}}`, n)
	}
	return fmt.Appendf(nil, `{"data":{"n":"%d"}}`, n)
}

// forget drops what is known of a resource whose objects went all at once.
func (w *writers) forget(resource schema.GroupVersionResource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for o := range w.model {
		if o.resource == resource {
			delete(w.model, o)
		}
	}
}

// agree checks what the server lists against what it said when it was written to.
// Nobody writes meanwhile.
func (w *writers) agree(t *testing.T, resource schema.GroupVersionResource, listed map[string]string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for o, want := range w.model {
		if got := listed[w.ns+"/"+o.name]; o.resource == resource && want.sure && got != want.version {
			t.Errorf("the server lists %s %s at %q, but said %q when it was written", o.resource.Resource,
				o.name, got, want.version)
		}
	}
}
