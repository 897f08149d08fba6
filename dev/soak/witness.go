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

// hush keeps the handlers from running while the heap is measured: whatever they
// decode during a collection would count as alive, and ten handlers that replay 20,000
// pods decode more than all that is stored.
var hush sync.RWMutex

// witness is a handler that adds up what it is told: for each pod the version that it
// heard of last. It also notes the first event that does not fit the ones before.
type witness struct {
	takes time.Duration // what it does with an event beside that

	mu   sync.Mutex
	view map[object.Key]object.Version
	odd  string
}

func newWitness(takes time.Duration) *witness {
	return &witness{takes: takes, view: map[object.Key]object.Version{}}
}

// Handle is told of one event, with the pods themselves.
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

// handleEntry is Handle for one that decodes nothing.
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
		w.odd = fmt.Sprintf("%s of %s from version %s, but it was told %s last", what, key, before, had)
	case what == object.Updated && now.Before(had):
		w.odd = fmt.Sprintf("%s of %s goes back from version %s to %s", what, key, had, now)
	}
	if what == object.Deleted {
		delete(w.view, key)
		return
	}
	w.view[key] = now
}

// sums gives what it was told so far, and what was odd about it.
func (w *witness) sums() (map[object.Key]object.Version, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.view), w.odd
}
