package informer

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/store"
)

// Option configures an informer.
type Option interface {
	apply(*settings) error
}

type optionFunc func(*settings) error

func (f optionFunc) apply(s *settings) error { return f(s) }

// settings are what options add up to. What depends on the objects' type is
// kept as any here and checked against the informer's type in New, so that
// options that do not depend on it need no type argument.
type settings struct {
	name      string
	indexes   map[string]any // store.IndexFunc[T]
	transform any            // func(T) (T, error)
	start     any            // State[T]
	codec     any            // *object.Codec[T]
	steps     any            // *steps[T]

	layout    store.Layout
	readCache int
	onWritten func(store.Written)

	resync       time.Duration
	logBytes     int
	logAge       time.Duration
	queueBytes   int
	pageSize     int
	watchTimeout time.Duration
	silence      time.Duration
	firstList    source.Match
	backoff      reflector.Backoff
	stopTimeout  time.Duration
	onProblem    func(Problem)
	logger       *slog.Logger
	verbatim     bool
	crash        func() bool
}

// Index adds an index: values gives the values under which an object is found. See IndexFunc for what values must not
// do.
func Index[T any](name string, values func(obj T) []string) Option {
	if values == nil {
		return IndexFunc[T](name, nil)
	}
	return IndexFunc(name, func(obj T) ([]string, error) { return values(obj), nil })
}

// IndexFunc adds an index whose function may fail. An object for which it fails
// is kept, is not found by this index, and is reported. For an index by namespace give
// store.ByNamespace, for which the objects need not be looked at.
//
// The function runs inside the write that stores the object. It must neither block nor call the informer, a
// lister or a factory: a snapshot or another index would wait for that very write. Whatever it needs to know has to be
// in the object; a Transform may look it up and put it there.
func IndexFunc[T any](name string, values store.IndexFunc[T]) Option {
	return optionFunc(func(s *settings) error {
		switch {
		case name == "":
			return errors.New("an index needs a name")
		case values == nil:
			return fmt.Errorf("index %q has no function; give one that returns the values of an object", name)
		case s.indexes[name] != nil:
			return fmt.Errorf("index %q is given twice; use another name or drop one", name)
		}
		s.indexes[name] = values
		return nil
	})
}

// Transform changes each object before it is stored, once per version, typically
// to drop what nobody reads. It may change the object in place. An object for
// which it fails keeps the state it had, or stays out, and is reported. While it runs, the informer
// can be read and changed, and what the source said after the object waits. So it may ask the informer for anything,
// add an index included, but not wait for what comes after the object: WaitSynced, WaitVersion and Stop would wait
// for the transform.
func Transform[T any](f func(obj T) (T, error)) Option {
	return optionFunc(func(s *settings) error {
		if s.transform != nil {
			return errors.New("there are two transforms; combine them into one function")
		}
		if f != nil {
			s.transform = f
		}
		return nil
	})
}

// State is what an informer can start from: everything there was at a version.
type State[T any] struct {
	Version object.Version
	// Items are the objects; store.Entry.Item gives those of a snapshot.
	Items []object.Item[T]
}

// mixed reports whether an item is later than the state. A snapshot shows that while changes
// coalesce, or when an object could not be read after history was set back and stays as it
// was: its version says nothing about those to come, and only a list tells which it is.
func (s *State[T]) mixed() bool {
	for i := range s.Items {
		if s.Version.Before(s.Items[i].Version) {
			return true
		}
	}
	return false
}

// StartFrom starts with a state that is known already, dumped from a snapshot for
// instance, and follows the changes after its version without a list. If the
// source has forgotten that version, or an item is later than it, a list corrects what
// changed meanwhile. It holds for the first Run.
func StartFrom[T any](state State[T]) Option {
	return optionFunc(func(s *settings) error {
		if state.Version == "" {
			return errors.New("the state to start from has no version; take it from Snapshot.Version")
		}
		s.start = state
		return nil
	})
}

// Layout is the form in which objects are kept: store.Live, the default, store.Shared
// or store.Packed. They read the same and differ in memory and in what reads cost.
func Layout(l store.Layout) Option {
	return optionFunc(func(s *settings) error { s.layout = l; return nil })
}

// Codec encodes and decodes objects for the packed layout, where the source brings no
// codec of its own, as those of source/kube do. Its functions run inside writes and reads, and must neither block nor
// call the informer.
func Codec[T any](c *object.Codec[T]) Option {
	return optionFunc(func(s *settings) error {
		if c == nil || c.Encode == nil || c.Decode == nil {
			return errors.New("the codec is not complete; give both Encode and Decode")
		}
		s.codec = c
		return nil
	})
}

// ReadCache is how many objects the packed layout keeps decoded because they were
// read or written a moment ago. The default is 256; a negative number keeps none.
func ReadCache(objects int) Option {
	return optionFunc(func(s *settings) error { s.readCache = objects; return nil })
}

// DetectWrites tells of every stored object that a handler or a reader has written to,
// and who it was. It is meant for tests: each read then costs a hash of the object. report runs where the change is
// found, which may be inside a write: it must neither block nor call the informer.
func DetectWrites(report func(store.Written)) Option {
	return optionFunc(func(s *settings) error { s.onWritten = report; return nil })
}

// Name is how the informer is called in logs and metrics; the default is the
// source's own description.
func Name(name string) Option {
	return optionFunc(func(s *settings) error { s.name = name; return nil })
}

// Resync gives every object again to each handler at this interval, unless the
// handler asks for another. The default is never.
func Resync(every time.Duration) Option {
	return optionFunc(func(s *settings) error {
		if every < 0 {
			return fmt.Errorf("resync every %s: the interval cannot be negative", every)
		}
		s.resync = every
		return nil
	})
}

// History keeps a log of recent changes, bounded by bytes and by age, that
// Reader().Since replays. The default is none.
func History(bytes int, age time.Duration) Option {
	return optionFunc(func(s *settings) error { s.logBytes, s.logAge = bytes, age; return nil })
}

// QueueBytes bounds what waits between reflector and store before changes are
// coalesced per key.
func QueueBytes(n int) Option {
	return optionFunc(func(s *settings) error { s.queueBytes = n; return nil })
}

// PageSize is asked of lists; the default is the source's.
func PageSize(n int) Option {
	return optionFunc(func(s *settings) error { s.pageSize = n; return nil })
}

// WatchTimeout is how long a watch is asked to last, up to twice as long at
// random.
func WatchTimeout(d time.Duration) Option {
	return optionFunc(func(s *settings) error { s.watchTimeout = d; return nil })
}

// Silence is how long a list or an initial state may say nothing before it is
// given up. The default is 30 seconds.
func Silence(d time.Duration) Option {
	return optionFunc(func(s *settings) error { s.silence = d; return nil })
}

// FirstList says how fresh the first list must be. The default is
// source.Consistent.
func FirstList(m source.Match) Option {
	return optionFunc(func(s *settings) error { s.firstList = m; return nil })
}

// Backoff spaces failed attempts.
func Backoff(b reflector.Backoff) Option {
	return optionFunc(func(s *settings) error { s.backoff = b; return nil })
}

// StopTimeout is how long Run waits, once its context has ended, for callbacks
// that are still running. The default is 10 seconds.
func StopTimeout(d time.Duration) Option {
	return optionFunc(func(s *settings) error { s.stopTimeout = d; return nil })
}

// OnProblem hears of everything that goes wrong. It must not block, and may ask the informer for
// anything but to stop. What goes wrong while a batch is written is told when the batch is in the store. A
// panic in it is logged and counted.
func OnProblem(f func(Problem)) Option {
	return optionFunc(func(s *settings) error { s.onProblem = f; return nil })
}

// Logger logs problems and changes of state. The default is slog.Default().
func Logger(l *slog.Logger) Option {
	return optionFunc(func(s *settings) error { s.logger = l; return nil })
}

// CrashOnPanic lets a handler's panic go on, after it was reported, while crash
// returns true. The default contains it.
func CrashOnPanic(crash func() bool) Option {
	return optionFunc(func(s *settings) error { s.crash = crash; return nil })
}

// Verbatim applies whatever arrives in the way client-go does: versions and UIDs
// are not compared, an object listed again is an update (of what is stored, where its
// version is that of what is stored), a delete of an unknown
// object is told, every event is kept for every handler, HasSynced stays true after the
// stop, and there is one Run. It is what compat is made with.
func Verbatim() Option {
	return optionFunc(func(s *settings) error { s.verbatim = true; return nil })
}

// configure adds up options and checks what depends on T.
func configure[T any](src source.Source[T], opts []Option) (*settings, map[string]store.IndexFunc[T], error) {
	s := &settings{indexes: map[string]any{}, stopTimeout: 10 * time.Second}
	for _, o := range opts {
		if o == nil {
			return nil, nil, errors.New("informer: an option is nil")
		}
		if err := o.apply(s); err != nil {
			return nil, nil, fmt.Errorf("informer: %w", err)
		}
	}
	if s.name == "" {
		s.name = src.Describe().String()
	}
	if s.logger == nil {
		s.logger = slog.Default()
	}
	indexes := make(map[string]store.IndexFunc[T], len(s.indexes))
	for name, f := range s.indexes {
		fn, ok := f.(store.IndexFunc[T])
		if !ok {
			return nil, nil, mismatch[T](fmt.Sprintf("index %q", name), f)
		}
		indexes[name] = fn
	}
	s.indexes = nil // the store has them
	if _, ok := s.transform.(func(T) (T, error)); s.transform != nil && !ok {
		return nil, nil, mismatch[T]("the transform", s.transform)
	}
	if _, ok := s.codec.(*object.Codec[T]); s.codec != nil && !ok {
		return nil, nil, mismatch[T]("the codec", s.codec)
	}
	if _, ok := s.start.(State[T]); s.start != nil && !ok {
		return nil, nil, mismatch[T]("the state to start from", s.start)
	}
	return s, indexes, nil
}

func mismatch[T any](what string, got any) error {
	var zero T
	return fmt.Errorf("informer: %s is a %T, but the source delivers %T: give it the source's type", what, got, zero)
}
