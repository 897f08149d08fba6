package factory

import (
	"context"
	"fmt"
	"strings"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source"
)

// namedAtMost bounds how many informers an error's text names.
const namedAtMost = 10

// SyncError is the error of a wait that ended before all informers had synced.
type SyncError struct {
	// Waiting is the health of the informers that have not synced, sorted by name.
	Waiting []informer.Health
	// All is the number of informers that were waited for.
	All int

	cause error
	hints map[string]string
}

// Error names the informers that have not synced, with the state and the last error of each.
func (e *SyncError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d informers are not synced: %v", len(e.Waiting), e.All, e.cause)
	for i, h := range e.Waiting {
		if i == namedAtMost {
			fmt.Fprintf(&b, "; and %d more", len(e.Waiting)-i)
			break
		}
		fmt.Fprintf(&b, "; %s is %s", h.Name, h.Reflector.State)
		if h.Reflector.Err != nil {
			fmt.Fprintf(&b, ", because: %v", h.Reflector.Err)
		}
		b.WriteString(e.hints[h.Name])
	}
	return b.String()
}

// Unwrap returns the reason why the wait ended and the last error of each informer.
func (e *SyncError) Unwrap() []error {
	all := []error{e.cause}
	for _, h := range e.Waiting {
		if h.Reflector.Err != nil {
			all = append(all, h.Reflector.Err)
		}
	}
	return all
}

// WaitForSync waits until all informers in use have their initial state. If ctx ends or an informer is stopped, it
// returns a *SyncError that says which informers have not synced, and why.
func (f *Factory) WaitForSync(ctx context.Context) error {
	f.mu.Lock()
	started := f.started()
	f.mu.Unlock()
	if !started {
		return fmt.Errorf("wait for sync: %w", errNotStarted)
	}
	all := f.registered()
	for _, s := range all {
		if cause := f.awaitSync(ctx, s); cause != nil {
			return f.notSynced(all, cause)
		}
	}
	return nil
}

// awaitSync waits for one informer. It returns nil if the informer has been released by all users.
func (f *Factory) awaitSync(ctx context.Context, s share) error {
	r, synced := s.run()
	if r == nil && !f.inUse(s) {
		return nil
	}
	if r == nil {
		return fmt.Errorf("%s is stopped; call Start", s.title())
	}
	select {
	case <-synced: // also when ctx has ended
		return nil
	default:
	}
	select {
	case <-synced:
		return nil
	case <-r.ctx.Done():
		if !f.inUse(s) {
			return nil
		}
		return fmt.Errorf("%s was stopped; call Start", s.title())
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *Factory) inUse(s share) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.shares[s.identity()] == s
}

func (f *Factory) notSynced(all []share, cause error) error {
	e := &SyncError{All: len(all), cause: cause, hints: map[string]string{}}
	for _, s := range all {
		h := s.health()
		if h.Synced || !f.inUse(s) {
			continue
		}
		e.Waiting = append(e.Waiting, h)
		if h.Reflector.Err != nil && source.ReasonOf(h.Reflector.Err) == source.NotServed {
			e.hints[h.Name] = didYouMean(f.similarNames(s.identity().gvr))
		}
	}
	return e
}
