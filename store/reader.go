package store

import (
	"runtime"
	"sync/atomic"

	"github.com/mirador-k8s/mirador/object"
)

// shared is the state that the writer publishes and readers load.
type shared[T any] struct {
	cfg     *config[T]
	table   atomic.Pointer[table[T]]
	set     atomic.Pointer[indexSet[T]]
	history atomic.Pointer[history[T]]
	version atomic.Pointer[object.Version]
	length  atomic.Int64
	latest  atomic.Pointer[Snapshot[T]]

	waiting atomic.Int32                  // number of readers that wait for the end of the open batch
	wake    atomic.Pointer[chan struct{}] // closed at the end of a batch
}

// Reader reads a store. Any number of goroutines may use it, and none of them makes the writer wait.
type Reader[T any] struct{ sh *shared[T] }

// Get returns the current object of a key, without a lock and without allocating. Unlike a snapshot it shows each
// write at once, not only after its batch.
func (r *Reader[T]) Get(key object.Key) (T, bool) {
	return r.sh.table.Load().object(hashKey(r.sh.cfg.seed, key), key)
}

// Entry returns the current entry of a key, like Get. During a write to this key it waits for the few instructions
// until the write is complete.
func (r *Reader[T]) Entry(key object.Key) (*Entry[T], bool) {
	rec := r.sh.table.Load().get(hashKey(r.sh.cfg.seed, key), key)
	return rec.entry(), rec != nil
}

// Len returns the number of objects after the last batch.
func (r *Reader[T]) Len() int { return int(r.sh.length.Load()) }

// Version returns the source's version after the last batch; "" before the first.
func (r *Reader[T]) Version() object.Version { return *r.sh.version.Load() }

// Layout describes how the store keeps its objects.
func (r *Reader[T]) Layout() LayoutStats {
	return LayoutStats{Layout: r.sh.cfg.layout, KeptLive: r.sh.cfg.keptLive.Load(), Bytes: r.sh.cfg.bytes.Load()}
}

// Snapshot returns the state of the last batch whose Commit returned, or of a later one. Usually this costs a few
// atomic operations. While a batch is open it calls runtime.Gosched once, and if no reader took a snapshot of the
// state before that batch, it waits for Commit. So the writer's goroutine must not call it during a batch.
func (r *Reader[T]) Snapshot() *Snapshot[T] {
	s := r.sh.take()
	if s != nil && s.state.Load() == outdated {
		// The writer may be waiting for this processor. Readers that do not yield would slow it down several times.
		runtime.Gosched()
		if newer := r.sh.take(); newer != nil {
			s = newer
		}
	}
	// Most batches end sooner than a goroutine can be parked and woken.
	for try := 0; s == nil && try < 4; try++ {
		runtime.Gosched()
		s = r.sh.take()
	}
	if s != nil {
		return s
	}
	return r.sh.await()
}

// take returns the latest snapshot, or nil while the writer has reclaimed it.
func (sh *shared[T]) take() *Snapshot[T] {
	s := sh.latest.Load()
	// The swap fails if another reader took the snapshot, or if the writer reclaimed it. It may succeed on a later
	// state than the one loaded, because the writer fills a reclaimed snapshot again.
	if s.state.Load() >= taken || s.state.CompareAndSwap(available, taken) || s.state.Load() >= taken {
		return s
	}
	return nil
}

// await parks until a batch ends. While a reader is counted as waiting, every batch ends with a snapshot that the
// writer does not reclaim, so await waits for one Commit only.
func (sh *shared[T]) await() *Snapshot[T] {
	sh.waiting.Add(1)
	defer sh.waiting.Add(-1)
	for {
		woken := sh.wakeChannel() // before take, so that a Commit after take closes it
		if s := sh.take(); s != nil {
			return s
		}
		<-woken
	}
}

// wakeChannel returns the channel that the end of the next batch closes.
func (sh *shared[T]) wakeChannel() chan struct{} {
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

// wakeAll wakes all readers in await. It never blocks.
func (sh *shared[T]) wakeAll() {
	if sh.wake.Load() == nil {
		return
	}
	if b := sh.wake.Swap(nil); b != nil {
		close(*b)
	}
}
