package reflector

import (
	"context"
	"errors"
	"time"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// Sink receives what the reflector reads.
type Sink[T any] interface {
	// Push receives deltas in order. It may block. It must not retain the slice. An
	// error ends Run.
	Push(ctx context.Context, deltas []object.Delta[T]) error
}

// Options configure a reflector. Zero values mean the default.
type Options[T any] struct {
	// Source is where the objects come from. It is required.
	Source source.Source[T]
	// Sink is where the deltas go. It is required.
	Sink Sink[T]
	// StartAt starts with a watch at this version instead of a list, for callers that
	// already have the state at this version.
	StartAt object.Version
	// LastEvent is when the source last sent anything to the caller that read that state.
	LastEvent time.Time
	// Admit, if it is set, is called before each list or initial state is requested, and may
	// wait, for example until there are fewer requests at once. end is called when all of it
	// has been read, or reading it has failed.
	Admit func(ctx context.Context) (end func(), err error)
	// PageSize is the page size requested for lists; 0 leaves it to the source.
	PageSize int
	// Encoded requests the encoded bytes of objects if the source has them.
	Encoded bool
	// Shares tells the source that the sink shares equal parts of objects itself.
	Shares bool
	// FirstList is how fresh the first list must be. Later lists are never older than the
	// version reached. The default is source.Consistent.
	FirstList source.Match
	// TrustOrder accepts every list and every version in the order in which the source
	// sends them, even if a version is older than the one before.
	TrustOrder bool
	// WatchTimeout is the shortest timeout requested for a watch. Each watch requests a
	// random one between this and twice as much. The default is 5 minutes.
	WatchTimeout time.Duration
	// Silence is how long a list or an initial state may be silent before it counts as
	// failed. The default is 30 seconds.
	Silence time.Duration
	// Backoff spaces failed attempts.
	Backoff Backoff
	// OnProblem is called for every failure, on the goroutine of Run or Step.
	OnProblem func(Problem)
}

// Problem is a failure of the source.
type Problem struct {
	// Doing is what was attempted: "list", "watch", "stream", "initial state" or "decode".
	Doing string
	// Key is the object concerned, if there is one.
	Key object.Key
	Err error
	// Wait is how long the reflector waits before the next attempt.
	Wait time.Duration
}

var (
	errNoSource = errors.New("reflector: Options.Source is nil; set it, for example to the result of kube.Typed")
	errNoSink   = errors.New("reflector: Options.Sink is nil; set it to the receiver of the deltas")
)

// complete checks the required options and fills in the defaults.
func (o *Options[T]) complete() error {
	if o.Source == nil {
		return errNoSource
	}
	if o.Sink == nil {
		return errNoSink
	}
	if o.WatchTimeout <= 0 {
		o.WatchTimeout = 5 * time.Minute
	}
	if o.Silence <= 0 {
		o.Silence = 30 * time.Second
	}
	o.Backoff = o.Backoff.orDefault()
	return nil
}
