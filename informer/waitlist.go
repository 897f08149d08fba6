package informer

import (
	"sync"
	"sync/atomic"

	"github.com/mirador-k8s/mirador/object"
)

// waitlist has the calls of WaitVersion that are waiting. While there are none, a batch costs one atomic load.
type waitlist struct {
	n   atomic.Int32
	mu  sync.Mutex
	all map[*waiter]struct{}
}

type waiter struct {
	version object.Version
	reached chan struct{}
	once    sync.Once
}

func (w *waiter) advance(at object.Version) {
	if order, ok := at.Compare(w.version); ok && order >= 0 {
		w.once.Do(func() { close(w.reached) })
	}
}

// add registers a waiter and then calls now, so that a version that is reached in between is not missed.
func (l *waitlist) add(v object.Version, now func() object.Version) (reached <-chan struct{}, forget func()) {
	w := &waiter{version: v, reached: make(chan struct{})}
	l.mu.Lock()
	if l.all == nil {
		l.all = map[*waiter]struct{}{}
	}
	l.all[w] = struct{}{}
	l.n.Add(1)
	l.mu.Unlock()
	w.advance(now())
	return w.reached, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all, w)
		l.n.Add(-1)
	}
}

func (l *waitlist) advance(at object.Version) {
	if l.n.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.all {
		w.advance(at)
	}
}
