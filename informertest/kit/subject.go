package kit

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/object"
)

// Subject is an informer of all pods of one server, as the conformance kit drives it. For anything that a subject
// cannot do, it returns the zero value or an error; the promise that needs it then counts as broken.
type Subject interface {
	// AddHandler adds a handler, before Run or while it runs. Handlers may block and panic. synced reports whether the
	// handler has received every object that existed when it was added.
	AddHandler(name string, handle func(informertest.Event)) (synced func() bool, err error)
	// Run mirrors the server until ctx ends or Stop is called. When it returns, everything that it started has ended.
	Run(ctx context.Context) error
	// Stop ends Run and waits for it and for running handlers until ctx ends; the error then names the handlers that
	// still run.
	Stop(ctx context.Context) error
	// Synced reports whether the initial state is in the store.
	Synced() bool
	// Get returns one pod from the store.
	Get(key object.Key) (*corev1.Pod, bool)
	// Versions returns the version of every object in the store.
	Versions() map[object.Key]object.Version
	// Health reports the subject's state.
	Health() informertest.Health
}

// Setup is how the kit wants a subject to be made.
type Setup struct {
	// Config is the config of the server.
	Config *rest.Config
	// Backlog is how many events may wait for a handler before they are coalesced.
	Backlog int
	// Transform changes every pod before it is stored; nil for none.
	Transform func(*corev1.Pod) (*corev1.Pod, error)
	// OnProblem must be called for every problem, from any goroutine.
	OnProblem func(error)
}
