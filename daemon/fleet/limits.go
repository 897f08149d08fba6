package fleet

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/mirador-k8s/mirador/source"
)

// Limits bound the memory of mirrors. A field that is 0 has its default.
type Limits struct {
	// Objects and Bytes limit one resource of one cluster; the defaults are one million and
	// 1 GiB. Bytes are those of the packed objects, as in Health, and an overhead for each
	// object.
	Objects, Bytes int64
	// ClusterObjects and ClusterBytes limit all resources of a cluster; the defaults are
	// four million and 4 GiB.
	ClusterObjects, ClusterBytes int64
	// FleetBytes limits all clusters together; there is no limit by default. Above it, the cluster
	// that takes most loses its largest mirror, and close to it, no resource is read for the first
	// time.
	FleetBytes int64
}

const (
	defaultObjects        = 1_000_000
	defaultBytes          = 1 << 30
	defaultClusterObjects = 4 * defaultObjects
	defaultClusterBytes   = 4 * defaultBytes
	// objectCost is the memory of an object besides its bytes: its entry, and its place in
	// tables and indexes.
	objectCost = 400
	// bufferBytes bounds the buffers of a cluster's streams for large objects.
	bufferBytes = 256 << 20
)

func (l Limits) orDefault() (Limits, error) {
	for _, f := range []struct {
		value     *int64
		otherwise int64
	}{{&l.Objects, defaultObjects}, {&l.Bytes, defaultBytes}, {&l.ClusterObjects,
		defaultClusterObjects}, {&l.ClusterBytes, defaultClusterBytes}, {&l.FleetBytes, 0}} {
		switch {
		case *f.value < 0:
			return l, errors.New("a limit cannot be negative; leave it 0 for the default")
		case *f.value == 0:
			*f.value = f.otherwise
		}
	}
	return l, nil
}

// errLimit is wrapped by the error of a resource that exceeded a limit.
var errLimit = errors.New("a limit was exceeded")

const (
	// A resource that exceeded a limit is read again after firstPause, then after twice as
	// long each time up to lastPause. After pauseResetAfter within the limits the pause starts
	// at firstPause again.
	firstPause      = 30 * time.Second
	lastPause       = 30 * time.Minute
	pauseResetAfter = 2 * time.Hour
)

// clusterUsage is the memory usage of a cluster's mirrors.
type clusterUsage struct {
	max   Limits
	fleet *fleetUsage
	// full receives a token when a mirror was dropped.
	full chan struct{}

	mu             sync.Mutex
	objects, bytes int64
	mirrors        map[*mirrorUsage]struct{}
	overLimit      map[string]*overLimit
}

func newClusterUsage(max Limits, fleet *fleetUsage) *clusterUsage {
	return &clusterUsage{max: max, fleet: fleet, full: make(chan struct{}, 1), mirrors: map[*mirrorUsage]struct{}{},
		overLimit: map[string]*overLimit{}}
}

// overLimit is the history of a resource that exceeded a limit. The lock of clusterUsage guards
// it.
type overLimit struct {
	times int
	last  time.Time
	until time.Time // when it may be read again
	err   error
}

// mirrorUsage is the memory usage of one mirror, including what it is about to store. The
// mirror's reflector updates it.
type mirrorUsage struct {
	of   *clusterUsage
	name string
	stop func() // ends the mirror, and does not wait

	// The lock of clusterUsage guards the following fields.
	objects, bytes int64
	closed         bool
	err            error // why the mirror was dropped
}

// open returns the usage of a new mirror. stop may be called more than once, by any goroutine.
func (l *clusterUsage) open(name string, stop func()) *mirrorUsage {
	g := &mirrorUsage{of: l, name: name, stop: stop}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mirrors[g] = struct{}{}
	return g
}

// close removes the usage of a mirror that has ended.
func (g *mirrorUsage) close() {
	l := g.of
	l.mu.Lock()
	defer l.mu.Unlock()
	if g.closed {
		return
	}
	g.closed = true
	g.count(0, 0)
	delete(l.mirrors, g)
}

// count changes what the mirror takes. The lock is held.
func (g *mirrorUsage) count(objects, bytes int64) {
	g.of.fleet.add(g.of, bytes-g.bytes)
	g.countInCluster(objects, bytes)
}

// countFirst is count for a mirror that is not visible yet. If there is no room for it, it changes nothing and returns
// an error: a list that is refused must not cost another cluster a mirror.
func (g *mirrorUsage) countFirst(objects, bytes int64) error {
	if err := g.of.max.exceededBy(objects, bytes); err != nil {
		return err
	}
	if err := g.of.fleet.addFirst(g.of, bytes-g.bytes); err != nil {
		return err
	}
	g.countInCluster(objects, bytes)
	return nil
}

// countInCluster is count without the fleet.
func (g *mirrorUsage) countInCluster(objects, bytes int64) {
	g.of.objects += objects - g.objects
	g.of.bytes += bytes - g.bytes
	g.objects, g.bytes = objects, bytes
}

// exceededBy returns an error if one resource may not take so much.
func (l *Limits) exceededBy(objects, bytes int64) error {
	switch {
	case objects > l.Objects:
		return fmt.Errorf("%w: it has more than %d objects; raise the limit with --max-objects, or leave it out with "+
			"--exclude", errLimit, l.Objects)
	case bytes > l.Bytes:
		return fmt.Errorf("%w: it takes more than %d bytes of memory; raise the limit with --max-bytes, or leave it out "+
			"with --exclude", errLimit, l.Bytes)
	}
	return nil
}

// limitError returns why the mirror was dropped, or nil.
func (g *mirrorUsage) limitError() error {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	return g.err
}

// refused returns an error while the resource must not be read because it exceeded a limit.
func (g *mirrorUsage) refused() error {
	l := g.of
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.overLimit[g.name]
	if p == nil {
		return nil
	}
	left := time.Until(p.until)
	if left <= 0 {
		return nil
	}
	return &source.Error{Reason: source.Throttled, RetryAfter: left, Err: p.err}
}

// set updates the usage. If the mirror exceeds a limit, set drops it and returns an error for
// its reader. A mirror that is not visible yet is kept: its reader discards what it has read,
// and subscribers are not affected. If the cluster exceeds a limit, set drops the largest of
// its mirrors, which need not be this one. If the fleet exceeds its limit, set drops a mirror of any
// cluster.
func (g *mirrorUsage) set(objects, bytes int64, visible bool) error {
	err := g.setInCluster(objects, bytes, visible)
	g.of.fleet.relieve()
	return err
}

func (g *mirrorUsage) setInCluster(objects, bytes int64, visible bool) error {
	l := g.of
	l.mu.Lock()
	defer l.mu.Unlock()
	if g.err != nil || g.closed {
		return g.ended()
	}
	if !visible {
		if err := g.countFirst(objects, bytes); err != nil {
			g.count(0, 0)
			p := l.pause(g.name, err)
			return &source.Error{Reason: source.Throttled, RetryAfter: time.Until(p.until), Err: p.err}
		}
	} else {
		g.count(objects, bytes)
		if err := l.max.exceededBy(objects, bytes); err != nil {
			g.drop(err)
			return g.ended()
		}
	}
	l.relieve()
	return g.ended()
}

// relieve drops the largest mirror if the cluster exceeds a limit. The lock is held.
func (l *clusterUsage) relieve() {
	switch {
	case l.objects > l.max.ClusterObjects:
		l.largest(func(g *mirrorUsage) int64 { return g.objects }).
			drop(fmt.Errorf("%w: the cluster has more than %d objects, and most of this resource; raise the limit with "+
				"--max-cluster-objects, or leave it out with --exclude", errLimit, l.max.ClusterObjects))
	case l.bytes > l.max.ClusterBytes:
		l.largest(func(g *mirrorUsage) int64 { return g.bytes }).
			drop(fmt.Errorf("%w: the cluster takes more than %d bytes of memory, and most for this resource; raise the "+
				"limit with --max-cluster-bytes, or leave it out with --exclude", errLimit, l.max.ClusterBytes))
	}
}

// ended returns the error for the reader. The lock is held.
func (g *mirrorUsage) ended() error {
	if g.err == nil {
		return nil
	}
	return &source.Error{Reason: source.Throttled, RetryAfter: firstPause, Err: g.err}
}

// largest returns the largest mirror. The lock is held.
func (l *clusterUsage) largest(size func(*mirrorUsage) int64) *mirrorUsage {
	return slices.MaxFunc(slices.Collect(maps.Keys(l.mirrors)), func(a, b *mirrorUsage) int {
		return int(max(-1, min(1, size(a)-size(b))))
	})
}

// drop ends a mirror that is too large, and starts the pause of its resource. The lock is held.
func (g *mirrorUsage) drop(err error) {
	if g.err != nil {
		return // already dropped
	}
	g.err = g.of.pause(g.name, err).err
	g.stop()
	select {
	case g.of.full <- struct{}{}:
	default:
	}
}

// pause prevents reading a resource for a while. The lock is held.
func (l *clusterUsage) pause(name string, err error) *overLimit {
	p := l.overLimit[name]
	if p == nil || time.Since(p.last) > pauseResetAfter {
		p = &overLimit{}
		l.overLimit[name] = p
	}
	rest := lastPause
	if p.times < 6 {
		rest = min(firstPause<<p.times, lastPause)
	}
	rest += rand.N(rest/10 + 1)
	p.times++
	p.last = time.Now()
	p.until = p.last.Add(rest)
	p.err = fmt.Errorf("%w; it is read again after %s", err, rest.Round(time.Second))
	return p
}

// forget removes the history of resources that are no longer served.
func (l *clusterUsage) forget(known func(name string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.overLimit, func(name string, _ *overLimit) bool { return !known(name) })
}
