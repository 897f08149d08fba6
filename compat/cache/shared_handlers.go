package cache

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// registration is the registration of a handler with a sharedIndexInformer.
type registration struct {
	handler ResourceEventHandler
	name    string
	crashed bool // the last callback did not return; used only by the goroutine that calls the handler

	owner  *sharedIndexInformer
	logger klog.Logger
	wanted time.Duration // the requested resync period, with the lower bounds applied
	sub    *informer.Subscription[any]

	joined time.Time
	period atomic.Int64 // the resync period, a multiple of the check period; 0: no resyncs
}

// AddEventHandler adds a handler with the informer's resync period.
func (s *sharedIndexInformer) AddEventHandler(handler ResourceEventHandler) (ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(handler, HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod adds a handler with a resync period of its own.
func (s *sharedIndexInformer) AddEventHandlerWithResyncPeriod(handler ResourceEventHandler,
	resyncPeriod time.Duration) (ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(handler, HandlerOptions{ResyncPeriod: &resyncPeriod})
}

// AddEventHandlerWithOptions adds a handler. If the informer runs, the handler first
// receives the stored objects, and nothing else waits for that.
func (s *sharedIndexInformer) AddEventHandlerWithOptions(handler ResourceEventHandler,
	options HandlerOptions) (ResourceEventHandlerRegistration, error) {
	refused := func() error {
		return fmt.Errorf("handler %v was not added to shared informer because it has stopped already", handler)
	}
	if s.IsStopped() {
		return nil, refused()
	}
	if handler == nil {
		return nil, errors.New("the handler is nil; pass a ResourceEventHandler, such as ResourceEventHandlerFuncs")
	}
	r := &registration{owner: s, handler: handler, logger: klog.Background(),
		name: fmt.Sprintf("%T", handler), joined: time.Now()}
	if options.Logger != nil {
		r.logger = *options.Logger
	}
	joined, err := s.addBeforeStart(r, options.ResyncPeriod)
	if !joined && err == nil {
		err = s.addWhileRunning(r)
	}
	if err != nil {
		return nil, refused()
	}
	return r, nil
}

// addBeforeStart sets a handler's resync period, and adds the handler if the informer has not started. Objects that
// were written to the store by hand are not delivered: the first list decides. So there is no replay, and nothing
// waits for the writer while the lock is held.
func (s *sharedIndexInformer) addBeforeStart(r *registration, resync *time.Duration) (joined bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := s.defaultResync
	if resync != nil {
		wanted = *resync
	}
	r.wanted = s.resyncPeriod(r.logger, wanted)
	if s.started {
		return false, nil
	}
	opts := s.handlerOptions(r)
	opts.FromNow = true
	if r.sub, err = s.engine.SubscribeEntries(r.handle, opts); err != nil {
		return false, err
	}
	s.handlers[r] = struct{}{}
	return true, nil
}

// addWhileRunning adds a handler to a running informer. Its replay is a snapshot, which may have to wait for the
// writer, so the lock is not held.
func (s *sharedIndexInformer) addWhileRunning(r *registration) (err error) {
	if r.sub, err = s.engine.SubscribeEntries(r.handle, s.handlerOptions(r)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return informer.ErrStopped // the engine ends the subscription with all others
	}
	s.handlers[r] = struct{}{}
	r.setResync(s.check)
	return nil
}

// handlerOptions are the options with which a handler subscribes to the engine. The resync interval is set later.
func (s *sharedIndexInformer) handlerOptions(r *registration) *informer.HandlerOptions {
	return &informer.HandlerOptions{Name: r.name, Resync: -1, MaxBacklog: s.options.backlog(), OnPanic: r.failed}
}

// resyncPeriod applies the lower bounds to a requested period. Before the start, a
// shorter one also shortens the informer's check period.
func (s *sharedIndexInformer) resyncPeriod(logger klog.Logger, wanted time.Duration) time.Duration {
	if wanted <= 0 {
		return 0
	}
	if wanted < minResync {
		logger.Info("Warning: resync period is too small. Changing it to the minimum allowed value", "resyncPeriod", wanted,
			"minimumResyncPeriod", minResync)
		wanted = minResync
	}
	switch {
	case s.check == 0:
		logger.Info("Warning: the specified resyncPeriod is invalid because this shared informer doesn't support resyncing",
			"desired", wanted)
		return 0
	case wanted >= s.check:
	case s.started:
		logger.Info("Warning: resync period is smaller than resync check period and the informer has already started. "+
			"Changing it to the resync check period", "resyncPeriod", wanted, "resyncCheckPeriod", s.check)
		wanted = s.check
	default:
		s.check = wanted
	}
	return wanted
}

// setResync starts the handler's resyncs, at multiples of the check period.
func (r *registration) setResync(check time.Duration) {
	if check <= 0 || r.wanted <= 0 {
		return
	}
	period := (r.wanted + check - 1) / check * check
	r.period.Store(int64(period))
	if err := r.sub.SetResync(period); err != nil {
		utilruntime.HandleErrorWithLogger(r.logger, err, "Setting the resync period failed", "handler", r.name)
	}
}

// RemoveEventHandler removes a handler. Removing it twice is not an error.
func (s *sharedIndexInformer) RemoveEventHandler(handle ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration)
	if !ok {
		return fmt.Errorf("removing a handler of %s: a %T is not a registration of a shared informer; pass the value "+
			"that AddEventHandler returned", s.engine.Name(), handle)
	}
	s.mu.Lock()
	_, ours := s.handlers[r]
	delete(s.handlers, r)
	s.mu.Unlock()
	if ours {
		r.sub.Remove()
	}
	return nil
}

// HasSynced reports whether the handler has received all initial objects.
func (r *registration) HasSynced() bool { return r.sub.HasSynced() }

// HasSyncedChecker returns a checker that is done when HasSynced is true.
func (r *registration) HasSyncedChecker() DoneChecker {
	return done{name: r.owner.HasSyncedChecker().Name() + " + event handler " + r.name, c: r.sub.Synced()}
}

// ShutdownChan returns a channel that is closed when the handler was removed and its
// last callback has returned.
func (r *registration) ShutdownChan() <-chan struct{} { return r.sub.Done() }

// handle calls the handler for an event. It has no deferred function, which would be a noticeable cost for every
// event; the engine has one for the batch.
func (r *registration) handle(e *object.Event[*store.Entry[any]]) {
	if r.crashed && !r.pauseAfterPanic() {
		return
	}
	switch e.Type {
	case object.Added:
		r.handler.OnAdd(e.New.ObjectFor(r.name), e.Initial)
	case object.Updated:
		if !e.Unchanged || changed(e) || r.syncing() {
			if e.Old == nil { // deleted and added again within a coalesced backlog
				r.handler.OnAdd(e.New.ObjectFor(r.name), false)
				return
			}
			r.handler.OnUpdate(e.Old.ObjectFor(r.name), e.New.ObjectFor(r.name))
		}
	case object.Resynced:
		r.handler.OnUpdate(e.Old.ObjectFor(r.name), e.New.ObjectFor(r.name))
	case object.Deleted:
		var last any
		if e.Old != nil {
			last = e.Old.ObjectFor(r.name)
		}
		if e.Missed || e.Old == nil { // a handler is never called with nil: the key is always known
			last = DeletedFinalStateUnknown{Key: string(e.Key), Obj: last}
		}
		r.handler.OnDelete(last)
	}
}

// panicCallDepth is the number of stack frames between the function that logs a panic and the one that panicked: the
// engine's, this package's and the runtime's. The logger skips them, so the log names the place of the panic.
const panicCallDepth = 7

// failed is called by the engine when a callback did not return. It logs a panic while the stack of the panic is
// available. The engine counts the panic and ends the program if utilruntime.ReallyCrash is set.
func (r *registration) failed(recovered any) {
	r.crashed = true
	if recovered == nil {
		return // the callback called runtime.Goexit
	}
	ctx := klog.NewContext(context.Background(), r.logger.WithCallDepth(panicCallDepth))
	for _, f := range utilruntime.PanicHandlers {
		f(ctx, recovered)
	}
}

// pauseAfterPanic waits before the next callback after a panic. It returns false if the
// informer has ended meanwhile.
func (r *registration) pauseAfterPanic() bool {
	ctx := *r.owner.runContext.Load()
	t := time.NewTimer(crashPause)
	defer t.Stop()
	select {
	case <-t.C:
		r.crashed = false
		return true
	case <-ctx.Done():
		return false
	}
}

// changed reports whether an update that is marked as unchanged has a new version after all. An unchanged object in
// a relist is delivered only to handlers that are being resynced.
func changed(e *object.Event[*store.Entry[any]]) bool {
	if e.New.Version != "" {
		return false
	}
	old, err := meta.Accessor(e.Old.Object())
	if err != nil {
		return true
	}
	now, err := meta.Accessor(e.New.Object())
	return err != nil || old.GetResourceVersion() != now.GetResourceVersion()
}

// syncing reports whether a handler is being resynced: until the first resync check all
// handlers are, and then those that were due at the last check.
func (r *registration) syncing() bool {
	r.owner.mu.Lock()
	check, first := r.owner.check, r.owner.firstCheck
	r.owner.mu.Unlock()
	now := time.Now()
	if check <= 0 || first.IsZero() || now.Before(first) || now.Before(r.joined.Add(check)) {
		return true
	}
	period := time.Duration(r.period.Load())
	if period == 0 {
		return false
	}
	return int64(now.Sub(r.joined)/check)%int64(period/check) == 0
}

// observe sets the metric to the version of an event.
func (s *sharedIndexInformer) observe(e *object.Event[*store.Entry[any]]) {
	gaugeVersion(s.indexer.metric, string(e.Version))
}

var _ interface {
	ResourceEventHandlerRegistration
	ShutdownChan() <-chan struct{}
} = &registration{}
