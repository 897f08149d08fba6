package main

import (
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// hush keeps the handlers from running while the heap is measured: objects that they decode during a collection would
// count as alive, and ten handlers that replay 20,000 pods decode more than the whole store.
var hush sync.RWMutex

// witness is a handler that records the last version of each pod that it received. It also records the first event
// that does not fit the earlier ones.
type witness struct {
	takes time.Duration // additional time for each event

	mu   sync.Mutex
	view map[object.Key]object.Version
	odd  string
}

func newWitness(takes time.Duration) *witness {
	return &witness{takes: takes, view: map[object.Key]object.Version{}}
}

// Handle handles one event with the pods themselves.
func (w *witness) Handle(e object.Event[*corev1.Pod]) {
	hush.RLock()
	defer hush.RUnlock()
	if w.takes > 0 {
		time.Sleep(w.takes)
	}
	var before, now object.Version
	if e.Old != nil {
		before = object.Version(e.Old.ResourceVersion)
	}
	if e.New != nil {
		now = object.Version(e.New.ResourceVersion)
	}
	w.note(e.Type, e.Key, before, now)
}

// handleEntry is like Handle, but decodes nothing.
func (w *witness) handleEntry(e *object.Event[*store.Entry[*corev1.Pod]]) {
	hush.RLock()
	defer hush.RUnlock()
	var before, now object.Version
	if e.Old != nil {
		before = e.Old.Version
	}
	if e.New != nil {
		now = e.New.Version
	}
	w.note(e.Type, e.Key, before, now)
}

func (w *witness) note(what object.ChangeType, key object.Key, before, now object.Version) {
	w.mu.Lock()
	defer w.mu.Unlock()
	had, known := w.view[key]
	switch {
	case w.odd != "":
	case what == object.Added && known, what != object.Added && !known:
		w.odd = fmt.Sprintf("%s of %s, which it knew: %v", what, key, known)
	case what == object.Updated && before != had:
		w.odd = fmt.Sprintf("%s of %s from version %s, but the last one delivered was %s", what, key, before, had)
	case what == object.Updated && now.Before(had):
		w.odd = fmt.Sprintf("%s of %s goes back from version %s to %s", what, key, had, now)
	}
	if what == object.Deleted {
		delete(w.view, key)
		return
	}
	w.view[key] = now
}

// sums returns the versions received so far, and the first event that did not fit, if any.
func (w *witness) sums() (map[object.Key]object.Version, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.view), w.odd
}
