package cache

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/store"
)

// Options are settings that client-go's structs do not have. The plain constructors use
// the zero value: an unbounded backlog for each handler, and no history.
type Options struct {
	// MaxBacklog is the number of events in a handler's backlog from which on they are
	// coalesced; 0 means that the backlog is unbounded.
	MaxBacklog int
	// HistoryBytes and HistoryAge bound a log of recent changes, which
	// Engine(i).Reader().Since replays; with 0 bytes there is no log. The bytes are
	// those of the objects before and after each change. Estimating them costs about
	// as much time per event as encoding the object.
	HistoryBytes int
	HistoryAge   time.Duration
	// Layout is the layout of the store: store.Live keeps objects as they are, store.Shared and
	// store.Packed need less memory. The packed layout decodes an object on every read, so it
	// suits programs that read few of many objects. ReadCache is the number of recently read or
	// written objects that it also keeps decoded (0: 256, negative: none).
	Layout    store.Layout
	ReadCache int
	// OnProblem is called for every problem: streams that break, objects that cannot be
	// transformed or indexed, handlers that panic. The WatchErrorHandler is called only
	// for lists and watches that could not be opened, as in client-go.
	OnProblem func(informer.Problem)
}

func (o Options) backlog() int {
	if o.MaxBacklog <= 0 {
		return -1
	}
	return o.MaxBacklog
}

// Constructors returns shared informers with Options. Its methods have the signatures
// of the functions of the same names, so that one of them can be passed as a
// constructor, for example as controller-runtime's cache.Options.NewInformer.
type Constructors struct{ options Options }

// With returns the constructors of shared informers with options:
//
//	cache.With(cache.Options{MaxBacklog: 10_000}).NewSharedIndexInformer(lw, &corev1.Pod{}, 0, nil)
func With(o Options) Constructors { return Constructors{o} }

// NewSharedInformer returns a shared informer without indexes.
func (c Constructors) NewSharedInformer(lw ListerWatcher, exampleObject runtime.Object,
	defaultEventHandlerResyncPeriod time.Duration) SharedInformer {
	return c.NewSharedIndexInformer(lw, exampleObject, defaultEventHandlerResyncPeriod, nil)
}

// NewSharedIndexInformer returns a shared informer.
func (c Constructors) NewSharedIndexInformer(lw ListerWatcher, exampleObject runtime.Object,
	defaultEventHandlerResyncPeriod time.Duration, indexers Indexers) SharedIndexInformer {
	return c.NewSharedIndexInformerWithOptions(lw, exampleObject, SharedIndexInformerOptions{
		ResyncPeriod: defaultEventHandlerResyncPeriod, Indexers: indexers})
}

// NewSharedIndexInformerWithOptions returns a shared informer.
func (c Constructors) NewSharedIndexInformerWithOptions(lw ListerWatcher, exampleObject runtime.Object,
	options SharedIndexInformerOptions) SharedIndexInformer {
	return newSharedIndexInformer(lw, exampleObject, options, c.options)
}

// Engine returns the engine's informer of a shared informer of this package. It gives
// access to Health, with backlogs, last-event age and errors, to snapshots and to the
// history. Do not run or stop it; use the shared informer for that. ok is false for an
// informer of any other package.
func Engine(i SharedInformer) (engine *informer.Informer[any], ok bool) {
	s, ok := i.(*sharedIndexInformer)
	if !ok {
		return nil, false
	}
	return s.engine, true
}
