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

// Limits bound what is held. A field that is 0 has its default.
type Limits struct {
	// Objects and Bytes are for one resource of one cluster: a million, and 1 GiB. Bytes
	// are those of memory, packed, as Health tells them, and some more for each object.
	Objects, Bytes int64
	// ClusterObjects and ClusterBytes are for all resources of a cluster: four millions,
	// and 4 GiB.
	ClusterObjects, ClusterBytes int64
}

const (
	defaultObjects        = 1_000_000
	defaultBytes          = 1 << 30
	defaultClusterObjects = 4 * defaultObjects
	defaultClusterBytes   = 4 * defaultBytes
	// objectCost is what an object takes beside its bytes: its record, and its place in
	// tables and indexes.
	objectCost = 400
	// bufferBytes bounds what a cluster's streams take for large objects under way.
	bufferBytes = 256 << 20
)

func (l Limits) orDefault() (Limits, error) {
	for _, f := range []struct {
		value     *int64
		otherwise int64
	}{{&l.Objects, defaultObjects}, {&l.Bytes, defaultBytes}, {&l.ClusterObjects,
		defaultClusterObjects}, {&l.ClusterBytes, defaultClusterBytes}} {
		switch {
		case *f.value < 0:
			return l, errors.New("a limit cannot be negative; leave it 0 for the default")
		case *f.value == 0:
			*f.value = f.otherwise
		}
	}
	return l, nil
}

// ErrLimit is what an error wraps that tells of a resource that grew beyond a limit.
var ErrLimit = errors.New("a limit was exceeded")

const (
	// A resource that was too large is read again after firstRest, then after twice as
	// long each time up to lastRest. Who has been in bounds for calmAfter begins anew.
	firstRest = 30 * time.Second
	lastRest  = 30 * time.Minute
	calmAfter = 2 * time.Hour
)

// ledger is the sum of what is held of a cluster.
type ledger struct {
	max Limits
	// full has a token when a resource was given up.
	full   chan struct{}
	sample sampler

	mu             sync.Mutex
	objects, bytes int64
	gauges         map[*gauge]struct{}
	pasts          map[string]*past
}

func newLedger(max Limits) *ledger {
	return &ledger{max: max, full: make(chan struct{}, 1), gauges: map[*gauge]struct{}{}, pasts: map[string]*past{}}
}

// past is what is remembered of a resource that was given up. The ledger's lock guards it.
type past struct {
	times int
	last  time.Time
	until time.Time // when it may be read again
	err   error
}

// gauge is what one mirror holds, or is about to. Its mirror's reflector moves it.
type gauge struct {
	of   *ledger
	name string
	stop func() // ends the mirror, and does not wait

	// The ledger's lock guards the rest.
	objects, bytes int64
	closed         bool
	err            error // why the mirror was given up
}

// open makes the gauge of a mirror. stop may be called more than once, by any goroutine.
func (l *ledger) open(name string, stop func()) *gauge {
	g := &gauge{of: l, name: name, stop: stop}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gauges[g] = struct{}{}
	return g
}

// close says that the mirror has ended, and nothing is held any more.
func (g *gauge) close() {
	l := g.of
	l.mu.Lock()
	defer l.mu.Unlock()
	if g.closed {
		return
	}
	g.closed = true
	l.objects -= g.objects
	l.bytes -= g.bytes
	delete(l.gauges, g)
}

// overrun is why the mirror was given up; nil if it was not.
func (g *gauge) overrun() error {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	return g.err
}

// refused says that the resource must not be read now, because it was too large a while ago.
func (g *gauge) refused() error {
	l := g.of
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pasts[g.name]
	if p == nil {
		return nil
	}
	left := time.Until(p.until)
	if left <= 0 {
		return nil
	}
	return &source.Error{Reason: source.Throttled, RetryAfter: left, Err: p.err}
}

// set says what the mirror holds now. If that is too much, the error is for its reader, and
// the mirror is given up; one that shows nothing yet may go on, as its reader drops what
// arrived, and whoever follows it is not disturbed. If it is the cluster that has too much,
// that hits the largest of its mirrors, which need not be this one.
func (g *gauge) set(objects, bytes int64, shows bool) error {
	l := g.of
	l.mu.Lock()
	defer l.mu.Unlock()
	if g.err != nil || g.closed {
		return g.ended()
	}
	l.objects += objects - g.objects
	l.bytes += bytes - g.bytes
	g.objects, g.bytes = objects, bytes
	var over error
	switch {
	case objects > l.max.Objects:
		over = fmt.Errorf("%w: it has more than %d objects; raise the limit with --max-objects, or leave it out with "+
			"--exclude", ErrLimit, l.max.Objects)
	case bytes > l.max.Bytes:
		over = fmt.Errorf("%w: it takes more than %d bytes of memory; raise the limit with --max-bytes, or leave it out "+
			"with --exclude", ErrLimit, l.max.Bytes)
	case l.objects > l.max.ClusterObjects:
		l.largest(func(g *gauge) int64 { return g.objects }).
			giveUp(fmt.Errorf("%w: the cluster has more than %d objects, and most of this resource; raise the limit with "+
				"--max-cluster-objects, or leave it out with --exclude", ErrLimit, l.max.ClusterObjects))
	case l.bytes > l.max.ClusterBytes:
		l.largest(func(g *gauge) int64 { return g.bytes }).
			giveUp(fmt.Errorf("%w: the cluster takes more than %d bytes of memory, and most for this resource; raise the "+
				"limit with --max-cluster-bytes, or leave it out with --exclude", ErrLimit, l.max.ClusterBytes))
	}
	switch {
	case over != nil && !shows:
		l.objects -= g.objects
		l.bytes -= g.bytes
		g.objects, g.bytes = 0, 0
		p := l.rest(g.name, over)
		return &source.Error{Reason: source.Throttled, RetryAfter: time.Until(p.until), Err: p.err}
	case over != nil:
		g.giveUp(over)
	}
	return g.ended()
}

// ended is what the reader is told. The lock is held.
func (g *gauge) ended() error {
	if g.err == nil {
		return nil
	}
	return &source.Error{Reason: source.Throttled, RetryAfter: firstRest, Err: g.err}
}

// largest is the mirror that has most. The lock is held.
func (l *ledger) largest(size func(*gauge) int64) *gauge {
	return slices.MaxFunc(slices.Collect(maps.Keys(l.gauges)), func(a, b *gauge) int {
		return int(max(-1, min(1, size(a)-size(b))))
	})
}

// giveUp ends a mirror that is too large, and has it rest. The lock is held.
func (g *gauge) giveUp(err error) {
	if g.err != nil {
		return // it is about to end
	}
	g.err = g.of.rest(g.name, err).err
	g.stop()
	select {
	case g.of.full <- struct{}{}:
	default:
	}
}

// rest has a resource not read for a while. The lock is held.
func (l *ledger) rest(name string, err error) *past {
	p := l.pasts[name]
	if p == nil || time.Since(p.last) > calmAfter {
		p = &past{}
		l.pasts[name] = p
	}
	rest := lastRest
	if p.times < 6 {
		rest = min(firstRest<<p.times, lastRest)
	}
	rest += rand.N(rest/10 + 1)
	p.times++
	p.last = time.Now()
	p.until = p.last.Add(rest)
	p.err = fmt.Errorf("%w; it is read again after %s", err, rest.Round(time.Second))
	return p
}

// forget drops what is remembered of resources that are no more.
func (l *ledger) forget(known func(name string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.pasts, func(name string, _ *past) bool { return !known(name) })
}
