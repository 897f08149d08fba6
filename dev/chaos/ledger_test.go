package chaos

import (
	"fmt"
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/object"
)

// ledger is a handler's own view: what it was told, added up. A handler that was
// told everything, once and in order, has the server's state in it.
type ledger struct {
	mu     sync.Mutex
	alive  map[string]string // key -> version
	events int
	wrongs []string
}

func newLedger() *ledger { return &ledger{alive: map[string]string{}} }

func (l *ledger) versions() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.alive)
}

func (l *ledger) wrong(format string, args ...any) {
	if len(l.wrongs) < 20 {
		l.wrongs = append(l.wrongs, fmt.Sprintf(format, args...))
	}
}

// strict gives the handler of one of our informers. It holds events to the
// promises: an add of what was unknown, an update of what was told last and to
// something newer, a delete of what was there.
func strict[T metav1.Object](l *ledger) func(e object.Event[T]) {
	return func(e object.Event[T]) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.events++
		key := string(e.Key)
		last, known := l.alive[key]
		switch e.Type {
		case object.Added:
			if known {
				l.wrong("P6: %s was added at %s, but is there at %s", key, e.New.GetResourceVersion(), last)
			}
			l.alive[key] = e.New.GetResourceVersion()
		case object.Updated:
			if !known || e.Old.GetResourceVersion() != last {
				l.wrong("P3: %s was updated from %s, but told last was %q", key, e.Old.GetResourceVersion(), last)
			}
			if !object.Version(last).Before(object.Version(e.New.GetResourceVersion())) {
				l.wrong("P2: %s went from %s to %s", key, last, e.New.GetResourceVersion())
			}
			l.alive[key] = e.New.GetResourceVersion()
		case object.Deleted:
			// It comes with its last state, which has the version of its end.
			if !known || object.Version(e.Old.GetResourceVersion()).Before(object.Version(last)) {
				l.wrong("P6: %s was deleted at %s, but told last was %q", key, e.Old.GetResourceVersion(), last)
			}
			delete(l.alive, key)
		}
	}
}

// lenient gives a handler for client-go's interface, stock or ours. It adds up and
// judges nothing: that interface promises less.
func lenient(l *ledger) cache.ResourceEventHandler {
	put := func(obj any) {
		key, err := cache.MetaNamespaceKeyFunc(obj)
		m, ok := obj.(metav1.Object)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.events++
		if err != nil || !ok {
			l.wrong("told of a %T: %v", obj, err)
			return
		}
		l.alive[key] = m.GetResourceVersion()
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    put,
		UpdateFunc: func(_, obj any) { put(obj) },
		DeleteFunc: func(obj any) {
			key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
			l.mu.Lock()
			defer l.mu.Unlock()
			l.events++
			if err != nil {
				l.wrong("told of the delete of a %T: %v", obj, err)
			}
			delete(l.alive, key)
		},
	}
}
