package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// listing is an open list.
type listing[T any] struct {
	lister source.Lister[T]
	dog    *watchdog
	match  source.Match
}

func (l *listing[T]) close() {
	l.lister.Close()
	l.dog.stop()
}

// openList opens a list and sends ReplaceBegin.
func (r *Reflector[T]) openList(ctx context.Context) (time.Duration, error) {
	opts := source.ListOptions{Match: r.opts.FirstList, PageSize: r.opts.PageSize,
		Encoded: r.opts.Encoded, Shares: r.opts.Shares}
	switch {
	case r.newest:
		opts.Match = source.Consistent
	case r.version != "":
		opts.Match, opts.Version = source.NotOlderThan, r.version
	}
	if r.onePage {
		opts.PageSize = source.OnePage
	}
	if err := r.admit(ctx); err != nil {
		return r.retry(ctx, "list", err)
	}
	r.health.enter(Listing)
	r.health.update(func(h *Health) { h.Lists++; h.InitialState = false })
	dog := newWatchdog(ctx, r.opts.Silence)
	lister, err := r.opts.Source.List(dog.ctx, opts)
	if err != nil {
		err = dog.cause(err)
		dog.stop()
		return r.listFailed(ctx, err)
	}
	dog.reset()
	r.list = &listing[T]{lister: lister, dog: dog, match: opts.Match}
	r.mark(object.ReplaceBegin, "")
	r.phase = reading
	return 0, r.pushPausing(ctx, dog)
}

// readList reads a part of the open list.
func (r *Reflector[T]) readList(ctx context.Context) (time.Duration, error) {
	items, err := r.list.lister.Read(r.items[:0])
	r.items, r.readAt = items, time.Now()
	r.deltas = slices.Grow(r.deltas, len(items)+1) // one more for ReplaceEnd
	for i := range items {
		r.deltas = append(r.deltas, object.Delta[T]{Type: object.Replaced, Item: items[i]})
	}
	clear(items)
	if cap(items) > maxKeptBuffer {
		r.items = nil
	}
	if len(r.deltas) > 0 {
		r.noteProgress()
		if perr := r.pushPausing(ctx, r.list.dog); perr != nil {
			return 0, perr
		}
	}
	switch {
	case err == nil:
		return 0, nil
	case errors.Is(err, io.EOF):
		return r.finish(ctx, r.list.lister.Version(), r.list.match == source.Consistent)
	}
	err = r.list.dog.cause(err)
	if perr := r.abort(ctx); perr != nil {
		return 0, perr
	}
	if source.ReasonOf(err) == source.Expired && !r.onePage {
		// A page expired before it was requested, and would probably do so again. A list
		// in one page cannot expire.
		r.phase, r.newest, r.onePage = opening, true, true
		r.closeStreams()
		r.report("list", "", err, 0)
		return 0, ctx.Err()
	}
	return r.listFailed(ctx, err)
}

// finish completes a state that was read to its end, by a list or as the initial state
// of a watch, and continues with the changes after it.
func (r *Reflector[T]) finish(ctx context.Context, v object.Version, newest bool) (time.Duration, error) {
	older := !r.opts.TrustOrder && v.Before(r.version)
	if older && !newest {
		if err := r.abort(ctx); err != nil {
			return 0, err
		}
		r.phase, r.newest = opening, true
		return r.retry(ctx, "list", fmt.Errorf("%w: %s after %s", errOlder, v, r.version))
	}
	if older && !r.newEpoch {
		// History was reset, so the source assigns the same versions again to other
		// states. The sink must learn of the new epoch before the first item, because it
		// must not skip an item whose version it already has. Read the state once more.
		if err := r.abort(ctx); err != nil {
			return 0, err
		}
		r.newEpoch, r.newest, r.phase = true, true, choosing
		r.report("list", "", fmt.Errorf("history was reset from %s to %s: a new epoch begins", r.version, v), 0)
		r.closeStreams()
		return 0, ctx.Err()
	}
	r.endState()
	r.mark(object.ReplaceEnd, v)
	r.health.update(func(h *Health) {
		h.Restored = false
		if r.newEpoch {
			h.Epochs++
		}
	})
	r.version, r.newest, r.newEpoch, r.onePage, r.stateAt = v, false, false, false, time.Now()
	r.noteProgress()
	if r.list != nil {
		r.list.close()
		r.list = nil
	}
	if r.phase == initial {
		r.phase, r.listPeriod = following, 0
	} else {
		r.phase = connecting
	}
	err := r.push(ctx)
	r.items, r.changes, r.deltas = nil, nil, nil // most sources rarely change from here on
	return 0, err
}

// listFailed chooses the phase that follows a failed list.
func (r *Reflector[T]) listFailed(ctx context.Context, err error) (time.Duration, error) {
	r.phase, r.onePage = choosing, false
	switch source.ReasonOf(err) {
	case source.Expired, source.Ahead:
		// The requested version is too old, or the source has not reached it yet. Request
		// the newest state instead, the first time without a wait.
		r.phase = opening
		if !r.newest {
			r.newest = true
			r.closeStreams()
			r.report("list", "", err, 0)
			return 0, ctx.Err()
		}
	case source.Denied:
		if r.refusals >= refusalsBeforePolling && !r.newest {
			// Lists and watches are both refused. The version reached is still valid, so no list
			// is needed once watches are allowed again.
			r.phase, r.refusals = connecting, 0
		}
	}
	return r.retry(ctx, "list", err)
}
