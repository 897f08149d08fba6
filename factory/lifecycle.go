package factory

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// errStarted is returned by Start if the factory is already started.
var errStarted = errors.New("the factory is already started; resources that are opened later start at once, so one " +
	"Start is enough, and Stop must come before another")

// errNotStarted is returned by methods that need a started factory.
var errNotStarted = errors.New("the factory is not started; call Start first")

// started reports whether the factory is started. The lock is held.
func (f *Factory) started() bool { return f.ctx != nil && f.ctx.Err() == nil }

// Start starts every informer that is in use; those opened later start at once. They run until ctx ends or Stop is
// called. Then Start may be called again.
func (f *Factory) Start(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("start the factory: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.started() {
		return errStarted
	}
	if f.cancel != nil {
		f.cancel()
	}
	f.keepConnections()
	f.ctx, f.cancel = context.WithCancel(ctx)
	var failed []error
	for _, s := range f.shares {
		failed = append(failed, s.start(f.ctx))
	}
	return errors.Join(failed...)
}

// Stop stops every informer, drops the mirrored objects and waits until all informers have ended, including those that
// were released before. If ctx ends first, the error names the handlers that are still running. Stop of a factory that
// is not started does nothing. Idle connections are closed, those of watches a moment later.
func (f *Factory) Stop(ctx context.Context) error {
	f.mu.Lock()
	if f.cancel != nil {
		f.cancel()
	}
	f.ctx, f.cancel = nil, nil
	runs := make([]*running, 0, len(f.active))
	for r := range f.active {
		runs = append(runs, r)
	}
	stuck := f.stuck
	f.stuck = nil
	f.mu.Unlock()

	err := errors.Join(append(stuck, f.end(ctx, runs))...)
	closeIdle(f.client.Transport)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keepConnections(); !f.started() {
		f.closeLater = time.AfterFunc(connectionDelay, func() { closeIdle(f.client.Transport) })
	}
	return err
}

// connectionDelay is how long after Stop connections are closed again. When the context of a watch ends, a goroutine of
// the transport releases the connection after the reader has returned. Until then the connection is in use and cannot
// be closed.
const connectionDelay = 100 * time.Millisecond

// keepConnections cancels the closing of connections that Stop has scheduled. The lock is held.
func (f *Factory) keepConnections() {
	if f.closeLater != nil {
		f.closeLater.Stop()
		f.closeLater = nil
	}
}

// closeIdle closes idle connections, each of which has a goroutine. Other clients may share the transport; the
// connections that they use stay open.
func closeIdle(rt http.RoundTripper) {
	for rt != nil {
		if t, ok := rt.(interface{ CloseIdleConnections() }); ok {
			t.CloseIdleConnections()
			return
		}
		wrapper, ok := rt.(utilnet.RoundTripperWrapper)
		if !ok {
			return
		}
		rt = wrapper.WrappedRoundTripper()
	}
}

// end stops runs concurrently and waits for them until ctx ends.
func (f *Factory) end(ctx context.Context, runs []*running) error {
	f.mu.Lock()
	for _, r := range runs {
		r.stopping = true
	}
	f.mu.Unlock()
	errs := make([]error, len(runs))
	var all sync.WaitGroup
	for i, r := range runs {
		r.cancel()
		all.Go(func() { errs[i] = r.wait(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// wait waits for a cancelled run to end: first for its callbacks, which the informer names in its error, then for its
// goroutine.
func (r *running) wait(ctx context.Context) error {
	if err := r.stop(ctx); err != nil {
		return err
	}
	select {
	case <-r.done:
		return nil
	default:
	}
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop %s: %w", r.title, ctx.Err())
	}
}
