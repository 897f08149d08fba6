package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// watching is a watch under way.
type watching[T any] struct {
	watcher source.Watcher[T]
	dog     *watchdog
	opened  time.Time // when it began to give changes
	newest  bool      // the initial state was asked for without a version
	spoke   bool      // it has given a change, a bookmark or an initial state
}

// lived reports whether the stream has lasted long enough to count as a success.
// A word alone does not: a source that says one thing and hangs up, again and
// again, must meet the backoff.
func (w *watching[T]) lived(least time.Duration) bool {
	return time.Since(w.opened) >= least
}

func (w *watching[T]) close() {
	w.watcher.Close()
	w.dog.stop()
}

func (r *Reflector[T]) openInitial(ctx context.Context) (time.Duration, error) {
	at := r.version
	if r.fresh {
		at = ""
	}
	err := r.openWatch(ctx, source.WatchOptions{Version: at, InitialState: true, Encoded: r.opts.Encoded, Shares: r.opts.Shares}, r.opts.Silence)
	if err != nil {
		return r.initialFailed(ctx, err)
	}
	r.watch.newest = at == ""
	r.board.update(func(h *Health) { h.InitialState = true })
	r.mark(object.ReplaceBegin, "")
	r.phase = initial
	return 0, r.pushResting(ctx, r.watch.dog)
}

func (r *Reflector[T]) openWatch(ctx context.Context, opts source.WatchOptions, silence time.Duration) error {
	opts.Timeout = r.opts.WatchTimeout + time.Duration(r.opts.Backoff.Rand()*float64(r.opts.WatchTimeout))
	if silence == 0 {
		silence = r.beat.limit(opts.Timeout)
	}
	r.board.update(func(h *Health) { h.Watches++ })
	dog := newWatchdog(ctx, silence)
	watcher, err := r.opts.Source.Watch(dog.ctx, opts)
	if err != nil {
		err = dog.explain(err)
		dog.stop()
		return err
	}
	dog.heard()
	r.watch = &watching[T]{watcher: watcher, dog: dog, opened: time.Now()}
	if !opts.InitialState {
		r.beat.open(r.watch.opened)
	}
	return nil
}

// readInitial reads the state that comes first on a watch, until the bookmark
// that closes it.
func (r *Reflector[T]) readInitial(ctx context.Context) (time.Duration, error) {
	changes, err := r.watch.watcher.Read(r.changes[:0])
	r.changes, r.readAt = changes, time.Now()
	for i := range changes {
		c := &changes[i]
		switch c.Type {
		case object.Added, object.Updated:
			r.deltas = append(r.deltas, object.Delta[T]{Type: object.Replaced, Item: c.Item})
		case object.Deleted:
			r.deltas = append(r.deltas, object.Delta[T]{Type: object.Deleted, Item: c.Item})
		case object.Undecodable:
			// It is there, whatever it is: handed on as an item that does not decode, it
			// is not taken for deleted.
			if c.Item.Key == "" {
				r.undecodable(c)
				continue
			}
			err := c.Err
			c.Item.Decode = func([]byte) (T, error) { var none T; return none, err }
			r.deltas = append(r.deltas, object.Delta[T]{Type: object.Replaced, Item: c.Item})
		case object.Bookmark:
			if !c.InitialEnd {
				continue
			}
			at, rest := c.Item.Version, append([]source.Change[T](nil), changes[i+1:]...)
			clear(changes)
			return r.endInitial(ctx, at, rest, err)
		}
	}
	clear(changes)
	if len(changes) > 0 {
		r.heard()
		if perr := r.pushResting(ctx, r.watch.dog); perr != nil {
			return 0, perr
		}
	}
	if err == nil && r.watch.lived(2*r.opts.WatchTimeout+grace) {
		// It talks and talks, and never says that this was the state.
		err = io.EOF
	}
	if err == nil {
		return 0, nil
	}
	err = r.watch.dog.explain(err)
	if errors.Is(err, io.EOF) || errors.Is(err, errSilent) {
		err = &source.Error{Reason: source.Unsupported, Err: fmt.Errorf("the initial state was not closed by its bookmark: %w", err)}
	}
	if perr := r.abort(ctx); perr != nil {
		return 0, perr
	}
	return r.initialFailed(ctx, err)
}

// endInitial closes the initial state; rest are the changes that were read along
// with its bookmark, and ended, if the stream is over, says why.
func (r *Reflector[T]) endInitial(ctx context.Context, v object.Version, rest []source.Change[T], ended error) (time.Duration, error) {
	wait, err := r.finish(ctx, v, r.watch.newest)
	if err != nil || r.phase != following {
		return wait, err
	}
	// The same stream goes on with the changes. It has its own, longer, patience.
	r.watch.opened, r.watch.spoke = time.Now(), true
	r.beat.open(r.watch.opened)
	r.board.enter(Streaming)
	r.watch.dog.expect(r.beat.limit(2 * r.opts.WatchTimeout))
	return r.take(ctx, rest, ended)
}

// initialFailed decides what a failed initial state means: listed instead where
// the source cannot do it, tried again where the failure may pass.
func (r *Reflector[T]) initialFailed(ctx context.Context, err error) (time.Duration, error) {
	r.phase = choosing
	switch source.ReasonOf(err) {
	case source.Unsupported:
		r.pauseInitial()
		r.phase = opening
		r.closeStreams()
		r.report("initial state", "", err, 0)
		return 0, ctx.Err()
	case source.Expired, source.Ahead:
		if !r.fresh {
			r.fresh = true
			r.closeStreams()
			r.report("initial state", "", err, 0)
			return 0, ctx.Err()
		}
	case source.Denied:
		// Some may list and not watch. If this one may not list either, the list says so.
		r.phase = opening
		r.closeStreams()
		r.report("initial state", "", err, 0)
		return 0, ctx.Err()
	case source.Garbled:
		r.phase = opening // a list may come through where a stream does not
	}
	return r.retry(ctx, "initial state", err)
}

// How long a source is listed that did not give an initial state as promised: at first,
// and at most where it never does.
const (
	firstInitialPause = 5 * time.Minute
	mostInitialPause  = time.Hour
)

// pauseInitial lets states be listed for a while, longer each time in a row. A stream
// that was cut, or a server that was replaced by a newer one, is no reason to list for
// ever.
func (r *Reflector[T]) pauseInitial() {
	r.initialPause = min(max(2*r.initialPause, firstInitialPause), mostInitialPause)
	r.initialAt = time.Now().Add(r.initialPause)
}

func (r *Reflector[T]) connect(ctx context.Context) (time.Duration, error) {
	if err := r.openWatch(ctx, source.WatchOptions{Version: r.version, Encoded: r.opts.Encoded, Shares: r.opts.Shares}, 0); err != nil {
		return r.watchFailed(ctx, "watch", err)
	}
	r.phase = following
	r.board.enter(Streaming)
	return 0, nil
}

// follow reads the changes that can be had.
func (r *Reflector[T]) follow(ctx context.Context) (time.Duration, error) {
	changes, err := r.watch.watcher.Read(r.changes[:0])
	r.changes, r.readAt = changes, time.Now()
	if len(changes) > 0 {
		r.watch.spoke = true
		if r.troubled() && r.watch.lived(r.opts.Backoff.First) {
			r.alive()
		}
	}
	return r.take(ctx, changes, err)
}

// take hands changes on and then deals with the end of the stream, if ended says that it is over.
func (r *Reflector[T]) take(ctx context.Context, changes []source.Change[T], ended error) (time.Duration, error) {
	if len(changes) > 0 {
		lost := r.collect(changes)
		clear(changes)
		r.watch.dog.rest() // the sink's time is not the source's silence
		err := r.push(ctx)
		r.watch.dog.expect(r.beat.limit(2 * r.opts.WatchTimeout))
		switch {
		case err != nil:
			return 0, err
		case lost != nil:
			return r.relist(ctx, "stream", lost)
		}
	}
	if ended == nil {
		return 0, nil
	}
	err := r.watch.dog.explain(ended)
	if errors.Is(err, io.EOF) || errors.Is(err, errSilent) {
		return r.watchEnded(ctx, err)
	}
	return r.watchFailed(ctx, "stream", err)
}

// collect turns changes into deltas. lost says that they show a history that was set back.
func (r *Reflector[T]) collect(changes []source.Change[T]) (lost error) {
	for i := range changes {
		c := &changes[i]
		d := object.Delta[T]{Type: c.Type, Item: c.Item}
		switch c.Type {
		case object.Bookmark:
			r.beat.bookmark(r.readAt)
			if !r.opts.TrustOrder && c.Item.Version.Before(r.version) {
				// Nothing but a history that was set back makes a bookmark go back.
				r.fresh, r.setBack = true, true
				return fmt.Errorf("a bookmark went back from %s to %s", r.version, c.Item.Version)
			}
		case object.Undecodable:
			r.undecodable(c)
			if !c.Item.Version.Ordered() { // it may be half of one
				continue
			}
			// The object stays as it was, and whoever waits for its version need not wait for the next event.
			d = object.Delta[T]{Type: object.Bookmark, Item: object.Item[T]{Version: c.Item.Version}}
		}
		if !r.advance(c.Item.Version) {
			// The stream is in order and complete from its start, so this was told before,
			// or comes from a replica that lags: believing it would bring back the past.
			r.board.update(func(h *Health) { h.Stale++ })
			continue
		}
		r.deltas = append(r.deltas, d)
	}
	r.heard()
	return nil
}

// advance notes a version that the stream has reached. It reports false for one that lies
// behind what was reached before. Versions that are no numbers have no order, but a stream
// has: what it says last is how far it is. "0" is no place in history.
func (r *Reflector[T]) advance(v object.Version) bool {
	if r.opts.TrustOrder {
		if v != "" {
			r.version = v
		}
		return true
	}
	order, ok := v.Compare(r.version) // once: it takes longer than all else here
	if ok && order < 0 {
		return false
	}
	if v != "" && v != "0" {
		r.version = v
	}
	return true
}

func (r *Reflector[T]) undecodable(c *source.Change[T]) {
	r.board.update(func(h *Health) { h.Undecodable++ })
	r.report("decode", c.Item.Key, c.Err, 0)
}

// watchEnded goes on after a stream that ended as streams do, or that went
// silent. One that ended at once is a failure: reopening it without a pause
// would be a storm.
func (r *Reflector[T]) watchEnded(ctx context.Context, err error) (time.Duration, error) {
	r.phase = connecting
	if !r.watch.lived(r.opts.Backoff.First) {
		return r.retry(ctx, "stream", fmt.Errorf("the stream ended at once: %w", err))
	}
	r.alive()
	if errors.Is(err, errSilent) {
		r.board.update(func(h *Health) { h.Silences++ })
		r.report("stream", "", err, 0)
	}
	r.closeStreams()
	return 0, ctx.Err()
}

// quickRefusals is how often in a row a watch is refused before the state is polled:
// listed again and again, each time with another try to watch after it. Rights that are
// missing for a moment only, as while roles are replaced, cost no list. Neither does an outage of
// credentials, in which lists are refused too: the first list follows the last refusal at once, and if it is
// refused, watches are tried again. So what comes after a wait is a watch from the version that was
// reached, until a list has shown that only watches are refused.
const quickRefusals = 3

// watchFailed decides whether the place in history is lost, and whether the source can
// be followed at all.
func (r *Reflector[T]) watchFailed(ctx context.Context, doing string, err error) (time.Duration, error) {
	r.phase = connecting
	reason := source.ReasonOf(err)
	refused := reason == source.Denied || reason == source.Unsupported
	// A stream that gave nothing but a refusal, however late, has not lived.
	if r.watch != nil && r.watch.lived(r.opts.Backoff.First) && (r.watch.spoke || !refused) {
		r.failed, r.refused = 0, 0
	}
	switch reason {
	case source.Expired:
		return r.relist(ctx, doing, err)
	case source.Ahead:
		r.phase, r.fresh = choosing, true
	case source.Denied, source.Unsupported:
		if r.refused++; r.refused >= quickRefusals {
			r.phase = opening
		}
		if r.refused == quickRefusals {
			r.failed++
			r.closeStreams()
			r.report(doing, "", err, 0)
			return 0, ctx.Err()
		}
	}
	return r.retry(ctx, doing, err)
}

// relist gets a new state because the place in history is lost: at once the first
// time, with growing pauses if it is lost again soon after. A state is the dearest
// thing to ask for, so "soon" is longer here than for a stream. What failed before
// does not matter for the first time: a source that says what it has forgotten is
// back, as an API server is that was restarted.
func (r *Reflector[T]) relist(ctx context.Context, doing string, err error) (time.Duration, error) {
	r.phase, r.refused = choosing, 0
	if time.Since(r.stateAt) >= r.opts.Backoff.Most {
		r.lost = 0
	}
	r.lost++
	if r.lost == 1 {
		r.failed++
		r.closeStreams()
		r.report(doing, "", err, 0)
		r.board.enter(Listing)
		return 0, ctx.Err()
	}
	r.failed = max(r.failed, r.lost-2)
	return r.retry(ctx, doing, err)
}
