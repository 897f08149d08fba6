package informertest

import (
	"context"
	"iter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/object"
)

// Simulated is an informer of all pods of one server, as the simulator drives it.
// A subject that is also a Stepper is stepped; another runs free inside the bubble,
// on the same wire and under the same faults.
type Simulated interface {
	// Start begins a run: from nothing, or from a state that is known already.
	Start(from *SimState) error
	// Stop ends the run and waits for it and for callbacks until ctx ends; its error
	// names the handlers that still run. A subject that is a Stepper stays readable: its
	// store shows what it showed last until the next Start.
	Stop(ctx context.Context) error
	// Handle adds a handler.
	Handle(h SimHandler, handle func(Event)) (SimSubscription, error)
	// Snapshot gives one moment of the store.
	Snapshot() SimSnapshot
	// Synced reports whether the first state is in the store.
	Synced() bool
	// Health says how the subject is doing.
	Health() SimHealth
}

// Stepper is a subject whose parts run one at a time, each when it is told to. While
// one of its methods is under way, the wire, SimSetup.Wait and handlers may hand
// control back to the simulator, which goes on with it later.
type Stepper interface {
	// Reflect lets the part that talks to the server do its next thing and says how
	// long it waits before another; done says that the run was stopped.
	Reflect() (wait time.Duration, done bool)
	// Waiting is how much waits for Consume.
	Waiting() int
	// Consume takes the next batch into the store and tells the handlers.
	Consume()
	// End does what a run does last. It is called on a goroutine of its own, once
	// Reflect is done.
	End() error
}

// Historian is a subject whose store has a log of what happened a while ago.
type Historian interface {
	// Since gives what happened after a version, oldest first: the object then, or nil
	// where it went. ok is false where the log does not reach back so far.
	Since(v object.Version) (changes iter.Seq2[object.Key, *corev1.Pod], ok bool)
}

// Releaser is a subject that keeps its last state readable after a stop.
type Releaser interface {
	// Release drops that state. While the subject runs it fails and changes nothing.
	Release() error
}

// Lockable is a subject whose functions that write wait for one another.
type Lockable interface {
	// Writable reports whether a function that writes, such as one that adds an index, would not
	// have to wait now.
	Writable() bool
}

// SimSetup is how a subject for the simulator is to be made.
type SimSetup struct {
	// Config leads to the server: its Transport is the simulated wire.
	Config *rest.Config
	// Variant numbers the form in which objects are kept, where a subject has several.
	Variant int
	// JSON asks for JSON instead of protobuf, WatchList for the state by a watch.
	JSON, WatchList bool
	PageSize        int
	// QueueBytes bounds what waits between the reflector and the store.
	QueueBytes int
	// Indexes are by name; they may fail and panic, as Transform may.
	Indexes   map[string]func(*corev1.Pod) ([]string, error)
	Transform func(*corev1.Pod) (*corev1.Pod, error)
	// OnProblem must be called for everything that goes wrong. wait is how long the
	// subject holds still because of it.
	OnProblem func(doing string, key object.Key, err error, wait time.Duration)
	// Rand is what waits are stretched by.
	Rand func() float64
	// Go runs a handler; a Stepper calls it where it would start a goroutine.
	Go func(handler string, run func())
	// Wait returns when ready does; a Stepper calls it where it would block.
	Wait func(ready func() bool)
}

// SimState is a state to start from.
type SimState struct {
	Version object.Version
	Pods    []*corev1.Pod
}

// SimHandler is how a handler is to be added.
type SimHandler struct {
	Name string
	// Backlog is how many events may wait before they are coalesced; negative for any
	// number.
	Backlog int
	// Resync is how often it is given everything again; 0 never.
	Resync time.Duration
}

// SimSubscription is a handler that was added.
type SimSubscription interface {
	HasSynced() bool
	Remove()
	// Backlog is how much waits for the handler, and how much was coalesced so far.
	Backlog() (waiting int, coalesced uint64)
}

// SimSnapshot is one moment of a store; a store.Snapshot is one.
type SimSnapshot interface {
	Version() object.Version
	Len() int
	Get(key object.Key) (*corev1.Pod, bool)
	All() iter.Seq2[object.Key, *corev1.Pod]
	ByIndex(index, value string) iter.Seq[*corev1.Pod]
}

// SimHealth is what a subject says of itself.
type SimHealth struct {
	Health
	// Err is the last failure, nil once things go well again.
	Err error
	// Epoch counts how often history was set back.
	Epoch uint64
	// Counts has what went wrong by what was attempted.
	Counts map[string]uint64
	// Coalesced counts changes that never reached the store because a later one of the
	// same object came before.
	Coalesced uint64
}
