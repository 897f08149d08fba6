package cache

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/store"
)

// Options are what client-go's structs have no room for. The zero value is what the
// plain constructors use: every event is kept for every handler, and no history.
type Options struct {
	// MaxBacklog is how many events may wait for one handler before they are
	// coalesced per object to the latest state; 0 keeps all, however many.
	MaxBacklog int
	// HistoryBytes and HistoryAge bound a log of recent changes, which
	// Engine(i).Reader().Since replays; 0 bytes is none. The bytes are those of the
	// objects before and after each change, encoded or estimated, which takes each
	// event about as long as encoding its object.
	HistoryBytes int
	HistoryAge   time.Duration
	// Layout is the form in which objects are kept: store.Live as they are, or store.Shared or
	// store.Packed, which take less memory. The packed layout decodes what is read, so
	// it is for those who read little of much; ReadCache is how many objects it keeps
	// decoded because they were read or written a moment ago (0: 256, negative: none).
	Layout    store.Layout
	ReadCache int
	// OnProblem hears of everything that goes wrong: streams that break, objects that
	// cannot be transformed or indexed, handlers that panic. The WatchErrorHandler
	// hears what client-go's hears, lists and watches that could not be opened.
	OnProblem func(informer.Problem)
}

func (o Options) backlog() int {
	if o.MaxBacklog <= 0 {
		return -1
	}
	return o.MaxBacklog
}

// Constructors make shared informers with Options. Their signatures are those of
// the functions of the same names, so that one can be handed to whoever takes a
// constructor: controller-runtime's cache.Options.NewInformer, for instance.
type Constructors struct{ options Options }

// With gives the constructors of shared informers with options:
//
//	cache.With(cache.Options{MaxBacklog: 10_000}).NewSharedIndexInformer(lw, &corev1.Pod{}, 0, nil)
func With(o Options) Constructors { return Constructors{o} }

// NewSharedInformer makes a shared informer without indexes.
func (c Constructors) NewSharedInformer(lw ListerWatcher, exampleObject runtime.Object,
	defaultEventHandlerResyncPeriod time.Duration) SharedInformer {
	return c.NewSharedIndexInformer(lw, exampleObject, defaultEventHandlerResyncPeriod, nil)
}

// NewSharedIndexInformer makes a shared informer.
func (c Constructors) NewSharedIndexInformer(lw ListerWatcher, exampleObject runtime.Object,
	defaultEventHandlerResyncPeriod time.Duration, indexers Indexers) SharedIndexInformer {
	return c.NewSharedIndexInformerWithOptions(lw, exampleObject, SharedIndexInformerOptions{
		ResyncPeriod: defaultEventHandlerResyncPeriod, Indexers: indexers})
}

// NewSharedIndexInformerWithOptions makes a shared informer.
func (c Constructors) NewSharedIndexInformerWithOptions(lw ListerWatcher, exampleObject runtime.Object,
	options SharedIndexInformerOptions) SharedIndexInformer {
	return newSharedIndexInformer(lw, exampleObject, options, c.options)
}

// Engine gives the engine's informer behind a shared informer of this package: for
// its Health, which shows backlogs, lag and errors, for snapshots and for its
// history. It is run and stopped through the shared informer only. ok is false for
// anybody else's informer.
func Engine(i SharedInformer) (engine *informer.Informer[any], ok bool) {
	s, ok := i.(*sharedIndexInformer)
	if !ok {
		return nil, false
	}
	return s.engine, true
}
