package cache

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"

	"github.com/mirador-k8s/mirador/store"
)

// detectMutations is client-go's environment variable, read once at start-up.
var detectMutations, _ = strconv.ParseBool(os.Getenv("KUBE_CACHE_MUTATION_DETECTOR"))

// NewCacheMutationDetector returns a detector that panics after a write to a cached
// object, if KUBE_CACHE_MUTATION_DETECTOR=true is set in the environment. Otherwise it
// does nothing.
func NewCacheMutationDetector(name string) MutationDetector {
	if !detectMutations {
		return noDetector{}
	}
	return newDetector(name)
}

// mutated ends the program, as client-go's detector does, with a message that names the
// handlers and readers that received the object. It panics in a goroutine of its own so
// that no caller recovers it.
var mutated = func(cache string, w store.Written) {
	go panic(fmt.Sprintf("cache %s: %s", cache, w))
}

// verify checks all objects of an informer once a second. The objects that handlers and
// readers receive are checked at that time.
func (s *sharedIndexInformer) verify(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for e := range s.engine.Snapshot().Entries() {
				e.Verify()
			}
		}
	}
}

type noDetector struct{}

func (noDetector) AddObject(any)       {}
func (noDetector) Run(<-chan struct{}) {}

// detector copies objects and compares them with the copies once a second, for two to
// four minutes.
type detector struct {
	name  string
	every time.Duration
	keep  time.Duration
	fail  func(message string)

	mu            sync.Mutex
	recent, older []trackedObject
	rotated       time.Time
}

// trackedObject is an object and its copy.
type trackedObject struct{ obj, original runtime.Object }

func newDetector(name string) *detector {
	return &detector{name: name, every: time.Second, keep: 2 * time.Minute, rotated: time.Now(),
		fail: func(message string) { panic(message) }}
}

// AddObject starts tracking an object.
func (d *detector) AddObject(obj any) {
	o, ok := obj.(runtime.Object)
	if !ok {
		return
	}
	w := trackedObject{o, o.DeepCopyObject()}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.recent = append(d.recent, w)
}

// Run compares until stopCh is closed.
func (d *detector) Run(stopCh <-chan struct{}) {
	tick := time.NewTicker(d.every)
	defer tick.Stop()
	for {
		d.compare()
		select {
		case <-stopCh:
			return
		case <-tick.C:
		}
	}
}

func (d *detector) compare() {
	d.mu.Lock()
	if time.Since(d.rotated) > d.keep {
		d.recent, d.older, d.rotated = nil, d.recent, time.Now()
	}
	all := append(append([]trackedObject(nil), d.older...), d.recent...)
	d.mu.Unlock()
	for _, w := range all {
		if !reflect.DeepEqual(w.obj, w.original) {
			d.fail(fmt.Sprintf("a handler or reader of cache %s changed a cached object; copy it before changing it:\n%s",
				d.name, diff.Diff(w.original, w.obj)))
			return
		}
	}
}
