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

// Replay is a state as of one batch.
type Replay[T any] struct {
	// Seq is the batch: the state has everything up to it and nothing later. It
	// must not be older than what was published when the state was asked for.
	Seq uint64
	// Events gives the objects: as Adds marked Initial for a late join, as
	// Resynced for a resync. Fanout sets the type and the marks itself, so one
	// function may serve both.
	Events iter.Seq[object.Event[T]]
}

// HandlerOptions describe a handler.
type HandlerOptions[T any] struct {
	// Name stands for the handler in errors and statistics.
	Name string
	// Handle is called with each event, one at a time. It must not change the
	// event's objects: other handlers see them too.
	Handle func(object.Event[T])
	// HandleShared is Handle for who can do without a copy of the event: it is the one that
	// all handlers see, and is good for the time of the call. One of both is required.
	HandleShared func(*object.Event[T])
	// OnPanic is told before Options.OnPanic of a callback that panicked, while the stack is still that of the
	// panic, or of one that ended its goroutine: recovered is nil then. It runs on the handler's goroutine.
	OnPanic func(recovered any)
	// Replay gives the state for a handler that joins late. It is called once, by
	// Join, and should be quick: what is published meanwhile is not bounded. Its
	// events are read later, at the handler's pace. It may be nil where nothing
	// came before.
	Replay func() Replay[T]
	// Resync is how often the handler is given the whole state again; 0 is never.
	// A resync that comes due while the one before is not delivered is dropped,
	// and a handler that is being coalesced gets it when it has caught up.
	Resync time.Duration
	// State gives the state for a resync; it is called on the handler's goroutine.
	State func() Replay[T]
	// MaxBacklog is how many events may wait before they are coalesced. 0 means
	// 10,000; a negative number keeps every event, however many.
	MaxBacklog int
}

// What a subscription's goroutine is doing. Whoever moves it from idle to
// notified owns the right to start one.
const (
	idle     = iota // there is none
	running         // it has looked at the chain since it was last notified, or is about to
	notified        // it has to look again before it ends; also the state after the end
)

// How far a late join has come.
const (
	replayNone   = iota // nothing to replay, or all of it delivered
	replayAsked         // the state is being taken, its sequence number not yet known
	replayGiven         // being delivered
	replayFailed        // could not be had; the handler never counts as synced
)

// Subscription is a handler's place in the stream.
type Subscription[T any] struct {
	// The first of three lines of the processor's cache is what a publisher asks each handler for. With the other two,
	// it is what a delivery needs.
	activity   atomic.Int32
	removed    atomic.Bool
	coalescing atomic.Bool // changed under mu
	busy       bool        // work is in hand
	unclocked  uint8       // callbacks to come that do not read the clock; for the handler's goroutine, as crashing
	crashing   bool
	position   atomic.Uint64 // cursor.start, for the publisher
	maxBacklog int64
	nextReady  *Subscription[T] // in a handlerList: the next
	handle     func(*object.Event[T])
	mu         sync.Mutex
	cursor     *node[T] // the first batch that was neither begun nor folded; nil when removed

	// work, next and workSeq are for the handler's goroutine; work is changed under mu, for Stats.
	work      []object.Event[T]
	next      int
	workSeq   uint64        // the last batch that was taken from the chain
	lastSeq   uint64        // everything up to here was delivered
	delivered atomic.Uint64 // it, target, started and panics are for Stats, written by the handler's goroutine
	target    atomic.Uint64 // what delivered will be at the end of the work in hand

	started   atomic.Int64
	busySince int64 // when the work in hand was published; 0 where that means nothing
	fan       *Fanout[T]
	panics    atomic.Uint64
	awaitsSeq atomic.Bool // a resync waits for a batch that may be empty
	replay    uint8
	due       bool // a resync is to be taken
	resyncing bool // one was taken and is not delivered yet
	name      string
	onPanic   func(recovered any) // may be nil
	state     func() Replay[T]    // for resyncs; may be nil

	pending   pending[T]
	coalesced uint64
	skip      uint64 // batches up to this one are part of the replay
	timer     *time.Timer
	period    time.Duration
	resync    *stateReader[T] // one that was taken, until its turn comes
	reader    *stateReader[T] // the replay or resync that is being delivered; for the handler's goroutine

	synced latch
	done   latch
}

// latch is an event that happens once. The channel that tells of it is made when somebody
// asks for it: most handlers are asked neither whether they have synced nor whether they
// have ended. mu of the subscription guards it.
type latch struct {
	happened atomic.Bool
	told     chan struct{}
}

func (l *latch) happen() {
	l.happened.Store(true)
	if l.told != nil {
		close(l.told)
	}
}

func (l *latch) channel() <-chan struct{} {
	if l.told == nil {
		l.told = make(chan struct{})
		if l.happened.Load() {
			close(l.told)
		}
	}
	return l.told
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

// Name is the handler's name.
func (s *Subscription[T]) Name() string { return s.name }

// Synced is closed when the initial state is complete and this handler has been
// given all of it. It stays open where the handler was removed before.
func (s *Subscription[T]) Synced() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced.channel()
}

// HasSynced reports whether Synced is closed.
func (s *Subscription[T]) HasSynced() bool { return s.synced.happened.Load() }

// Done is closed when the handler was removed, or the Fanout stopped, and its
// last callback has returned.
func (s *Subscription[T]) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done.channel()
}

// Remove takes the handler out of the stream and drops what waits for it. A
// callback that is running goes on; no other begins. Remove does not wait, so
// that the handler may call it too; Done does. Removing twice is fine.
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

// finish runs once, when the handler was removed and has no goroutine, or on
// that goroutine as its last act.
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
	s.done.happen()
	s.mu.Unlock()
}

// SetResync changes how often the handler is given the whole state; 0 ends it.
// The first period begins now.
func (s *Subscription[T]) SetResync(period time.Duration) error {
	if period < 0 {
		return fmt.Errorf("set the resync of handler %q to %s: it must not be negative", s.Name(), period)
	}
	if period > 0 && s.state == nil {
		return fmt.Errorf("set the resync of handler %q to %s: %w", s.Name(), period, errResyncWithoutState)
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

// resyncDue is called by the timer. The state itself is taken by the handler's
// goroutine, which knows how far it has come.
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
