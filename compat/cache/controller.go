package cache

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/klog/v2"
)

// Config configures a Controller, which reads from ListerWatcher into Queue and
// processes what is popped. It equals client-go's, except for the two handlers, whose
// type names this package's Reflector.
type Config struct {
	// ListerWatcher is the source of the objects.
	ListerWatcher
	// ObjectType is an example of the objects. ObjectDescription names them in logs.
	ObjectType        runtime.Object
	ObjectDescription string
	// WatchListPageSize is the page size of lists.
	WatchListPageSize int64
	// MinWatchTimeout is the shortest timeout that a watch is opened with; less than
	// 5 minutes counts as 5 minutes.
	MinWatchTimeout time.Duration

	// Queue receives what the reflector reads.
	Queue
	// Process processes what Queue.Pop returns.
	Process ProcessFunc
	// ProcessBatch, if the queue is a QueueWithBatch, processes several deltas.
	ProcessBatch ProcessBatchFunc

	// ShouldResync reports whether a resync that is due takes place; nil means always.
	ShouldResync ShouldResyncFunc
	// FullResyncPeriod is the time between resyncs.
	FullResyncPeriod time.Duration

	// WatchErrorHandlerWithContext is called with the errors of lists and watches if
	// WatchErrorHandler is nil.
	WatchErrorHandlerWithContext WatchErrorHandlerWithContext
	// WatchErrorHandler is called with the errors of lists and watches.
	WatchErrorHandler WatchErrorHandler
}

// controller is a Controller.
type controller struct {
	config Config

	mu        sync.Mutex
	reflector *Reflector
}

// New returns a Controller. Call Run to start it.
func New(c *Config) Controller { return &controller{config: *c} }

// Run runs until stopCh is closed.
func (c *controller) Run(stopCh <-chan struct{}) { c.RunWithContext(wait.ContextForChannel(stopCh)) }

// RunWithContext reads and processes until ctx ends. It does not recover a panic of
// Process.
func (c *controller) RunWithContext(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	defer context.AfterFunc(ctx, c.config.Queue.Close)()
	r := c.newReflector(ctx)
	c.mu.Lock()
	c.reflector = r
	c.mu.Unlock()

	reading, stop := context.WithCancel(ctx)
	var reader sync.WaitGroup
	defer reader.Wait()
	defer stop() // a panic ends the reader too
	reader.Go(func() { r.RunWithContext(reading) })
	wait.UntilWithContext(ctx, c.process, crashPause)
	c.config.Queue.Close()
}

// crashPause is the pause after a panic, if utilruntime.ReallyCrash is false.
const crashPause = time.Second

func (c *controller) newReflector(ctx context.Context) *Reflector {
	logger := klog.FromContext(ctx)
	r := NewReflectorWithOptions(c.config.ListerWatcher, exampleOf(c.config.ObjectType), c.config.Queue, ReflectorOptions{
		Logger:          &logger,
		ResyncPeriod:    c.config.FullResyncPeriod,
		MinWatchTimeout: c.config.MinWatchTimeout,
		TypeDescription: c.config.ObjectDescription,
	})
	r.ShouldResync = c.config.ShouldResync
	r.WatchListPageSize = c.config.WatchListPageSize
	switch {
	case c.config.WatchErrorHandler != nil:
		r.onError = func(_ context.Context, r *Reflector, err error) { c.config.WatchErrorHandler(r, err) }
	case c.config.WatchErrorHandlerWithContext != nil:
		r.onError = c.config.WatchErrorHandlerWithContext
	}
	return r
}

// exampleOf keeps a nil interface nil.
func exampleOf(obj runtime.Object) any {
	if obj == nil {
		return nil
	}
	return obj
}

// process pops until ctx ends or the queue is closed.
func (c *controller) process(ctx context.Context) {
	pop := func() error {
		_, err := c.config.Pop(PopProcessFunc(c.config.Process))
		return err
	}
	if q, ok := c.config.Queue.(QueueWithBatch); ok && c.config.ProcessBatch != nil &&
		clientfeatures.FeatureGates().Enabled(clientfeatures.InOrderInformersBatchProcess) {
		pop = func() error { return q.PopBatch(c.config.ProcessBatch, PopProcessFunc(c.config.Process)) }
	}
	for ctx.Err() == nil {
		switch err := pop(); {
		case errors.Is(err, ErrFIFOClosed):
			return
		case err != nil:
			utilruntime.HandleErrorWithContext(ctx, err, "Processing a queued item failed", "type",
				c.config.ObjectDescription)
		}
	}
}

// HasSynced reports whether the queue has synced.
func (c *controller) HasSynced() bool { return c.config.Queue.HasSynced() }

// HasSyncedChecker returns the queue's checker.
func (c *controller) HasSyncedChecker() DoneChecker { return c.config.Queue.HasSyncedChecker() }

// LastSyncResourceVersion returns the version that the reflector has reached.
func (c *controller) LastSyncResourceVersion() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reflector == nil {
		return ""
	}
	return c.reflector.LastSyncResourceVersion()
}
