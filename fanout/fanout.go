package fanout

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// Options configure a Fanout.
type Options struct {
	// OnPanic is called after a callback panicked or ended its goroutine, with the
	// event's key and the stack. It runs on the goroutine that called the handler. The
	// default logs with slog.
	OnPanic func(handler string, key object.Key, recovered any, stack []byte)
	// Crash is called after OnPanic. If it returns true, the panic is raised again and
	// ends the program.
	Crash func() bool
	// Together makes handlers take small turns while they receive a state, so that they
	// reach each object at about the same time. It is for objects that are decoded when
	// the first handler reads them and cached only briefly for the others.
	Together bool
	// Go, if set, replaces the runners: it is called with a function that delivers to a
	// handler until nothing is left, and must arrange for that function to be called
	// after Go has returned. It is for simulations with their own scheduler.
	Go func(handler string, run func())
}

// Fanout is one stream and its handlers. There is one publisher: Publish,
// PublishState and MarkSynced must be called by one goroutine at a time. All other
// methods are safe for concurrent use, and handlers may call them.
type Fanout[T any] struct {
	opts    Options
	created time.Time

	// lastSeq is the last sequence number published. It is stored after the batch was linked.
	lastSeq atomic.Uint64
	// mark is one more than the sequence number of the last non-empty batch of the initial
	// state; 0 until MarkSynced was called.
	mark atomic.Uint64

	runQueue runQueue[T]
	runFn    func() // f.runner, stored so that starting a runner allocates nothing

	mu         sync.Mutex
	tail       *node[T]           // the empty end of the chain
	linked     uint64             // the sequence number of the last batch in the chain
	subs       []*Subscription[T] // copied on every change
	unfinished []*Subscription[T] // handlers that may still be called, removed ones included
	joined     int
	stopped    bool
}

// node is an element of the chain. It is empty until next is set; then all fields are
// final. An idle handler points to the empty node at the end and so keeps no batch alive.
type node[T any] struct {
	start  uint64 // the number of events before this node; set when the node is made
	seq    uint64
	at     int64 // when it was published, by Fanout.now
	events []object.Event[T]
	state  iter.Seq[object.Event[T]] // instead of events
	next   atomic.Pointer[node[T]]
}

// New returns a Fanout without handlers.
func New[T any](opts Options) *Fanout[T] {
	f := &Fanout[T]{
		opts:    opts,
		created: time.Now(),
		tail:    new(node[T]),
	}
	f.runFn = f.runner
	return f
}

// now returns the time since the Fanout was made, in nanoseconds. It is never 0, and
// cheaper than time.Now.
func (f *Fanout[T]) now() int64 { return int64(time.Since(f.created)) + 1 }

// Publish appends a batch to the stream and schedules idle handlers. The caller must
// not change the slice afterwards. Sequence numbers begin at 1 and increase. Batches
// without events must be published too, so that handlers learn that the sequence number
// was reached. After Stop, Publish does nothing.
func (f *Fanout[T]) Publish(seq uint64, events []object.Event[T]) {
	f.publish(seq, events, nil)
}

// PublishState is like Publish for a batch that is a whole state of new objects. Each
// handler iterates over the state at its own pace and receives Added events marked
// Initial; the events are never all in memory. The state counts as one event towards a
// handler's backlog.
func (f *Fanout[T]) PublishState(seq uint64, state iter.Seq[object.Event[T]]) {
	f.publish(seq, nil, state)
}

func (f *Fanout[T]) publish(seq uint64, events []object.Event[T], state iter.Seq[object.Event[T]]) {
	size := len(events)
	if state != nil {
		size = 1
	}
	f.mu.Lock()
	subs := f.subs
	if len(subs) == 0 || size == 0 {
		f.lastSeq.Store(seq)
		f.mu.Unlock()
		for _, s := range subs {
			if s.awaitsSeq.Load() {
				s.wake()
			}
		}
		return
	}
	n := f.tail
	n.seq, n.events, n.state, n.at = seq, events, state, f.now()
	end := &node[T]{start: n.start + uint64(size)}
	f.tail, f.linked = end, seq
	n.next.Store(end)
	f.lastSeq.Store(seq)
	f.mu.Unlock()
	var ready handlerList[T]
	for _, s := range subs {
		if s.coalescing.Load() || int64(end.start-s.position.Load()) > s.maxBacklog {
			s.absorb(end)
		}
		if s.notify() {
			ready.add(s)
		}
	}
	f.schedule(ready)
}

// MarkSynced declares the initial state complete with batch seq. Call it after that
// batch was published, even if it was empty.
func (f *Fanout[T]) MarkSynced(seq uint64) {
	f.mu.Lock()
	f.mark.Store(min(seq, f.linked) + 1)
	subs := f.subs
	f.mu.Unlock()
	var ready handlerList[T]
	for _, s := range subs {
		if s.notify() {
			ready.add(s)
		}
	}
	f.schedule(ready)
}

// Join adds a handler. It receives the state that HandlerOptions.Replay returns, and
// then everything that is published from now on.
func (f *Fanout[T]) Join(opts HandlerOptions[T]) (*Subscription[T], error) {
	if err := opts.check(); err != nil {
		return nil, fmt.Errorf("join handler %q: %w", opts.Name, err)
	}
	if handle := opts.Handle; handle != nil {
		opts.HandleShared = func(e *object.Event[T]) { handle(*e) }
	}
	f.mu.Lock()
	if f.stopped {
		f.mu.Unlock()
		return nil, fmt.Errorf("join handler %q: the fanout was stopped; join before Stop, or make a new one", opts.Name)
	}
	f.joined++
	if opts.Name == "" {
		opts.Name = fmt.Sprintf("handler %d", f.joined)
	}
	s := newSubscription(f, opts, f.tail, f.lastSeq.Load())
	s.activity.Store(notified) // so that it is not scheduled before it has its state
	f.subs = append(slices.Clip(f.subs), s)
	f.unfinished = append(f.unfinished, s)
	f.mu.Unlock()
	// The position in the chain is taken first, the state second. So the state contains
	// everything before that position; batches after it that it contains too are skipped.
	if opts.Replay != nil {
		s.takeReplay(opts.Replay)
	}
	if opts.Resync > 0 {
		_ = s.SetResync(opts.Resync) // check has validated it
	}
	s.start()
	return s, nil
}

// Subscriptions returns the handlers that have joined and were not removed, in the
// order in which they joined.
func (f *Fanout[T]) Subscriptions() []*Subscription[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.subs)
}

// leave removes a handler from the stream. If finished is true, its last callback has
// returned, and Stop no longer waits for it.
func (f *Fanout[T]) leave(s *Subscription[T], finished bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(f.subs, s); i >= 0 {
		f.subs = slices.Concat(f.subs[:i], f.subs[i+1:])
	}
	if i := slices.Index(f.unfinished, s); finished && i >= 0 {
		f.unfinished = slices.Delete(f.unfinished, i, i+1)
	}
}

// Stop removes all handlers and drops their backlogs. It waits for running callbacks,
// including those of handlers that were removed before. If ctx ends first, Stop returns
// its error with the names of the handlers that are still running and the keys of their
// events. Stop may be called again to wait longer. A handler must not call Stop, because
// it would wait for itself.
func (f *Fanout[T]) Stop(ctx context.Context) error {
	f.mu.Lock()
	f.stopped = true
	subs := f.subs
	f.subs = nil
	unfinished := slices.Clone(f.unfinished)
	f.mu.Unlock()
	for _, s := range subs {
		s.shutdown()
	}
	for i, s := range unfinished {
		select {
		case <-s.Done():
		case <-ctx.Done():
			return stillRunning(unfinished[i:], ctx.Err())
		}
	}
	return nil
}

func stillRunning[T any](subs []*Subscription[T], cause error) error {
	var names []string
	for _, s := range subs {
		if s.done.fired.Load() {
			continue
		}
		name := fmt.Sprintf("%q", s.Name())
		if st := s.Stats(); st.Running > 0 || st.RunningKey != "" {
			name = fmt.Sprintf("%s (with %q, for %s)", name, st.RunningKey, st.Running)
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("stop handlers: still running: %s: %w", strings.Join(names, ", "), cause)
}

func (o *HandlerOptions[T]) check() error {
	switch {
	case o.Handle == nil && o.HandleShared == nil:
		return errors.New("there is no function that receives the events; set Handle")
	case o.Handle != nil && o.HandleShared != nil:
		return errors.New("both Handle and HandleShared are set; set one of them")
	case o.Resync < 0:
		return fmt.Errorf("the resync period %s is negative", o.Resync)
	case o.Resync > 0 && o.State == nil:
		return errResyncWithoutState
	}
	return nil
}

var errResyncWithoutState = errors.New("a resync needs State, the function that returns the current state")
