package server

import (
	"sync"

	"github.com/mirador-k8s/mirador/object"
)

// watchHub sends the changes of a resource to any number of watches, with one handler.
//
// The two implementations share the feeds and differ in what a version is. A clusterWatchHub follows a resource of one
// cluster: versions are the cluster's, and the changes that a watch has missed are in the log of the mirror's store. A
// fleetWatchHub follows the resource in all clusters: it puts their changes into one order, the daemon's own, and
// keeps the recent ones itself.
type watchHub interface {
	// reached returns the version up to which a watch has been sent everything, given how far it was sent changes; ok
	// is false if something is on its way.
	reached(f *feed, sent object.Version) (version string, ok bool)
	// leave removes a watch.
	leave(f *feed)
	// done is closed when the resource is no longer mirrored.
	done() <-chan struct{}
}

// watchScope is the scope of a watch: one cluster or all, and one namespace or all.
type watchScope struct{ cluster, namespace string }

// concerns reports whether an object is in the scope.
func (of watchScope) concerns(cluster string, key object.Key) bool {
	if of.cluster != "" && of.cluster != cluster {
		return false
	}
	if of.namespace == "" {
		return true
	}
	namespace, _ := key.Split()
	return namespace == of.namespace
}

// feeds are the watches of a hub by scope, so that a change wakes only those that it concerns. The hub's lock guards
// them.
type feeds map[watchScope]map[*feed]struct{}

func (fs feeds) add(of watchScope) *feed {
	f := &feed{of: of, wake: make(chan struct{}, 1)}
	if fs[of] == nil {
		fs[of] = map[*feed]struct{}{}
	}
	fs[of][f] = struct{}{}
	return f
}

func (fs feeds) remove(f *feed) {
	delete(fs[f.of], f)
	if len(fs[f.of]) == 0 {
		delete(fs, f.of)
	}
}

// push adds a change to all feeds that it concerns.
func (fs feeds) push(c *change) {
	namespace, _ := c.key.Split()
	scopes := []watchScope{{}, {cluster: c.cluster}, {c.cluster, namespace}, {namespace: namespace}}
	if namespace == "" {
		scopes = scopes[:2]
	}
	for _, of := range scopes {
		for f := range fs[of] {
			f.push(c)
		}
	}
}

// end ends all feeds.
func (fs feeds) end(err error) {
	for _, same := range fs {
		for f := range same {
			f.end(err)
		}
	}
}

// maxWaiting is how many changes may wait for one watch, and maxWaitingBytes how large their objects may be together.
// A watch beyond that ends with 410, as at an API server, and its client relists.
const (
	maxWaiting      = 1000
	maxWaitingBytes = 64 << 20
)

// feed is the queue of one watch.
type feed struct {
	of   watchScope
	wake chan struct{} // has a buffer of one

	mu      sync.Mutex
	waiting []*change
	bytes   int           // of the objects of the waiting changes
	err     error         // why the feed has ended
	room    chan struct{} // closed when there is room again; nil while no handler waits for that
}

func (f *feed) push(c *change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.err != nil:
		return
	case len(f.waiting) >= maxWaiting || len(f.waiting) > 0 && f.bytes+c.size() > maxWaitingBytes:
		f.err, f.waiting, f.bytes = errTooSlow, nil, 0
		f.makeRoom()
	default:
		f.waiting = append(f.waiting, c)
		f.bytes += c.size()
	}
	f.signal()
}

// full reports whether the queue is at least half full, and returns a channel that is closed when that has changed.
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

// cut ends the feed, and drops the changes that wait: the client may not see them any more.
func (f *feed) cut(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.waiting, f.bytes = err, nil, 0
	f.makeRoom()
	f.signal()
}

func (f *feed) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// take returns the waiting changes. If the feed has ended, it returns the changes from before the end first, and wakes
// the watch once more to read the error.
func (f *feed) take(into []*change) ([]*change, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	into = append(into, f.waiting...)
	clear(f.waiting)
	f.waiting, f.bytes = f.waiting[:0], 0
	f.makeRoom()
	if len(into) == 0 {
		return nil, f.err
	}
	if f.err != nil {
		f.signal() // end may have found the signal of these changes still pending
	}
	return into, nil
}
