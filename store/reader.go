package store

import (
	"errors"
	"fmt"
	"hash/maphash"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// config is what never changes. Snapshots hold it and not the shared state, or a
// snapshot would keep the objects of today alive.
type config[T any] struct {
	seed     maphash.Seed
	onError  func(key object.Key, index string, err error)
	logBytes int
	logAge   time.Duration
	born     time.Time // the log counts its time from here

	layout    Layout
	readCache int
	keptLive  atomic.Uint64
	bytes     atomic.Int64 // of what is packed

	saidNoCodec atomic.Bool
	onWritten   func(Written)
}

func (c *config[T]) report(key object.Key, index string, err error) {
	if c.onError != nil {
		c.onError(key, index, err)
	}
}

// plain reports whether every object can be read from its seat: none is packed and
// none under guard.
func (c *config[T]) plain() bool { return c.layout != Packed && c.onWritten == nil }

// keysStay reports whether all states of an object have one string for its key. Where it is packed, its bytes lie
// with those of the object.
func (c *config[T]) keysStay() bool { return c.layout != Packed }

// complain reports an object that could not be kept or read in the store's layout.
// That there is no codec is said once: it holds for all objects.
func (c *config[T]) complain(key object.Key, err error) {
	if errors.Is(err, errNoCodec) && c.saidNoCodec.Swap(true) {
		return
	}
	c.report(key, "", fmt.Errorf("keep the object %s: %w", c.layout, err))
}

func hashValue(seed maphash.Seed, value string) uint64 { return maphash.String(seed, value) }

// shared is what the writer publishes and readers load.
type shared[T any] struct {
	cfg     *config[T]
	table   atomic.Pointer[table[T]]
	set     atomic.Pointer[indexSet[T]]
	history atomic.Pointer[history[T]]
	version atomic.Pointer[object.Version]
	length  atomic.Int64
	offer   atomic.Pointer[Snapshot[T]]

	waiting atomic.Int32 // readers that want the end of the open batch
	wake    atomic.Pointer[chan struct{}]
}

// Reader reads a store. Any number of goroutines may use it; none of them makes
// the writer wait.
type Reader[T any] struct{ sh *shared[T] }

// Get returns the object of a key as it is at this moment, without a lock and
// without allocating. Unlike a snapshot it shows each write at once, not first at
// the end of its batch.
func (r *Reader[T]) Get(key object.Key) (T, bool) {
	return r.sh.table.Load().object(hashKey(r.sh.cfg.seed, key), key)
}

// Entry is Get with all that is known of the object. In the middle of a write of this
// very key it waits for the end of that, which is a few instructions away.
func (r *Reader[T]) Entry(key object.Key) (*Entry[T], bool) {
	rec := r.sh.table.Load().get(hashKey(r.sh.cfg.seed, key), key)
	return rec.entry(), rec != nil
}

// Len is the number of objects after the last batch.
func (r *Reader[T]) Len() int { return int(r.sh.length.Load()) }

// Version is the source's version after the last batch; "" before the first.
func (r *Reader[T]) Version() object.Version { return *r.sh.version.Load() }

// Layout says how the objects are kept.
func (r *Reader[T]) Layout() LayoutStats {
	return LayoutStats{Layout: r.sh.cfg.layout, KeptLive: r.sh.cfg.keptLive.Load(), Bytes: r.sh.cfg.bytes.Load()}
}

// Snapshot returns the newest committed state: of the last batch whose Commit
// returned, or of a later one. Usually this costs a few atomic operations. While a
// batch is open it gives way to the writer once, as runtime.Gosched does, and if nobody took the state before
// that batch, it waits for its Commit; so it must not be called by the writer's goroutine inside a batch.
func (r *Reader[T]) Snapshot() *Snapshot[T] {
	s := r.sh.take()
	if s != nil && s.state.Load() == passing {
		// Where processors are scarce, the writer may be waiting for this very one. Beside eight readers on two of them it
		// got through 89,000 updates a second as one of nine; if they give way, through 280,000.
		runtime.Gosched()
		if newer := r.sh.take(); newer != nil {
			s = newer
		}
	}
	// A batch is mostly over sooner than a goroutine is parked and woken.
	for try := 0; s == nil && try < 4; try++ {
		runtime.Gosched()
		s = r.sh.take()
	}
	if s != nil {
		return s
	}
	return r.sh.await()
}

// take returns the snapshot on offer, or nil while it is withdrawn.
func (sh *shared[T]) take() *Snapshot[T] {
	s := sh.offer.Load()
	// The swap fails if another reader took it, which is as good, or if the writer
	// withdrew it. It may succeed on a later state than the one loaded, because
	// the writer fills a withdrawn snapshot again.
	if s.state.Load() >= taken || s.state.CompareAndSwap(offered, taken) || s.state.Load() >= taken {
		return s
	}
	return nil
}

// await parks until a batch ends. While a reader is counted as waiting, every batch
// ends with a snapshot that cannot be withdrawn: so it waits for one Commit only.
func (sh *shared[T]) await() *Snapshot[T] {
	sh.waiting.Add(1)
	defer sh.waiting.Add(-1)
	for {
		bell := sh.bell()
		// The bell hangs before the look: a Commit that this look misses rings it.
		if s := sh.take(); s != nil {
			return s
		}
		<-bell
	}
}

func (sh *shared[T]) bell() chan struct{} {
	for {
		if b := sh.wake.Load(); b != nil {
			return *b
		}
		b := make(chan struct{})
		if sh.wake.CompareAndSwap(nil, &b) {
			return b
		}
	}
}

// ring wakes all that await. It never blocks.
func (sh *shared[T]) ring() {
	if sh.wake.Load() == nil {
		return
	}
	if b := sh.wake.Swap(nil); b != nil {
		close(*b)
	}
}
