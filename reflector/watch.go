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

// watching is an open watch.
type watching[T any] struct {
	watcher  source.Watcher[T]
	dog      *watchdog
	opened   time.Time // when it was opened, or when its initial state was complete
	newest   bool      // the initial state was requested without a version
	received bool      // it has sent a change, a bookmark or an initial state
}

// lasted reports whether the stream has been open for at least d. A stream counts as a
// success only if it lasted: a source that repeatedly sends one event and closes the
// stream must meet the backoff.
func (w *watching[T]) lasted(d time.Duration) bool {
	return time.Since(w.opened) >= d
}

func (w *watching[T]) close() {
	w.watcher.Close()
	w.dog.stop()
}

// openInitial opens a watch that begins with the initial state.
func (r *Reflector[T]) openInitial(ctx context.Context) (time.Duration, error) {
	at := r.version
	if r.newest {
		at = ""
	}
	if err := r.admit(ctx); err != nil {
		return r.retry(ctx, "initial state", err)
	}
	err := r.openWatch(ctx, source.WatchOptions{Version: at, InitialState: true}, r.opts.Silence)
	if err != nil {
		return r.initialFailed(ctx, err)
	}
	r.watch.newest = at == ""
	r.health.update(func(h *Health) { h.InitialState = true })
	r.mark(object.ReplaceBegin, "")
	r.phase = initial
	return 0, r.pushPausing(ctx, r.watch.dog)
}

// openWatch opens a watch that may be silent for the given time; 0 takes the limit from
// the heartbeat.
func (r *Reflector[T]) openWatch(ctx context.Context, opts source.WatchOptions, silence time.Duration) error {
	opts.Encoded, opts.Shares = r.opts.Encoded, r.opts.Shares
	opts.Timeout = r.opts.WatchTimeout + time.Duration(r.opts.Backoff.Rand()*float64(r.opts.WatchTimeout))
	if silence == 0 {
		silence = r.heartbeat.limit(opts.Timeout)
	}
	r.health.update(func(h *Health) { h.Watches++ })
	dog := newWatchdog(ctx, silence)
	watcher, err := r.opts.Source.Watch(dog.ctx, opts)
	if err != nil {
		err = dog.cause(err)
		dog.stop()
		return err
	}
	dog.reset()
	r.watch = &watching[T]{watcher: watcher, dog: dog, opened: time.Now()}
	if !opts.InitialState {
		r.heartbeat.open(r.watch.opened)
	}
	return nil
}

// readInitial reads the initial state of a watch until the bookmark that completes it.
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
			// The object exists although it cannot be decoded. Pass it on as an item that
			// fails to decode, so that it does not count as deleted.
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
		r.noteProgress()
		if perr := r.pushPausing(ctx, r.watch.dog); perr != nil {
			return 0, perr
		}
	}
	if err == nil && r.watch.lasted(2*r.opts.WatchTimeout+grace) {
		// The source keeps sending changes but never the bookmark that completes the state.
		err = io.EOF
	}
	if err == nil {
		return 0, nil
	}
	err = r.watch.dog.cause(err)
	if errors.Is(err, io.EOF) || errors.Is(err, errSilent) {
		err = &source.Error{Reason: source.Unsupported,
			Err: fmt.Errorf("the initial state was not completed by a bookmark: %w", err)}
	}
	if perr := r.abort(ctx); perr != nil {
		return 0, perr
	}
	return r.initialFailed(ctx, err)
}

// endInitial completes the initial state. rest are the changes that were read together
// with its bookmark, and ended is the error that ended the stream, or nil.
func (r *Reflector[T]) endInitial(ctx context.Context, v object.Version, rest []source.Change[T],
	ended error) (time.Duration, error) {
	wait, err := r.finish(ctx, v, r.watch.newest)
	if err != nil || r.phase != following {
		return wait, err
	}
	// The same stream continues with the changes, with a longer limit for silence.
	r.watch.opened, r.watch.received = time.Now(), true
	r.heartbeat.open(r.watch.opened)
	r.health.enter(Streaming)
	r.watch.dog.resetTo(r.heartbeat.limit(2 * r.opts.WatchTimeout))
	return r.process(ctx, rest, ended)
}

// initialFailed chooses the phase that follows a failed initial state: a list if the
// source does not support initial states, another attempt if the failure may be temporary.
func (r *Reflector[T]) initialFailed(ctx context.Context, err error) (time.Duration, error) {
	r.phase = choosing
	switch source.ReasonOf(err) {
	case source.Unsupported:
		r.listForAWhile()
		r.phase = opening
		r.closeStreams()
		r.report("initial state", "", err, 0)
		return 0, ctx.Err()
	case source.Expired, source.Ahead:
		if !r.newest {
			r.newest = true
			r.closeStreams()
			r.report("initial state", "", err, 0)
			return 0, ctx.Err()
		}
	case source.Denied:
		// Lists may be allowed where watches are not. If they are not, the list fails with
		// the same reason.
		r.phase = opening
		r.closeStreams()
		r.report("initial state", "", err, 0)
		return 0, ctx.Err()
	case source.Garbled:
		r.phase = opening // a list may succeed where a stream fails
	}
	return r.retry(ctx, "initial state", err)
}

// The first and the longest period during which states are listed because the source did
// not deliver an announced initial state.
const (
	firstListPeriod = 5 * time.Minute
	maxListPeriod   = time.Hour
)

// listForAWhile makes choose prefer lists to initial states, for a longer period each time
// in a row. It is not permanent: the stream may have been cut by chance, or the server may
// be replaced by a newer one.
func (r *Reflector[T]) listForAWhile() {
	r.listPeriod = min(max(2*r.listPeriod, firstListPeriod), maxListPeriod)
	r.listUntil = time.Now().Add(r.listPeriod)
}

// connect opens a watch at the version reached.
func (r *Reflector[T]) connect(ctx context.Context) (time.Duration, error) {
	if err := r.openWatch(ctx, source.WatchOptions{Version: r.version}, 0); err != nil {
		return r.watchFailed(ctx, "watch", err)
	}
	r.phase = following
	r.health.enter(Streaming)
	return 0, nil
}

// follow reads the watch and passes on the changes.
func (r *Reflector[T]) follow(ctx context.Context) (time.Duration, error) {
	changes, err := r.watch.watcher.Read(r.changes[:0])
	r.changes, r.readAt = changes, time.Now()
	if len(changes) > 0 {
		r.watch.received = true
		if r.failing() && r.watch.lasted(r.opts.Backoff.First) {
			r.recovered()
		}
	}
	return r.process(ctx, changes, err)
}

// process pushes changes to the sink and then handles the end of the stream if ended is
// not nil.
func (r *Reflector[T]) process(ctx context.Context, changes []source.Change[T], ended error) (time.Duration, error) {
	if len(changes) > 0 {
		reset := r.collect(changes)
		clear(changes)
		r.watch.dog.pause() // time in the sink is not silence of the source
		err := r.push(ctx)
		r.watch.dog.resetTo(r.heartbeat.limit(2 * r.opts.WatchTimeout))
		switch {
		case err != nil:
			return 0, err
		case reset != nil:
			return r.relist(ctx, "stream", reset)
		}
	}
	if ended == nil {
		return 0, nil
	}
	err := r.watch.dog.cause(ended)
	if errors.Is(err, io.EOF) || errors.Is(err, errSilent) {
		return r.watchEnded(ctx, err)
	}
	return r.watchFailed(ctx, "stream", err)
}

// collect turns changes into deltas. It returns an error if they show that the source's
// history was reset.
func (r *Reflector[T]) collect(changes []source.Change[T]) (reset error) {
	for i := range changes {
		c := &changes[i]
		d := object.Delta[T]{Type: c.Type, Item: c.Item}
		switch c.Type {
		case object.Bookmark:
			r.heartbeat.bookmark(r.readAt)
			if !r.opts.TrustOrder && c.Item.Version.Before(r.version) {
				// Bookmarks only go back if history was reset.
				r.newest, r.newEpoch = true, true
				return fmt.Errorf("history was reset: a bookmark at %s follows version %s", c.Item.Version, r.version)
			}
		case object.Undecodable:
			r.undecodable(c)
			if !c.Item.Version.Ordered() { // the version may be damaged too
				continue
			}
			// The sink keeps the object as it was. The bookmark tells it that this version was
			// reached, so that waiting for the version does not take until the next event.
			d = object.Delta[T]{Type: object.Bookmark, Item: object.Item[T]{Version: c.Item.Version}}
		}
		if !r.advance(c.Item.Version) {
			// A stream is ordered and complete, so this change was already sent, or comes from
			// a replica that lags behind. Passing it on would restore an old state.
			r.health.update(func(h *Health) { h.Stale++ })
			continue
		}
		r.deltas = append(r.deltas, d)
	}
	r.noteProgress()
	return nil
}

// advance records the version of a change as the version reached. It returns false if the
// change is older than that. Versions that are not numbers cannot be compared, but the stream
// is ordered: the last one received is the version reached. "0" is not a version to resume at.
func (r *Reflector[T]) advance(v object.Version) bool {
	if r.opts.TrustOrder {
		if v != "" {
			r.version = v
		}
		return true
	}
	order, ok := v.Compare(r.version) // compare once: this is the most expensive step
	if ok && order < 0 {
		return false
	}
	if v != "" && v != "0" {
		r.version = v
	}
	return true
}

// undecodable counts and reports an object that could not be decoded.
func (r *Reflector[T]) undecodable(c *source.Change[T]) {
	r.health.update(func(h *Health) { h.Undecodable++ })
	r.report("decode", c.Item.Key, c.Err, 0)
}

// watchEnded reopens a watch that ended normally or was closed because it was silent. A
// stream that ended at once counts as a failure, so that the backoff applies.
func (r *Reflector[T]) watchEnded(ctx context.Context, err error) (time.Duration, error) {
	r.phase = connecting
	if !r.watch.lasted(r.opts.Backoff.First) {
		return r.retry(ctx, "stream", fmt.Errorf("the stream ended at once: %w", err))
	}
	r.recovered()
	if errors.Is(err, errSilent) {
		r.health.update(func(h *Health) { h.Silences++ })
		r.report("stream", "", err, 0)
	}
	r.closeStreams()
	return 0, ctx.Err()
}

// refusalsBeforePolling is the number of consecutive refused watches after which the source
// is polled: listed at the pace of the backoff, with an attempt to watch after each list.
//
// Permissions that are missing for a moment, for example while roles are replaced, cost no
// list. Neither does an outage of credentials, during which lists are refused too: the first
// list follows the last refused watch without a wait, and if it is refused, the reflector
// returns to watches. After each wait it therefore tries a watch at the version reached,
// until a list has succeeded and shown that only watches are refused.
const refusalsBeforePolling = 3

// watchFailed chooses the phase that follows a failed watch: another watch at the version
// reached, a new state if that version is no longer available, or polling.
func (r *Reflector[T]) watchFailed(ctx context.Context, doing string, err error) (time.Duration, error) {
	r.phase = connecting
	reason := source.ReasonOf(err)
	refused := reason == source.Denied || reason == source.Unsupported
	// A stream that sent nothing but a refusal is not a success, however long it took.
	if r.watch != nil && r.watch.lasted(r.opts.Backoff.First) && (r.watch.received || !refused) {
		r.failures, r.refusals = 0, 0
	}
	switch reason {
	case source.Expired:
		return r.relist(ctx, doing, err)
	case source.Ahead:
		r.phase, r.newest = choosing, true
	case source.Denied, source.Unsupported:
		if r.refusals++; r.refusals >= refusalsBeforePolling {
			r.phase = opening
		}
		if r.refusals == refusalsBeforePolling {
			r.failures++
			r.closeStreams()
			r.report(doing, "", err, 0)
			return 0, ctx.Err()
		}
	}
	return r.retry(ctx, doing, err)
}

// relist reads the state again because the watch cannot be resumed at the version reached:
// without a wait the first time, with the backoff if that happens again soon after the new
// state. Reading a state is expensive, so "soon" is longer here than for a stream. Failures
// before the first relist do not count: an API server that reports an expired version after
// a restart is available again.
func (r *Reflector[T]) relist(ctx context.Context, doing string, err error) (time.Duration, error) {
	r.phase, r.refusals = choosing, 0
	if time.Since(r.stateAt) >= r.opts.Backoff.Most {
		r.relists = 0
	}
	r.relists++
	if r.relists == 1 {
		r.failures++
		r.closeStreams()
		r.report(doing, "", err, 0)
		r.health.enter(Listing)
		return 0, ctx.Err()
	}
	r.failures = max(r.failures, r.relists-2)
	return r.retry(ctx, doing, err)
}
