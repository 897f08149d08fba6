package fanout

import (
	"fmt"
	"iter"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

const defaultMaxBacklog = 10_000

// Replay is the state as of one batch.
type Replay[T any] struct {
	// Seq is the sequence number of the batch: the state contains everything up to it and
	// nothing later. It must not be older than the last batch published when the function
	// was called.
	Seq uint64
	// Events yields the objects. Fanout sets the type and the marks: Added and Initial for
	// a late join, Resynced for a resync.
	Events iter.Seq[object.Event[T]]
}

// HandlerOptions configure a handler.
type HandlerOptions[T any] struct {
	// Name identifies the handler in errors and statistics. The default is "handler N".
	Name string
	// Handle is called with each event, one at a time. It must not change the
	// event's objects: other handlers see them too.
	Handle func(object.Event[T])
	// HandleShared is like Handle without a copy of the event. The event is shared by all
	// handlers: it must not be changed, and is valid only during the call. Exactly one of
	// Handle and HandleShared must be set.
	HandleShared func(*object.Event[T])
	// OnPanic is called before Options.OnPanic, on the goroutine that called the handler,
	// while the stack is still that of the panic. recovered is nil if the callback ended
	// its goroutine.
	OnPanic func(recovered any)
	// Replay returns the state for a handler that joins late. Join calls it once. It should
	// be quick, because the backlog is not bounded meanwhile. Its events are read later,
	// at the handler's pace. It may be nil if nothing was published before.
	Replay func() Replay[T]
	// Resync is the period after which the handler receives the whole state again; 0 means
	// never. A resync that is due before the last one was delivered is dropped. A handler
	// whose events are being coalesced receives the resync once it has caught up.
	Resync time.Duration
	// State returns the state for a resync. It runs on the goroutine that calls the handler.
	State func() Replay[T]
	// MaxBacklog is the number of events that may wait before they are coalesced. 0 means
	// 10,000; a negative number disables coalescing.
	MaxBacklog int
}

// The progress of a late join, in Subscription.replay.
const (
	replayNone   = iota // there is nothing to replay, or all of it was delivered
	replayAsked         // the state is being taken, and its sequence number is not known yet
	replayGiven         // the state is being delivered
	replayFailed        // Replay or its iterator panicked; the handler never counts as synced
)

// Subscription is a handler that has joined a Fanout.
type Subscription[T any] struct {
	// The fields that Publish reads come first, so that they share one cache line. The
	// fields of a delivery follow in the next two.
	activity   atomic.Int32 // idle, running or notified
	removed    atomic.Bool
	coalescing atomic.Bool   // written under mu
	busy       bool          // there is current work
	skipClock  uint8         // the number of callbacks that will not read the clock; runner only
	crashing   bool          // the panic is being raised again; runner only
	position   atomic.Uint64 // cursor.start, for the publisher
	maxBacklog int64
	nextReady  *Subscription[T] // the next handler in a handlerList
	handle     func(*object.Event[T])
	mu         sync.Mutex
	cursor     *node[T] // the first batch that was neither begun nor folded; nil when removed

	// Only the runner that has the handler uses work, next and workSeq; it changes work
	// under mu, for Stats. It also writes delivered, target, started and panics.
	work      []object.Event[T]
	next      int
	workSeq   uint64        // the last batch that was taken from the chain
	lastSeq   uint64        // everything up to here was delivered
	delivered atomic.Uint64 // callbacks that have finished
	target    atomic.Uint64 // the value of delivered at the end of the current work

	started   atomic.Int64 // when a callback last read the clock
	busySince int64        // when the current work was published; 0 if unknown
	fan       *Fanout[T]
	panics    atomic.Uint64
	awaitsSeq atomic.Bool // a resync waits for a sequence number whose batch may be empty
	replay    uint8
	due       bool // a resync is due
	resyncing bool // a resync was taken and is not delivered yet
	name      string
	onPanic   func(recovered any) // may be nil
	state     func() Replay[T]    // for resyncs; may be nil

	pending   pending[T]
	coalesced uint64
	skip      uint64 // batches up to this one are part of the replay
	timer     *time.Timer
	period    time.Duration
	resync    *stateReader[T] // a resync that was taken, until everything before it is delivered
	reader    *stateReader[T] // the replay or resync that is being delivered; runner only

	synced latch
	done   latch
}

// latch is a condition that becomes true once. Its channel is made on demand, because most
// callers need neither the Synced nor the Done channel. The subscription's mu guards it.
type latch struct {
	fired atomic.Bool
	ch    chan struct{}
}

func (l *latch) fire() {
	l.fired.Store(true)
	if l.ch != nil {
		close(l.ch)
	}
}

func (l *latch) channel() <-chan struct{} {
	if l.ch == nil {
		l.ch = make(chan struct{})
		if l.fired.Load() {
			close(l.ch)
		}
	}
	return l.ch
}

func newSubscription[T any](f *Fanout[T], opts HandlerOptions[T], at *node[T], seq uint64) *Subscription[T] {
	s := &Subscription[T]{
		fan:     f,
		name:    opts.Name,
		handle:  opts.HandleShared,
		onPanic: opts.OnPanic,
		state:   opts.State,
		cursor:  at,
		lastSeq: seq,
	}
	s.position.Store(at.start)
	switch {
	case opts.MaxBacklog < 0:
		s.maxBacklog = math.MaxInt64
	case opts.MaxBacklog == 0:
		s.maxBacklog = defaultMaxBacklog
	default:
		s.maxBacklog = int64(opts.MaxBacklog)
	}
	if opts.Replay != nil {
		s.replay = replayAsked
	}
	return s
}

// Name returns the handler's name.
func (s *Subscription[T]) Name() string { return s.name }

// Synced returns a channel that is closed when the initial state is complete and this
// handler has received all of it. It stays open if the handler is removed before that.
func (s *Subscription[T]) Synced() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced.channel()
}

// HasSynced reports whether the channel of Synced is closed.
func (s *Subscription[T]) HasSynced() bool { return s.synced.fired.Load() }

// Done returns a channel that is closed when the handler was removed, or the Fanout
// stopped, and its last callback has returned.
func (s *Subscription[T]) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done.channel()
}

// Remove removes the handler and drops its backlog. A running callback continues, and no
// other begins. Remove does not wait for it, so the handler may call Remove; wait for Done
// if needed. Further calls have no effect.
func (s *Subscription[T]) Remove() {
	s.fan.leave(s, false)
	s.shutdown()
}

func (s *Subscription[T]) shutdown() {
	s.mu.Lock()
	if s.removed.Swap(true) {
		s.mu.Unlock()
		return
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.cursor = nil
	s.pending = pending[T]{}
	s.coalescing.Store(false)
	s.resync, s.due = nil, false
	s.mu.Unlock()
	if s.activity.Swap(notified) == idle {
		s.finish()
	}
}

// finish is called once after the handler was removed: by shutdown if the handler is idle,
// or by its runner after the last callback.
func (s *Subscription[T]) finish() {
	if s.reader != nil {
		s.reader.stop()
		s.reader = nil
	}
	s.mu.Lock()
	s.work = nil
	s.target.Store(s.delivered.Load())
	s.mu.Unlock()
	s.fan.leave(s, true)
	s.mu.Lock()
	s.done.fire()
	s.mu.Unlock()
}

// SetResync changes the resync period; 0 ends resyncs. The first period begins now.
func (s *Subscription[T]) SetResync(period time.Duration) error {
	if period < 0 {
		return fmt.Errorf("set the resync period of handler %q to %s: it must not be negative", s.Name(), period)
	}
	if period > 0 && s.state == nil {
		return fmt.Errorf("set the resync period of handler %q to %s: %w", s.Name(), period, errResyncWithoutState)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.period = period
	if s.timer != nil {
		s.timer.Stop()
	}
	if period == 0 || s.removed.Load() {
		return nil
	}
	if s.timer == nil {
		s.timer = time.AfterFunc(period, s.resyncDue)
	} else {
		s.timer.Reset(period)
	}
	return nil
}

// resyncDue is called by the timer. The runner takes the state, because only the runner
// knows the handler's position.
func (s *Subscription[T]) resyncDue() {
	s.mu.Lock()
	if s.removed.Load() || s.period == 0 {
		s.mu.Unlock()
		return
	}
	s.timer.Reset(s.period)
	s.due = s.due || !s.resyncing
	s.mu.Unlock()
	s.wake()
}
