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
	writerNames  = 25                    // objects of each resource per writer
	writerPause  = 60 * time.Millisecond // between two changes of one writer
	writeTimeout = 5 * time.Second
)

// writers change ConfigMaps and widgets all the time, whatever happens to the server, and record its answers.
type writers struct {
	client dynamic.Interface
	ns     string
	// gate is locked to stop the writers, and read-locked by every change.
	gate sync.RWMutex
	// served says whether widgets are served, textual whether their size is a string.
	served, textual atomic.Bool
	done, failed    atomic.Int64

	mu    sync.Mutex
	model map[subject]outcome
}

// subject is an object that a writer changes.
type subject struct {
	resource schema.GroupVersionResource
	name     string
}

// outcome is the server's last answer for an object. Without an answer the state is unknown.
type outcome struct {
	version string // "" if it was deleted
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

// change creates an object that does not exist, and changes or deletes one that does.
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
	default: // the change may or may not have happened
		now.sure = false
		w.failed.Add(1)
	}
	w.done.Add(1)
	w.mu.Lock()
	w.model[o] = now
	w.mu.Unlock()
}

// size returns a value for a widget's size: its type depends on the schema.
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

// forget drops what is known of a resource whose objects were all deleted.
func (w *writers) forget(resource schema.GroupVersionResource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for o := range w.model {
		if o.resource == resource {
			delete(w.model, o)
		}
	}
}

// agree compares what the server lists with its answers to the writers. The writers are stopped meanwhile.
func (w *writers) agree(t *testing.T, resource schema.GroupVersionResource, listed map[string]string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for o, want := range w.model {
		if got := listed[w.ns+"/"+o.name]; o.resource == resource && want.sure && got != want.version {
			t.Errorf("the server lists %s %s at %q, but answered %q to the write", o.resource.Resource,
				o.name, got, want.version)
		}
	}
}
