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

// detectMutations is client-go's switch, read once at the start.
var detectMutations, _ = strconv.ParseBool(os.Getenv("KUBE_CACHE_MUTATION_DETECTOR"))

// NewCacheMutationDetector watches over cached objects, if the environment says
// KUBE_CACHE_MUTATION_DETECTOR=true: it panics when somebody has written to one.
func NewCacheMutationDetector(name string) MutationDetector {
	if !detectMutations {
		return noDetector{}
	}
	return newDetector(name)
}

// mutated ends the program, as client-go's detector does, wherever it is called; and says
// who was given the object.
var mutated = func(cache string, w store.Written) {
	go panic(fmt.Sprintf("cache %s: %s", cache, w))
}

// verify looks at all objects of an informer once a second; what handlers and readers do
// is looked at when they do it.
func (s *sharedIndexInformer) verify(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.engine.Reader().Verify()
		}
	}
}

type noDetector struct{}

func (noDetector) AddObject(any)       {}
func (noDetector) Run(<-chan struct{}) {}

// detector compares objects with copies that it took when they came, once a second
// and for two to four minutes.
type detector struct {
	name  string
	every time.Duration
	keep  time.Duration
	fail  func(message string)

	mu            sync.Mutex
	recent, older []witness
	turned        time.Time
}

// witness is an object and what it looked like.
type witness struct{ obj, was runtime.Object }

func newDetector(name string) *detector {
	return &detector{name: name, every: time.Second, keep: 2 * time.Minute, turned: time.Now(),
		fail: func(message string) { panic(message) }}
}

// AddObject takes a copy of an object.
func (d *detector) AddObject(obj any) {
	o, ok := obj.(runtime.Object)
	if !ok {
		return
	}
	w := witness{o, o.DeepCopyObject()}
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
	if time.Since(d.turned) > d.keep {
		d.recent, d.older, d.turned = nil, d.recent, time.Now()
	}
	all := append(append([]witness(nil), d.older...), d.recent...)
	d.mu.Unlock()
	for _, w := range all {
		if !reflect.DeepEqual(w.obj, w.was) {
			d.fail(fmt.Sprintf("a handler or reader of cache %s changed a cached object; copy it before changing it:\n%s",
				d.name, diff.Diff(w.was, w.obj)))
			return
		}
	}
}
