package informer

import (
	"errors"
	"fmt"
	"time"

	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// Handler is told what happens to the objects, one event at a time.
type Handler[T any] interface {
	// Handle is told of one event. It may block; only this handler waits then.
	Handle(e object.Event[T])
}

// HandlerFunc is a function as a Handler.
type HandlerFunc[T any] func(e object.Event[T])

// Handle calls the function.
func (f HandlerFunc[T]) Handle(e object.Event[T]) { f(e) }

// Funcs is a Handler made of functions, each of which may be left out.
type Funcs[T any] struct {
	// OnAdd is told of an object that is new, or was there at the start.
	OnAdd func(obj T)
	// OnUpdate is told of an object that changed, or is given again.
	OnUpdate func(old, obj T)
	// OnDelete is told of an object that is gone, in its last known state.
	OnDelete func(last T)
}

// Handle calls the function for the event. An object that is given again without
// a change goes to OnUpdate, with old and obj the same.
func (f Funcs[T]) Handle(e object.Event[T]) {
	switch {
	case e.Type == object.Added && f.OnAdd != nil:
		f.OnAdd(e.New)
	case (e.Type == object.Updated || e.Type == object.Resynced) && f.OnUpdate != nil:
		f.OnUpdate(e.Old, e.New)
	case e.Type == object.Deleted && f.OnDelete != nil:
		f.OnDelete(e.Old)
	}
}

// handleEntry is Handle before anything is decoded.
func (f Funcs[T]) handleEntry(e *object.Event[*store.Entry[T]], name string) {
	switch {
	case e.Type == object.Added && f.OnAdd != nil:
		f.OnAdd(e.New.ObjectFor(name))
	case (e.Type == object.Updated || e.Type == object.Resynced) && f.OnUpdate != nil:
		var old T
		if e.Old != nil { // of what was deleted unseen and came back in a backlog there may be none
			old = e.Old.ObjectFor(name)
		}
		f.OnUpdate(old, e.New.ObjectFor(name))
	case e.Type == object.Deleted && f.OnDelete != nil:
		var last T
		if e.Old != nil {
			last = e.Old.ObjectFor(name)
		}
		f.OnDelete(last)
	}
}

// verifying looks, after each event, at whether the handler left the objects as they were.
func verifying[T any](handle entryHandler[T]) entryHandler[T] {
	return func(e *object.Event[*store.Entry[T]]) {
		defer func() { e.Old.Verify(); e.New.Verify() }()
		handle(e)
	}
}

// opened gives an event with the objects themselves.
func opened[T any](e *object.Event[*store.Entry[T]], name string) object.Event[T] {
	out := object.Event[T]{Type: e.Type, Key: e.Key, Version: e.Version, OldUID: e.OldUID, NewUID: e.NewUID,
		Initial: e.Initial, Missed: e.Missed, Unchanged: e.Unchanged, Epoch: e.Epoch}
	if e.Old != nil {
		out.Old = e.Old.ObjectFor(name)
	}
	if e.New != nil {
		out.New = e.New.ObjectFor(name)
	}
	return out
}

// Subscription is a handler's tie to an informer.
type Subscription[T any] = fanout.Subscription[*store.Entry[T]]

// SubscribeOption configures a subscription.
type SubscribeOption func(*subscribeSettings)

type subscribeSettings struct {
	name    string
	resync  time.Duration
	backlog int
	fromNow bool
	onPanic func(recovered any)
}

// HandlerName is how the handler is called in logs, metrics and in the error of
// a Stop that it holds up.
func HandlerName(name string) SubscribeOption {
	return func(s *subscribeSettings) { s.name = name }
}

// ResyncEvery gives this handler every object again at this interval; 0 never.
func ResyncEvery(d time.Duration) SubscribeOption {
	return func(s *subscribeSettings) { s.resync = d }
}

// MaxBacklog is how many events may wait for this handler before they are
// coalesced per object. A negative number keeps every one, at the price of memory
// without bound.
func MaxBacklog(n int) SubscribeOption {
	return func(s *subscribeSettings) { s.backlog = n }
}

// FromNow leaves out what the store holds already: the handler gets only what
// happens from now on.
func FromNow() SubscribeOption {
	return func(s *subscribeSettings) { s.fromNow = true }
}

// OnPanic is told of a callback that panicked, on the handler's goroutine and while the stack is still that of the
// panic, before the informer reports a problem. It is told nil of a callback that ended its goroutine.
func OnPanic(tell func(recovered any)) SubscribeOption {
	return func(s *subscribeSettings) { s.onPanic = tell }
}

// ErrStopped says that the informer has stopped, and that what was asked for needs one that runs or is yet to run.
var ErrStopped = errors.New("informer: stopped; start it again with Run")

// Subscribe adds a handler, before or while the informer runs. It first gets what
// the store holds, marked initial, then everything that happens, in order.
func (i *Informer[T]) Subscribe(h Handler[T], opts ...SubscribeOption) (*Subscription[T], error) {
	switch h := h.(type) {
	case nil:
		return nil, errors.New("informer: the handler is nil; give informer.Funcs or an informer.Handler")
	case Funcs[T]: // decodes no more than its functions take
		return i.subscribe(func(name string) entryHandler[T] {
			return func(e *object.Event[*store.Entry[T]]) { h.handleEntry(e, name) }
		}, opts)
	default:
		return i.subscribe(func(name string) entryHandler[T] {
			return func(e *object.Event[*store.Entry[T]]) { h.Handle(opened(e, name)) }
		}, opts)
	}
}

// entryHandler is a handler before anything is decoded.
type entryHandler[T any] = func(e *object.Event[*store.Entry[T]])

// SubscribeEntries is Subscribe for a handler that looks at an object only where it has
// to: in the packed layout an object is decoded when its entry's Object is called. The
// event is good for the time of the call; its entries may be kept.
func (i *Informer[T]) SubscribeEntries(handle func(e *object.Event[*store.Entry[T]]),
	opts ...SubscribeOption) (*Subscription[T], error) {
	if handle == nil {
		return nil, errors.New("informer: the handler is nil; give a function")
	}
	return i.subscribe(func(string) entryHandler[T] { return handle }, opts)
}

// subscribe adds a handler that is made once its name is known.
func (i *Informer[T]) subscribe(make func(name string) entryHandler[T],
	opts []SubscribeOption) (*Subscription[T], error) {
	s := subscribeSettings{resync: i.cfg.resync}
	if i.cfg.verbatim {
		s.backlog = -1
	}
	for _, o := range opts {
		o(&s)
	}
	if s.name == "" {
		s.name = fmt.Sprintf("%s#%d", i.cfg.name, i.handlers.Add(1))
	}
	i.mu.Lock()
	fan, gone := i.fan, i.state == starting || i.state == stopped || i.state == stopping
	i.mu.Unlock()
	if gone {
		return nil, fmt.Errorf("subscribing %s to %s: %w", s.name, i.cfg.name, ErrStopped)
	}
	handle := make(s.name)
	if i.cfg.onWritten != nil {
		handle = verifying(handle)
	}
	replay := func() fanout.Replay[*store.Entry[T]] { return i.replay(object.Added) }
	if s.fromNow {
		replay = nil
	}
	return fan.Join(fanout.HandlerOptions[*store.Entry[T]]{
		Name:         s.name,
		HandleShared: handle,
		OnPanic:      s.onPanic,
		Replay:       replay,
		State:        func() fanout.Replay[*store.Entry[T]] { return i.replay(object.Resynced) },
		Resync:       s.resync,
		MaxBacklog:   s.backlog,
	})
}

// replay gives the state now as events.
func (i *Informer[T]) replay(t object.ChangeType) fanout.Replay[*store.Entry[T]] {
	snap, epochs := i.snapshotWithEpochs()
	return fanout.Replay[*store.Entry[T]]{Seq: snap.Seq(), Events: func(yield func(object.Event[*store.Entry[T]]) bool) {
		for e := range snap.Entries() {
			if !yield(replayed(t, e, snap.Version(), epochs.epochOf(e.Key, snap.Seq()))) {
				return
			}
		}
	}}
}

func replayed[T any](t object.ChangeType, e *store.Entry[T], at object.Version,
	epoch uint64) object.Event[*store.Entry[T]] {
	ev := object.Event[*store.Entry[T]]{Type: t, Key: e.Key, Version: at, New: e, NewUID: e.UID, Epoch: epoch}
	if t == object.Added {
		ev.Initial = true
	} else {
		ev.Old, ev.OldUID = e, e.UID
	}
	return ev
}
