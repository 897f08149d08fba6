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

// errStarted is returned by a Start of a factory that is started.
var errStarted = errors.New("the factory is started already; whatever is opened later starts at once, so one Start " +
	"is enough. Stop it before starting it anew")

// errNotStarted is returned by methods that need a started factory.
var errNotStarted = errors.New("the factory is not started; call Start first")

// started reports whether informers run now. The lock is held.
func (f *Factory) started() bool { return f.ctx != nil && f.ctx.Err() == nil }

// Start starts every informer that is in use; those opened later start at once.
// They run until ctx ends or Stop is called, and then may be started again.
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
	f.stayOpen()
	f.ctx, f.cancel = context.WithCancel(ctx)
	var failed []error
	for _, s := range f.shares {
		failed = append(failed, s.start(f.ctx))
	}
	return errors.Join(failed...)
}

// Stop stops every informer, drops what they have mirrored and waits until all that ran has
// ended, those that were released before included. When ctx ends first, its error names the handlers
// that are still running. A factory that does not run needs no stop. Connections that nobody uses are
// closed, a moment after it too.
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
	if f.stayOpen(); !f.started() {
		f.late = time.AfterFunc(letGo, func() { closeIdle(f.client.Transport) })
	}
	return err
}

// letGo is how long Stop gives the transport: a watch that its context has ended is let go
// of by a goroutine of the transport, after the reader has been told, and until then
// its connection is in use.
const letGo = 100 * time.Millisecond

// stayOpen takes back that connections are to be closed. The lock is held.
func (f *Factory) stayOpen() {
	if f.late != nil {
		f.late.Stop()
		f.late = nil
	}
}

// closeIdle closes the connections that nobody uses: each is a goroutine, too. Others
// may share the transport; they lose nothing that they were using.
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

// end stops runs, all at once, and waits for them until ctx ends.
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

// wait waits for a cancelled run to end: for its callbacks, which the informer
// names, and for what is left of it.
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
