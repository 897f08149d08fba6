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
	// OnPanic is told of a handler that panicked or ended its goroutine, with the
	// event's key and the stack. It runs on the handler's goroutine. By default it
	// is logged by slog.
	OnPanic func(handler string, key object.Key, recovered any, stack []byte)
	// Crash, where it returns true, lets a panic go on after OnPanic has heard of
	// it, and end the program.
	Crash func() bool
	// Together lets handlers that are being given a state take small turns, so that they come to an object at about the
	// same time: for objects that have to be made for the first and are kept a moment for the next.
	Together bool
	// Go runs a handler until there is nothing left for it; nil starts a goroutine for
	// that. A simulation puts its own scheduler here. It must not run it before it
	// returns.
	Go func(handler string, run func())
}

// Fanout is one stream and its handlers. There is one publisher: Publish and
// MarkSynced are called by one goroutine at a time. All else may be called from
// anywhere, the handlers included.
type Fanout[T any] struct {
	opts Options
	born time.Time

	// lastSeq is the newest sequence number published; it is stored after its
	// batch was linked.
	lastSeq atomic.Uint64
	// mark is one more than the sequence number that ends the initial state, as
	// far as there are batches; 0 while that is not known.
	mark atomic.Uint64

	runQueue runQueue[T]
	runFn    func() // f.runner, made once so that starting it allocates nothing

	mu      sync.Mutex
	tail    *node[T]           // the empty end of the chain
	linked  uint64             // the sequence number of the last batch in the chain
	subs    []*Subscription[T] // replaced, never changed
	alive   []*Subscription[T] // those whose last callback may be to come
	joined  int
	stopped bool
}

// node is a place in the chain. It is empty until its next is set; then its
// other fields are final. An idle handler rests on the empty one at the end and
// so pins nothing.
type node[T any] struct {
	start  uint64 // how many events the chain had before this node; set from the beginning
	seq    uint64
	at     int64 // when it was published, as Fanout.now counts
	events []object.Event[T]
	state  iter.Seq[object.Event[T]] // in place of events
	next   atomic.Pointer[node[T]]
}

// New makes a Fanout without handlers.
func New[T any](opts Options) *Fanout[T] {
	f := &Fanout[T]{
		opts: opts,
		born: time.Now(),
		tail: new(node[T]),
	}
	f.runFn = f.runner
	return f
}

// now is the time since the Fanout was made, never 0. Reading it is cheaper than
// time.Now.
func (f *Fanout[T]) now() int64 { return int64(time.Since(f.born)) + 1 }

// Publish appends a batch to the stream and wakes the handlers that are idle. It
// takes over the slice. Sequence numbers begin at 1 and grow. A batch without
// events has a number too: publish it, so that handlers know that there is
// nothing in it to wait for. After Stop it does nothing.
func (f *Fanout[T]) Publish(seq uint64, events []object.Event[T]) {
	f.publish(seq, events, nil)
}

// PublishState is Publish for a batch that is a whole state, every object of it new: each
// handler reads it at its own pace, as Adds marked Initial, and nobody holds it as
// events. The state counts as one event where a backlog is bounded.
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

// MarkSynced says that the initial state was complete with batch seq. Call it
// when that batch was published, or turned out to be empty.
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

// Join adds a handler. What is published from now on is delivered to it, after
// the state that HandlerOptions.Replay gives.
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
	s.activity.Store(notified) // nobody starts it before it has its state
	f.subs = append(slices.Clip(f.subs), s)
	f.alive = append(f.alive, s)
	f.mu.Unlock()
	// The place in the chain comes first, the state second: so the state has
	// everything before that place, and perhaps more, which is skipped later.
	if opts.Replay != nil {
		s.takeReplay(opts.Replay)
	}
	if opts.Resync > 0 {
		_ = s.SetResync(opts.Resync) // what could be wrong with it was checked
	}
	s.start()
	return s, nil
}

// Subscriptions gives the handlers that have joined and were not removed, in
// the order in which they joined.
func (f *Fanout[T]) Subscriptions() []*Subscription[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.subs)
}

// leave takes a handler out of the stream; finished, when its last callback has
// returned, out of what Stop waits for.
func (f *Fanout[T]) leave(s *Subscription[T], finished bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(f.subs, s); i >= 0 {
		f.subs = slices.Concat(f.subs[:i], f.subs[i+1:])
	}
	if i := slices.Index(f.alive, s); finished && i >= 0 {
		f.alive = slices.Delete(f.alive, i, i+1)
	}
}

// Stop removes all handlers; what waits for them is dropped. It waits for the
// callbacks that are running, those of handlers removed earlier included. If ctx
// ends first, its error is returned with the names of the handlers and the keys
// of the events that they are still busy with. Stop may be called again to wait
// longer. A handler that calls it waits for itself.
func (f *Fanout[T]) Stop(ctx context.Context) error {
	f.mu.Lock()
	f.stopped = true
	subs := f.subs
	f.subs = nil
	alive := slices.Clone(f.alive)
	f.mu.Unlock()
	for _, s := range subs {
		s.shutdown()
	}
	for i, s := range alive {
		select {
		case <-s.Done():
		case <-ctx.Done():
			return stillRunning(alive[i:], ctx.Err())
		}
	}
	return nil
}

func stillRunning[T any](subs []*Subscription[T], cause error) error {
	var names []string
	for _, s := range subs {
		if s.done.happened.Load() {
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
		return errors.New("there is no Handle; set it to the function that takes the events")
	case o.Handle != nil && o.HandleShared != nil:
		return errors.New("there are both Handle and HandleShared; set one")
	case o.Resync < 0:
		return fmt.Errorf("a resync every %s makes no sense; it must not be negative", o.Resync)
	case o.Resync > 0 && o.State == nil:
		return errResyncWithoutState
	}
	return nil
}

var errResyncWithoutState = errors.New("a resync needs State, the function that gives the current state")
