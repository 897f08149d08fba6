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

// registration is a handler's tie to a sharedIndexInformer.
type registration struct {
	handler ResourceEventHandler
	name    string
	crashed bool // the last callback did not return; only for the handler's goroutine

	owner  *sharedIndexInformer
	logger klog.Logger
	wanted time.Duration // the resync period asked for, with the lower bounds applied
	sub    *informer.Subscription[any]

	joined time.Time
	period atomic.Int64 // between resyncs, a multiple of the check period; 0 never
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

// AddEventHandlerWithOptions adds a handler. While the informer runs, the handler
// is first given what is stored; nobody else waits for that.
func (s *sharedIndexInformer) AddEventHandlerWithOptions(handler ResourceEventHandler,
	options HandlerOptions) (ResourceEventHandlerRegistration, error) {
	refused := func() error {
		return fmt.Errorf("handler %v was not added to shared informer because it has stopped already", handler)
	}
	if s.IsStopped() {
		return nil, refused()
	}
	if handler == nil {
		return nil, errors.New("the handler is nil; give a ResourceEventHandler, such as ResourceEventHandlerFuncs")
	}
	r := &registration{owner: s, handler: handler, logger: klog.Background(),
		name: fmt.Sprintf("%T", handler), joined: time.Now()}
	if options.Logger != nil {
		r.logger = *options.Logger
	}
	joined, err := s.joinBeforeStart(r, options.ResyncPeriod)
	if !joined && err == nil {
		err = s.joinRunning(r)
	}
	if err != nil {
		return nil, refused()
	}
	return r, nil
}

// joinBeforeStart fixes a handler's resync period and adds the handler if the informer has not started. What was put
// into the store by hand is not news to it: the first list will say what is. So there is no replay, and nothing waits
// for the writer while the lock is held.
func (s *sharedIndexInformer) joinBeforeStart(r *registration, resync *time.Duration) (joined bool, err error) {
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
	if r.sub, err = s.engine.SubscribeEntries(r.handle, append(s.how(r), informer.FromNow())...); err != nil {
		return false, err
	}
	s.handlers[r] = struct{}{}
	return true, nil
}

// joinRunning adds a handler to an informer that runs. Its replay is a snapshot, for which it may have to wait for the
// writer: without the lock.
func (s *sharedIndexInformer) joinRunning(r *registration) (err error) {
	if r.sub, err = s.engine.SubscribeEntries(r.handle, s.how(r)...); err != nil {
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

// how is how a handler joins the engine's informer.
func (s *sharedIndexInformer) how(r *registration) []informer.SubscribeOption {
	return []informer.SubscribeOption{informer.HandlerName(r.name), informer.ResyncEvery(0),
		informer.MaxBacklog(s.extra.backlog()), informer.OnPanic(r.failed)}
}

// resyncPeriod applies the lower bounds to a period that was asked for. Before the
// start a shorter one makes the informer look more often.
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

// setResync begins the resyncs: at multiples of the check period.
func (r *registration) setResync(check time.Duration) {
	if check <= 0 || r.wanted <= 0 {
		return
	}
	period := (r.wanted + check - 1) / check * check
	r.period.Store(int64(period))
	if err := r.sub.SetResync(period); err != nil {
		utilruntime.HandleErrorWithLogger(r.logger, err, "No resync", "handler", r.name)
	}
}

// RemoveEventHandler removes a handler. Removing it twice is fine.
func (s *sharedIndexInformer) RemoveEventHandler(handle ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration)
	if !ok {
		return fmt.Errorf("removing a handler of %s: a %T is not a registration of a shared informer; give what "+
			"AddEventHandler returned", s.engine.Name(), handle)
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

// HasSynced reports whether the handler was given all that was there at first.
func (r *registration) HasSynced() bool { return r.sub.HasSynced() }

// HasSyncedChecker is done when HasSynced is.
func (r *registration) HasSyncedChecker() DoneChecker {
	return done{name: r.owner.HasSyncedChecker().Name() + " + event handler " + r.name, c: r.sub.Synced()}
}

// ShutdownChan is closed when the handler was removed and its last callback has
// returned.
func (r *registration) ShutdownChan() <-chan struct{} { return r.sub.Done() }

// handle tells the handler of an event. It has no deferred function of its own: one for each event was a tenth of
// what 50 handlers cost, and the engine has one for the batch.
func (r *registration) handle(e *object.Event[*store.Entry[any]]) {
	if r.crashed && !r.rest() {
		return
	}
	switch e.Type {
	case object.Added:
		r.handler.OnAdd(e.New.ObjectFor(r.name), e.Initial)
	case object.Updated:
		if !e.Unchanged || changed(e) || r.syncing() {
			if e.Old == nil { // of what was deleted unseen and came back in a backlog there may be none
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
		if e.Missed || e.Old == nil { // never nothing: the key is known in any case
			last = DeletedFinalStateUnknown{Key: string(e.Key), Obj: last}
		}
		r.handler.OnDelete(last)
	}
}

// untilThePanic is how many functions stand between what logs a panic and the one that panicked: the engine's, this
// package's and the runtime's. Without them the line names where the handler failed.
const untilThePanic = 7

// failed is told by the engine of a callback that did not return. A panic is logged here, where its place can be
// told; the engine counts it and asks utilruntime.ReallyCrash what to do.
func (r *registration) failed(recovered any) {
	r.crashed = true
	if recovered == nil {
		return // the goroutine was ended
	}
	ctx := klog.NewContext(context.Background(), r.logger.WithCallDepth(untilThePanic))
	for _, f := range utilruntime.PanicHandlers {
		f(ctx, recovered)
	}
}

// rest holds a handler still that has just panicked; false if the informer has
// ended meanwhile.
func (r *registration) rest() bool {
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

// changed reports whether an update that is marked as unchanged brought a new version after all. An object that
// was listed again as it was is given only to handlers that are being resynced.
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

// syncing reports whether a handler is being resynced: every one is until resyncs
// are first looked for, and then those whose turn it was the last time.
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

// observe gives versions to the metric.
func (s *sharedIndexInformer) observe(e *object.Event[*store.Entry[any]]) {
	gaugeVersion(s.indexer.metric, string(e.Version))
}

var _ interface {
	ResourceEventHandlerRegistration
	ShutdownChan() <-chan struct{}
} = &registration{}
