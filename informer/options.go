package informer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/store"
)

// Options configure an informer. The zero value of each field means its default.
type Options[T any] struct {
	// Name is the informer's name in logs and metrics. The default is the source's description.
	Name string

	// Indexes are the indexes of the store, by name. More can be added later with AddIndexes.
	Indexes Indexes[T]
	// Transform changes each object before it is stored, once per version, typically to drop fields that are never
	// read. It may change the object in place. If it fails, the object keeps its stored state, or is not stored at
	// all, and the error is reported.
	//
	// The informer can be read and changed while a transform runs; changes from the source wait for it. So a
	// transform may call any method of the informer except those that wait for later changes: WaitSynced, WaitVersion
	// and Stop would wait for the transform itself.
	Transform func(obj T) (T, error)

	// Layout is the form in which objects are stored: store.Live, the default, store.Shared or store.Packed. The
	// layouts behave alike and differ in memory and in what reads cost.
	Layout store.Layout
	// Codec encodes and decodes objects for the packed layout. It is needed only for sources that have no codec of
	// their own; those of source/kube have one. Its functions run inside writes and reads: they must neither block
	// nor call the informer.
	Codec *object.Codec[T]
	// ReadCache is how many recently read or written objects the packed layout keeps decoded. The default is 256; a
	// negative number keeps none.
	ReadCache int
	// HistoryBytes and HistoryAge bound the log of recent changes that Reader().Since replays. The default is no log;
	// an age of 0 means that only the bytes bound it.
	HistoryBytes int
	HistoryAge   time.Duration
	// DetectWrites is called for every stored object that a handler or a reader has written to. It is meant for
	// tests: each read then hashes the object. It is called where the change is detected, which may be inside a
	// write: it must neither block nor call the informer.
	DetectWrites func(store.Written)

	// StartFrom is the state of an earlier informer, for example one that ReadState read from a file. The first Run
	// starts with it and watches from its version instead of listing: the informer is synced at once, and
	// Health.Reflector.Restored says that the source has not confirmed the state yet. If the source has no history from
	// that version, or the state cannot be used as it is, a list brings it up to date.
	StartFrom *State[T]
	// Admit, if it is set, is called before each list is requested, and may wait, so that a program with many informers
	// can bound the lists at once. end is called when the list has been read, or reading it has failed.
	Admit func(ctx context.Context) (end func(), err error)
	// FirstList says how fresh the first list must be. The default is source.Consistent.
	FirstList source.Match
	// PageSize is the page size of lists. The default is the source's.
	PageSize int
	// WatchTimeout is how long a watch lasts before the source ends it: each watch takes a random time between this
	// and twice as much. The default is 5 minutes.
	WatchTimeout time.Duration
	// Silence is how long a list or an initial state may send nothing before it is abandoned. The default is 30
	// seconds.
	Silence time.Duration
	// Backoff says how long to wait after failed attempts.
	Backoff reflector.Backoff
	// QueueBytes bounds the changes that wait between reflector and store. Beyond it, changes are coalesced per key.
	// The default is 16 MiB.
	QueueBytes int

	// Resync is the interval at which every object is delivered again to each handler. The default is never. A
	// handler can have its own interval.
	Resync time.Duration
	// StopTimeout is how long Run waits for running callbacks after its context has ended. The default is 10 seconds.
	StopTimeout time.Duration
	// CrashOnPanic is asked after a handler has panicked and the panic was reported: if it returns true, the panic
	// continues and ends the program. The default is to recover.
	CrashOnPanic func() bool

	// OnProblem is called for everything that goes wrong. It must not block, and may call any method of the informer
	// except Stop. Problems that occur while a batch is written are reported when the batch is in the store. A panic
	// in it is logged and counted.
	OnProblem func(Problem)
	// Logger logs problems and changes of state. The default is slog.Default().
	Logger *slog.Logger

	// Verbatim applies changes the way client-go does: versions and UIDs are not compared, an object that is listed
	// again is an update (of the stored object, if the version is the same), the deletion of an unknown object is
	// delivered, every event is kept for every handler, HasSynced stays true after the stop, and Run can be called
	// once. Package compat is built on it.
	Verbatim bool

	// steps is set by tests that run the informer one step at a time.
	steps *steps[T]
}

// Indexes are index functions by the name of their index.
//
// An index function returns the values under which an object is found. If it fails, the object is stored, is not found
// by this index, and the error is reported. For an index by namespace use store.ByNamespace, which does not look at
// the objects.
//
// The function runs inside the write that stores the object. It must neither block nor call the informer, a lister or
// a factory: these would wait for that same write. Everything it needs must be in the object; a Transform can put it
// there.
type Indexes[T any] = map[string]store.IndexFunc[T]

// complete checks the options and fills in the defaults.
func (o *Options[T]) complete(src source.Source[T]) error {
	for name, values := range o.Indexes {
		switch {
		case name == "":
			return errors.New("an index has no name; give it one")
		case values == nil:
			return fmt.Errorf("index %q has no function; give one that returns the values of an object", name)
		}
	}
	if err := o.StartFrom.check(o.Layout); err != nil {
		return err
	}
	if c := o.Codec; c != nil && (c.Encode == nil || c.Decode == nil) {
		return errors.New("the codec is not complete; set both Encode and Decode")
	}
	if o.Resync < 0 {
		return fmt.Errorf("the resync interval is %s; it cannot be negative", o.Resync)
	}
	if o.Name == "" {
		o.Name = src.Describe().String()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.StopTimeout == 0 {
		o.StopTimeout = 10 * time.Second
	}
	return nil
}
