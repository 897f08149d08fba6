package informertest

import (
	"context"
	"iter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/object"
)

// Simulated is an informer of all pods of one server, as the simulator drives it. A subject that is also a Stepper
// runs in steps; any other runs freely inside the bubble, over the same wire and with the same faults.
type Simulated interface {
	// Start starts a run: empty, or from a saved state.
	Start(from *SimState) error
	// Stop ends the run and waits for it and for callbacks until ctx ends; its error names the handlers that still run.
	// The store of a Stepper stays readable and unchanged until the next Start.
	Stop(ctx context.Context) error
	// Handle adds a handler.
	Handle(h SimHandler, handle func(Event)) (SimSubscription, error)
	// Snapshot returns a snapshot of the store.
	Snapshot() SimSnapshot
	// Synced reports whether the initial state is in the store.
	Synced() bool
	// Health reports the subject's state.
	Health() SimHealth
}

// Stepper is a subject whose parts run one at a time, each when its method is called. During a call the wire,
// SimSetup.Wait and handlers may pass control back to the simulator, which resumes the call later.
type Stepper interface {
	// Reflect runs the next step of the part that talks to the server and returns how long it waits before another; done
	// reports that the run was stopped.
	Reflect() (wait time.Duration, done bool)
	// Waiting returns how many batches wait for Consume.
	Waiting() int
	// Consume commits the next batch to the store and sends it to the handlers.
	Consume()
	// End runs what a run does last. It is called on a separate goroutine, once Reflect is done.
	End() error
	// Since returns the changes after a version from the store's log, oldest first: the object, or nil if it was
	// deleted. ok is false if the log does not reach back that far.
	Since(v object.Version) (changes iter.Seq2[object.Key, *corev1.Pod], ok bool)
	// Save returns the state that Start can start from, as it is kept outside of the process. It is called while the
	// subject is synced.
	Save() (*SimState, error)
	// Release drops the state that stays readable after a stop. During a run it fails and changes nothing.
	Release() error
	// Writable reports whether a write, such as adding an index, would not block now.
	Writable() bool
}

// SimSetup is how the simulator wants a subject to be made.
type SimSetup struct {
	// Config is the config of the server; its Transport is the simulated wire.
	Config *rest.Config
	// Variant numbers the layouts of the store, if a subject has several.
	Variant int
	// JSON asks for JSON instead of protobuf, WatchList for watches with sendInitialEvents.
	JSON, WatchList bool
	PageSize        int
	// QueueBytes bounds the queue between the reflector and the store.
	QueueBytes int
	// Indexes are the index functions by name; they may fail and panic, as Transform may.
	Indexes   map[string]func(*corev1.Pod) ([]string, error)
	Transform func(*corev1.Pod) (*corev1.Pod, error)
	// OnProblem must be called for every problem. wait is how long the subject pauses because of it.
	OnProblem func(doing string, key object.Key, err error, wait time.Duration)
	// Rand is the random source for jitter.
	Rand func() float64
	// Go runs a handler; a Stepper calls it instead of starting a goroutine.
	Go func(handler string, run func())
	// Wait returns when ready returns true; a Stepper calls it instead of blocking.
	Wait func(ready func() bool)
}

// SimState is a saved state to start from.
type SimState struct {
	Version object.Version
	Pods    []*corev1.Pod
	// Kept is what Save has kept of the state, in the subject's own form. It is nil in a state that Save did not make.
	Kept any
}

// SimHandler describes a handler to add.
type SimHandler struct {
	Name string
	// Backlog is how many events may wait before they are coalesced; negative for any
	// number.
	Backlog int
	// Resync is how often the handler receives every object again; 0 means never.
	Resync time.Duration
}

// SimSubscription is a handler that was added.
type SimSubscription interface {
	HasSynced() bool
	Remove()
	// Backlog returns how many events wait for the handler, and how many were coalesced so far.
	Backlog() (waiting int, coalesced uint64)
}

// SimSnapshot is a snapshot of a store; store.Snapshot implements it.
type SimSnapshot interface {
	Version() object.Version
	Len() int
	Get(key object.Key) (*corev1.Pod, bool)
	All() iter.Seq2[object.Key, *corev1.Pod]
	ByIndex(index, value string) iter.Seq[*corev1.Pod]
}

// SimHealth is the state that a subject reports.
type SimHealth struct {
	Health
	// Err is the last failure; nil once an attempt has succeeded.
	Err error
	// Epoch counts how often history was reset.
	Epoch uint64
	// Counts has the number of problems by what was attempted.
	Counts map[string]uint64
	// Coalesced counts changes that never reached the store because a later change of the same object replaced them in
	// the queue.
	Coalesced uint64
}
