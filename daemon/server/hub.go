package server

import (
	"sync"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/object"
)

// hub tells the watches of one resource of one cluster what happens. It is one handler of that
// resource, however many watches there are, and wakes only those whose namespace is concerned.
//
// Another design was to let every watch follow the store's log by itself. It needs no queue, but
// a thousand watches of a hundred namespaces would all wake for each change to find that 990
// of them have nothing to do.
type hub struct {
	res *fleet.Resource
	sub fleet.Subscription

	mu    sync.Mutex
	epoch uint64
	last  object.Version                // of the newest change that was told
	feeds map[string]map[*feed]struct{} // by namespace; "" is all of them
	ended bool
}

// maxWaiting is how many changes may wait for one watch, and maxWaitingBytes how large their objects may be together.
// Whoever reads slower than that is told that his version is gone, as an API server does, and lists again.
const (
	maxWaiting      = 1000
	maxWaitingBytes = 64 << 20
)

// feed is what waits for one watch.
type feed struct {
	namespace string
	wake      chan struct{} // has room for one

	mu      sync.Mutex
	waiting []*change
	bytes   int           // of the objects of what waits
	err     error         // why nothing more will come
	room    chan struct{} // closed when there is room again; nil while nobody waits for that
}

func newHub(res *fleet.Resource, cluster string) (*hub, error) {
	h := &hub{res: res, epoch: res.Health().Epoch, feeds: map[string]map[*feed]struct{}{}}
	sub, err := res.Subscribe(func(e *fleet.Event) { h.handle(cluster, e) }, fleet.FromNow())
	if err != nil {
		return nil, err
	}
	h.sub = sub
	return h, nil
}

// handle is the handler of the resource.
func (h *hub) handle(cluster string, e *fleet.Event) {
	if e.Type == object.Resynced || e.Unchanged {
		return
	}
	c := &change{cluster: cluster, key: e.Key, old: e.Old, now: e.New, version: string(e.Version), order: e.Version}
	if e.New != nil {
		c.version = string(e.New.Version)
	}
	namespace, _ := e.Key.Split()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.epoch != e.Epoch:
		h.endAll(errSetBack)
	case h.last != "" && e.Version.Before(h.last):
		// Whoever went on from the newer version would miss this one.
		h.endAll(errMerged)
	}
	h.epoch, h.last = e.Epoch, e.Version
	for f := range h.feeds[""] {
		f.push(c)
	}
	if namespace != "" {
		for f := range h.feeds[namespace] {
			f.push(c)
		}
	}
}

func (h *hub) endAll(err error) {
	for _, feeds := range h.feeds {
		for f := range feeds {
			f.end(err)
		}
	}
}

// join adds a watch of a namespace, or of all of them. From then on it misses nothing.
func (h *hub) join(namespace string) *feed {
	f := &feed{namespace: namespace, wake: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		f.end(errUnserved)
		return f
	}
	if h.feeds[namespace] == nil {
		h.feeds[namespace] = map[*feed]struct{}{}
	}
	h.feeds[namespace][f] = struct{}{}
	return f
}

// told says up to where a watch was told everything, if nothing waits for it.
func (h *hub) told(f *feed) (object.Version, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	return h.last, len(f.waiting) == 0 && f.err == nil
}

// leave removes it again, and reports whether it was the last.
func (h *hub) leave(f *feed) (last bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.feeds[f.namespace], f)
	if len(h.feeds[f.namespace]) == 0 {
		delete(h.feeds, f.namespace)
	}
	return len(h.feeds) == 0
}

// close ends the hub and all that follow it.
func (h *hub) close(err error) {
	h.sub.Remove()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	h.endAll(err)
}

func (f *feed) push(c *change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.err != nil:
		return
	case len(f.waiting) >= maxWaiting || len(f.waiting) > 0 && f.bytes+c.size() > maxWaitingBytes:
		f.err, f.waiting, f.bytes = errTooSlow, nil, 0
	default:
		f.waiting = append(f.waiting, c)
		f.bytes += c.size()
	}
	f.signal()
}

// full reports whether half of what may wait does, and gives what is closed when that has changed.
func (f *feed) full() (room <-chan struct{}, full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil || len(f.waiting) < maxWaiting/2 && f.bytes < maxWaitingBytes/2 {
		return nil, false
	}
	if f.room == nil {
		f.room = make(chan struct{})
	}
	return f.room, true
}

func (f *feed) makeRoom() {
	if f.room != nil {
		close(f.room)
		f.room = nil
	}
}

func (f *feed) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
	f.makeRoom()
	f.signal()
}

func (f *feed) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// take gives what waits. What came before an end is given before it.
func (f *feed) take(into []*change) ([]*change, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	into = append(into, f.waiting...)
	clear(f.waiting)
	f.waiting, f.bytes = f.waiting[:0], 0
	f.makeRoom()
	if len(into) > 0 {
		return into, nil
	}
	return nil, f.err
}

// hubs are those in use. One exists while it has a watch.
type hubs struct {
	mu  sync.Mutex
	all map[*fleet.Resource]*hub
}

// join finds the hub of a resource, or makes it.
func (hs *hubs) join(res *fleet.Resource, cluster, namespace string) (*hub, *feed, error) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.all[res]
	if h == nil {
		var err error
		if h, err = newHub(res, cluster); err != nil {
			return nil, nil, err
		}
		if hs.all == nil {
			hs.all = map[*fleet.Resource]*hub{}
		}
		hs.all[res] = h
	}
	return h, h.join(namespace), nil
}

// leave ends a hub with its last watch.
func (hs *hubs) leave(h *hub, f *feed) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h.leave(f) {
		delete(hs.all, h.res)
		h.close(errUnserved)
	}
}
