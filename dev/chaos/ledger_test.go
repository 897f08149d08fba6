package chaos

import (
	"fmt"
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/object"
)

// ledger is a handler's view: the sum of its events. A handler that received every event once and in order has the
// server's state.
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

// strict returns the handler of one of our informers. It checks the promises: an add must be of an unknown object, an
// update must follow the last state and be newer, a delete must be of a known object.
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
				l.wrong("P6: %s was added at %s, but is known at %s", key, e.New.GetResourceVersion(), last)
			}
			l.alive[key] = e.New.GetResourceVersion()
		case object.Updated:
			if !known || e.Old.GetResourceVersion() != last {
				l.wrong("P3: %s was updated from %s, but the last version was %q", key, e.Old.GetResourceVersion(), last)
			}
			if !object.Version(last).Before(object.Version(e.New.GetResourceVersion())) {
				l.wrong("P2: %s went from %s to %s", key, last, e.New.GetResourceVersion())
			}
			l.alive[key] = e.New.GetResourceVersion()
		case object.Deleted:
			// The event has the object's last state with the version of the deletion.
			if !known || object.Version(e.Old.GetResourceVersion()).Before(object.Version(last)) {
				l.wrong("P6: %s was deleted at %s, but the last version was %q", key, e.Old.GetResourceVersion(), last)
			}
			delete(l.alive, key)
		}
	}
}

// lenient returns a handler for client-go's interface, stock or ours. It only adds up the events and checks nothing,
// because that interface promises less.
func lenient(l *ledger) cache.ResourceEventHandler {
	put := func(obj any) {
		key, err := cache.MetaNamespaceKeyFunc(obj)
		m, ok := obj.(metav1.Object)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.events++
		if err != nil || !ok {
			l.wrong("received a %T: %v", obj, err)
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
				l.wrong("received the delete of a %T: %v", obj, err)
			}
			delete(l.alive, key)
		},
	}
}
