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

// listing is a list under way.
type listing[T any] struct {
	lister source.Lister[T]
	dog    *watchdog
	match  source.Match
}

func (l *listing[T]) close() {
	l.lister.Close()
	l.dog.stop()
}

func (r *Reflector[T]) openList(ctx context.Context) (time.Duration, error) {
	opts := source.ListOptions{Match: r.opts.FirstList, PageSize: r.opts.PageSize, Encoded: r.opts.Encoded, Shares: r.opts.Shares}
	switch {
	case r.fresh:
		opts.Match = source.Consistent
	case r.version != "":
		opts.Match, opts.Version = source.NotOlderThan, r.version
	}
	if r.whole {
		opts.PageSize = source.OnePage
	}
	r.board.enter(Listing)
	r.board.update(func(h *Health) { h.Lists++; h.InitialState = false })
	dog := newWatchdog(ctx, r.opts.Silence)
	lister, err := r.opts.Source.List(dog.ctx, opts)
	if err != nil {
		err = dog.explain(err)
		dog.stop()
		return r.listFailed(ctx, err)
	}
	dog.heard()
	r.list = &listing[T]{lister: lister, dog: dog, match: opts.Match}
	r.mark(object.ReplaceBegin, "")
	r.phase = reading
	return 0, r.pushResting(ctx, dog)
}

func (r *Reflector[T]) readList(ctx context.Context) (time.Duration, error) {
	items, err := r.list.lister.Read(r.items[:0])
	r.items, r.readAt = items, time.Now()
	r.deltas = slices.Grow(r.deltas, len(items)+1) // and a mark
	for i := range items {
		r.deltas = append(r.deltas, object.Delta[T]{Type: object.Replaced, Item: items[i]})
	}
	clear(items)
	if cap(items) > keptBuffer {
		r.items = nil // a source that gave a whole list at once need not do so again
	}
	if len(r.deltas) > 0 {
		r.heard()
		if perr := r.pushResting(ctx, r.list.dog); perr != nil {
			return 0, perr
		}
	}
	switch {
	case err == nil:
		return 0, nil
	case errors.Is(err, io.EOF):
		return r.finish(ctx, r.list.lister.Version(), r.list.match == source.Consistent)
	}
	err = r.list.dog.explain(err)
	if perr := r.abort(ctx); perr != nil {
		return 0, perr
	}
	if source.ReasonOf(err) == source.Expired && !r.whole {
		// A page expired before it was asked for, and would again. A list in one piece
		// has no pages that can expire.
		r.phase, r.fresh, r.whole = opening, true, true
		r.closeStreams()
		r.report("list", "", err, 0)
		return 0, ctx.Err()
	}
	return r.listFailed(ctx, err)
}

// finish closes a state that was read whole, by a list or by an initial stream,
// and goes on to follow the changes after it.
func (r *Reflector[T]) finish(ctx context.Context, v object.Version, newest bool) (time.Duration, error) {
	older := !r.opts.TrustOrder && v.Before(r.version)
	if older && !newest {
		if err := r.abort(ctx); err != nil {
			return 0, err
		}
		r.phase, r.fresh = opening, true
		return r.retry(ctx, "list", fmt.Errorf("%w: %s after %s", errOlder, v, r.version))
	}
	if older && !r.setBack {
		// A history that goes on from an older state gives out the same versions again, for
		// other states. So nothing that the sink has may pass for known, and it must hear
		// that before the first item: this state is read once more.
		if err := r.abort(ctx); err != nil {
			return 0, err
		}
		r.setBack, r.fresh, r.phase = true, true, choosing
		r.report("list", "", fmt.Errorf("history was set back from %s to %s: a new epoch begins", r.version, v), 0)
		r.closeStreams()
		return 0, ctx.Err()
	}
	r.mark(object.ReplaceEnd, v)
	if r.setBack {
		r.board.update(func(h *Health) { h.Epochs++ })
	}
	r.version, r.fresh, r.setBack, r.whole, r.stateAt = v, false, false, false, time.Now()
	r.heard()
	if r.list != nil {
		r.list.close()
		r.list = nil
	}
	if r.phase == initial {
		r.phase, r.initialPause = following, 0
	} else {
		r.phase = connecting
	}
	err := r.push(ctx)
	r.items, r.changes, r.deltas = nil, nil, nil // most sources are quiet from here on
	return 0, err
}

// listFailed decides what a failed list means for the next one.
func (r *Reflector[T]) listFailed(ctx context.Context, err error) (time.Duration, error) {
	r.phase, r.whole = choosing, false
	switch source.ReasonOf(err) {
	case source.Expired, source.Ahead:
		// The version asked for is too old, or not there yet. The newest state is
		// always to be had, so ask for that, at once the first time.
		r.phase = opening
		if !r.fresh {
			r.fresh = true
			r.closeStreams()
			r.report("list", "", err, 0)
			return 0, ctx.Err()
		}
	case source.Denied:
		if r.refused >= quickRefusals && !r.fresh {
			// Everything is refused. The place in history is still known, so that no list is needed once
			// watches are allowed again.
			r.phase, r.refused = connecting, 0
		}
	}
	return r.retry(ctx, "list", err)
}
