package reflector

import (
	"context"
	"errors"
	"time"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// Sink takes what the reflector reads. Push may block
// while a list is under way. An error ends the reflector.
type Sink[T any] interface {
	// Push takes deltas, in order, and keeps no hold of the slice.
	Push(ctx context.Context, deltas []object.Delta[T]) error
}

// Options say what a reflector mirrors, and how. Zero values mean the default.
type Options[T any] struct {
	// Source is where the objects come from. It must be given.
	Source source.Source[T]
	// Sink is where they go. It must be given.
	Sink Sink[T]
	// StartAt resumes after this version instead of listing first: the caller has
	// the state at this version already.
	StartAt object.Version
	// Unsure says that what the caller has at StartAt may be of a history that was given
	// up since: the state is read anew, and begins a new epoch.
	Unsure bool
	// PageSize is asked of lists; 0 leaves it to the source.
	PageSize int
	// Encoded asks the source for the encoded bytes of objects, where it has them.
	Encoded bool
	// Shares tells the source that the sink finds equal parts of objects itself.
	Shares bool
	// FirstList says how fresh the first list must be; later ones are never older
	// than what was seen. The default is source.Consistent.
	FirstList source.Match
	// TrustOrder takes every list and every version as it comes, also one that goes
	// back: for callers that want what the source says and nothing else.
	TrustOrder bool
	// WatchTimeout is how long a watch is asked to last, drawn at random between
	// this and twice as much. The default is 5 minutes.
	WatchTimeout time.Duration
	// Silence is how long a list or an initial state may say nothing before it
	// is given up. The default is 30 seconds.
	Silence time.Duration
	// Backoff spaces failed attempts.
	Backoff Backoff
	// OnProblem hears of everything that goes wrong, on the reflector's goroutine.
	OnProblem func(Problem)
}

// Problem is something that went wrong.
type Problem struct {
	// Doing says what was attempted: "list", "watch", "stream", "initial state",
	// "decode".
	Doing string
	// Key is the object concerned, where there is one.
	Key object.Key
	Err error
	// Wait is how long the reflector holds still because of it.
	Wait time.Duration
}

// ErrNoSource is returned for options without a source.
var ErrNoSource = errors.New("reflector: there is no source; give one, such as kube.Typed[*corev1.Pod](config, nil)")

// ErrNoSink is returned for options without a sink.
var ErrNoSink = errors.New("reflector: there is no sink; set Options.Sink to what takes the deltas")

func (o *Options[T]) complete() error {
	if o.Source == nil {
		return ErrNoSource
	}
	if o.Sink == nil {
		return ErrNoSink
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
