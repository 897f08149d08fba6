package informer

import (
	"errors"
	"fmt"
	"time"

	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// Handler receives the changes of the store, one event at a time.
type Handler[T any] interface {
	// Handle receives one event. It may block: that delays no other handler.
	Handle(e object.Event[T])
}

// HandlerFunc is a Handler made of one function.
type HandlerFunc[T any] func(e object.Event[T])

// Handle calls the function.
func (f HandlerFunc[T]) Handle(e object.Event[T]) { f(e) }

// Funcs is a Handler made of functions, each of which may be nil.
type Funcs[T any] struct {
	// OnAdd is called for an object that is new, or that existed when the handler subscribed: then initial is true.
	OnAdd func(obj T, initial bool)
	// OnUpdate is called for an object that has changed, and for one that is delivered again by a resync: then old and
	// obj are the same.
	OnUpdate func(old, obj T)
	// OnDelete is called for an object that was deleted, with its last known state. If the deletion was missed, because
	// the connection was down for example, and then inferred from a list, missed is true, and the object may have changed
	// before it was deleted.
	OnDelete func(last T, missed bool)
}

// Handle calls the function for the event.
func (f Funcs[T]) Handle(e object.Event[T]) {
	switch {
	case e.Type == object.Added && f.OnAdd != nil:
		f.OnAdd(e.New, e.Initial)
	case (e.Type == object.Updated || e.Type == object.Resynced) && f.OnUpdate != nil:
		f.OnUpdate(e.Old, e.New)
	case e.Type == object.Deleted && f.OnDelete != nil:
		f.OnDelete(e.Old, e.Missed)
	}
}

// handleEntry is Handle for an event whose objects may still be encoded. It decodes only what the functions take.
func (f Funcs[T]) handleEntry(e *object.Event[*store.Entry[T]], name string) {
	switch {
	case e.Type == object.Added && f.OnAdd != nil:
		f.OnAdd(e.New.ObjectFor(name), e.Initial)
	case (e.Type == object.Updated || e.Type == object.Resynced) && f.OnUpdate != nil:
		f.OnUpdate(objectFor(e.Old, name), e.New.ObjectFor(name))
	case e.Type == object.Deleted && f.OnDelete != nil:
		f.OnDelete(objectFor(e.Old, name), e.Missed)
	}
}

// objectFor returns an entry's object, and the zero T if there is no entry: an event that was coalesced in a backlog
// may have no old state.
func objectFor[T any](e *store.Entry[T], name string) (obj T) {
	if e != nil {
		obj = e.ObjectFor(name)
	}
	return obj
}

// verifying checks after each event that the handler did not write to the objects.
func verifying[T any](handle entryHandler[T]) entryHandler[T] {
	return func(e *object.Event[*store.Entry[T]]) {
		defer func() { e.Old.Verify(); e.New.Verify() }()
		handle(e)
	}
}

// opened returns the event with objects instead of entries.
func opened[T any](e *object.Event[*store.Entry[T]], name string) object.Event[T] {
	return object.Event[T]{Type: e.Type, Key: e.Key, Version: e.Version, OldUID: e.OldUID, NewUID: e.NewUID,
		Initial: e.Initial, Missed: e.Missed, Unchanged: e.Unchanged, Epoch: e.Epoch,
		Old: objectFor(e.Old, name), New: objectFor(e.New, name)}
}

// Subscription is a handler's subscription to an informer.
type Subscription[T any] = fanout.Subscription[*store.Entry[T]]

// HandlerOptions configure a subscription. The zero value of each field means its default.
type HandlerOptions struct {
	// Name is the handler's name in logs, metrics and in the error of a Stop that waits for it. The default is the
	// informer's name and a number.
	Name string
	// Resync is the interval at which this handler receives every object again. The default is the informer's; a
	// negative interval means never.
	Resync time.Duration
	// MaxBacklog is how many events may wait for this handler before they are coalesced per object. The default is
	// 10,000; a negative number keeps every event, and memory is then not bounded.
	MaxBacklog int
	// FromNow skips the objects that the store holds already: the handler receives only later changes.
	FromNow bool
	// OnPanic is called after a callback has panicked, on the handler's goroutine and with the stack of the panic, before
	// the informer reports the problem. After a callback that ended its goroutine, recovered is nil.
	OnPanic func(recovered any)
}

// ErrStopped is returned by methods that need an informer that runs or has not been started yet.
var ErrStopped = errors.New("the informer has stopped")

// Subscribe adds a handler, before or while the informer runs. The handler first receives the stored objects, marked
// initial, then all changes, in order. Nil options mean the defaults.
func (i *Informer[T]) Subscribe(h Handler[T], opts *HandlerOptions) (*Subscription[T], error) {
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

// entryHandler receives events whose objects may still be encoded.
type entryHandler[T any] = func(e *object.Event[*store.Entry[T]])

// SubscribeEntries is Subscribe for a handler that reads few objects: in the packed layout an object is decoded when
// its entry's Object method is called. The event is valid during the call; its entries may be kept.
func (i *Informer[T]) SubscribeEntries(handle func(e *object.Event[*store.Entry[T]]),
	opts *HandlerOptions) (*Subscription[T], error) {
	if handle == nil {
		return nil, errors.New("informer: the handler is nil; give a function")
	}
	return i.subscribe(func(string) entryHandler[T] { return handle }, opts)
}

// subscribe adds a handler that is made once its name is known.
func (i *Informer[T]) subscribe(newHandler func(name string) entryHandler[T],
	opts *HandlerOptions) (*Subscription[T], error) {
	var o HandlerOptions
	if opts != nil {
		o = *opts
	}
	if o.Resync == 0 {
		o.Resync = i.opts.Resync
	}
	if i.opts.Verbatim && o.MaxBacklog == 0 {
		o.MaxBacklog = -1
	}
	if o.Name == "" {
		o.Name = fmt.Sprintf("%s#%d", i.opts.Name, i.handlers.Add(1))
	}
	i.mu.Lock()
	fan, gone := i.fan, i.state == starting || i.state == stopped || i.state == stopping
	i.mu.Unlock()
	if gone {
		return nil, fmt.Errorf("subscribing %s to %s: %w; call Run again and then subscribe", o.Name,
			i.opts.Name, ErrStopped)
	}
	handle := newHandler(o.Name)
	if i.opts.DetectWrites != nil {
		handle = verifying(handle)
	}
	replay := func() fanout.Replay[*store.Entry[T]] { return i.replay(object.Added) }
	if o.FromNow {
		replay = nil
	}
	return fan.Join(fanout.HandlerOptions[*store.Entry[T]]{
		Name:         o.Name,
		HandleShared: handle,
		OnPanic:      o.OnPanic,
		Replay:       replay,
		State:        func() fanout.Replay[*store.Entry[T]] { return i.replay(object.Resynced) },
		Resync:       max(o.Resync, 0),
		MaxBacklog:   o.MaxBacklog,
	})
}

// replay returns the current state as events.
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
