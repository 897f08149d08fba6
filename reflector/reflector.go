package reflector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// phase is the operation that the next step performs. It is more detailed than State,
// which is what callers see.
type phase uint8

const (
	choosing   phase = iota // choose between a list and a watch with initial state
	opening                 // open a list
	reading                 // read a list
	initial                 // read the initial state of a watch
	connecting              // open a watch at a version
	following               // read a watch
)

// Reflector copies one source into one sink.
type Reflector[T any] struct {
	opts   Options[T]
	health sharedHealth

	phase    phase
	newest   bool           // the next state must be the newest that the source has
	newEpoch bool           // history was reset, and the state of the new epoch has not been read yet
	reported bool           // a problem was reported since the last stream that lasted
	onePage  bool           // the next list must not be paged, because a page of the last one expired
	refusals int            // consecutive watches that were denied or not supported
	version  object.Version // the version reached; "" before the first state
	failures int            // consecutive failures; a stream that lasts resets it
	relists  int            // consecutive relists, each soon after the state before it
	stateAt  time.Time      // when the last state was complete
	readAt   time.Time      // when the last read of the source returned

	// If the source announces initial states but does not deliver them, states are listed
	// until listUntil. listPeriod is the length of that period.
	listUntil  time.Time
	listPeriod time.Duration

	list  *listing[T]
	watch *watching[T]
	ended func() // of Options.Admit, until the state has been read

	items     []object.Item[T]
	changes   []source.Change[T]
	deltas    []object.Delta[T]
	heartbeat heartbeat
}

// New returns a reflector. Run or Step starts it.
func New[T any](opts Options[T]) (*Reflector[T], error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	r := &Reflector[T]{opts: opts, version: opts.StartAt}
	r.health.h = Health{Since: time.Now(), Version: opts.StartAt}
	if opts.StartAt != "" {
		r.phase = connecting
		r.health.h.Restored, r.health.h.LastEvent = true, opts.LastEvent
	}
	return r, nil
}

// Distrust makes a reflector that was not started yet read the state in a new epoch, as if the source's history had
// been reset after StartAt. It is for callers that cannot use the state at StartAt as it is.
func (r *Reflector[T]) Distrust() {
	r.phase, r.newest, r.newEpoch = choosing, true, !r.opts.TrustOrder
}

// Health returns the current health. It is safe for concurrent use.
func (r *Reflector[T]) Health() Health { return r.health.read() }

// Run copies the source into the sink until ctx ends or the sink returns an error.
// It returns nil if ctx ended and the sink's error otherwise. A later call resumes
// at the version reached.
func (r *Reflector[T]) Run(ctx context.Context) error {
	defer r.Close()
	for {
		wait, err := r.Step(ctx)
		switch {
		case err == nil && wait <= 0: // if ctx has ended, the next Step returns its error
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case !sleep(ctx, wait):
			return nil
		}
	}
}

// Step performs the next operation and returns how long to wait before the next
// step. It blocks only in the source and the sink. It returns an error if the sink
// failed or ctx has ended. Failures of the source are reported and retried instead.
func (r *Reflector[T]) Step(ctx context.Context) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	switch r.phase {
	case choosing:
		return r.choose(ctx)
	case opening:
		return r.openList(ctx)
	case reading:
		return r.readList(ctx)
	case initial:
		return r.readInitial(ctx)
	case connecting:
		return r.connect(ctx)
	default:
		return r.follow(ctx)
	}
}

// Close closes the open list or watch and marks the reflector as stopped. The version
// reached is kept: a later Step resumes there, or lists again if Close interrupted a list.
func (r *Reflector[T]) Close() {
	r.closeStreams()
	switch r.phase {
	case reading, initial, opening:
		r.phase = choosing
	case following:
		r.phase = connecting
	}
	r.health.enter(Stopped)
}

// Relist makes the next Step read the state again, not older than the version reached.
// It is for callers of Step. If the source announces initial states, the reflector asks
// for one even if the source failed to deliver the last.
func (r *Reflector[T]) Relist() {
	r.closeStreams()
	r.phase, r.listUntil, r.listPeriod = choosing, time.Time{}, 0
}

func (r *Reflector[T]) closeStreams() {
	r.endState()
	if r.list != nil {
		r.list.close()
		r.list = nil
	}
	if r.watch != nil {
		r.watch.close()
		r.watch = nil
		r.heartbeat.close(time.Now())
	}
}

// admit waits until a state may be requested.
func (r *Reflector[T]) admit(ctx context.Context) (err error) {
	if r.opts.Admit != nil {
		r.endState()
		r.ended, err = r.opts.Admit(ctx)
	}
	return err
}

// endState is called when a state has been read, or reading it has failed.
func (r *Reflector[T]) endState() {
	if r.ended != nil {
		r.ended()
		r.ended = nil
	}
}

// choose decides how to read the state: by a watch with initial state or by a list.
func (r *Reflector[T]) choose(ctx context.Context) (time.Duration, error) {
	r.closeStreams()
	r.health.enter(Listing)
	if r.opts.Source.Describe().InitialState && !time.Now().Before(r.listUntil) {
		return r.openInitial(ctx)
	}
	r.phase = opening
	return 0, nil
}

// retry closes what is open, counts and reports a failure, and returns how long to wait.
// The caller has set the phase of the next attempt.
func (r *Reflector[T]) retry(ctx context.Context, doing string, err error) (time.Duration, error) {
	r.closeStreams()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	r.failures++
	reason := source.ReasonOf(err)
	wait := max(r.opts.Backoff.after(r.failures), r.opts.Backoff.stretch(source.RetryAfter(err)))
	state := Retrying
	if r.phase == opening && (doing == "watch" || doing == "stream") {
		state = Polling
	}
	if reason == source.NotServed {
		state = NotServed
		r.phase = choosing
		if r.failures > 3 { // the first retries are quick: a starting server may not serve all its resources yet
			wait = max(wait, r.opts.Backoff.stretch(r.opts.Backoff.Rare))
		}
	}
	r.report(doing, "", err, wait)
	r.health.enter(state)
	r.health.update(func(h *Health) {
		h.Failures, h.NextTry = r.failures, time.Now().Add(wait)
		h.Retries++
	})
	return wait, nil
}

// report records a failure in Health and passes it to OnProblem.
func (r *Reflector[T]) report(doing string, key object.Key, err error, wait time.Duration) {
	desc := r.opts.Source.Describe()
	err = fmt.Errorf("%s of %s: %w", doing, desc, err)
	r.reported = true
	r.health.update(func(h *Health) {
		h.Err = err
		if h.Errors == nil {
			h.Errors = map[source.Reason]uint64{}
		}
		h.Errors[source.ReasonOf(err)]++
	})
	if r.opts.OnProblem != nil {
		r.opts.OnProblem(Problem{Doing: doing, Key: key, Err: err, Wait: wait})
	}
}

// failing reports whether there was a failure since the last stream that lasted.
func (r *Reflector[T]) failing() bool { return r.failures > 0 || r.reported }

// recovered clears the failures, because a stream has lasted.
func (r *Reflector[T]) recovered() {
	if !r.failing() {
		return
	}
	r.failures, r.refusals, r.reported = 0, 0, false
	r.health.update(func(h *Health) {
		h.Err, h.Failures, h.NextTry = nil, 0, time.Time{}
	})
}

// noteProgress records in Health when the source last sent something, and the version
// reached. The time is that of the read, because the sink may have blocked since.
func (r *Reflector[T]) noteProgress() {
	s := &r.health
	s.mu.Lock() // not update: every event passes here
	s.h.LastEvent, s.h.Version = r.readAt, r.version
	s.mu.Unlock()
}

// pushPausing is like push, but pauses the watchdog meanwhile.
func (r *Reflector[T]) pushPausing(ctx context.Context, dog *watchdog) error {
	dog.pause()
	defer dog.reset()
	return r.push(ctx)
}

// maxKeptBuffer is the largest capacity of a buffer that is kept for reuse.
const maxKeptBuffer = 1024

// push passes the collected deltas to the sink and empties the buffer. If the sink
// fails, the deltas are lost, so the next Step reads the state again.
func (r *Reflector[T]) push(ctx context.Context) error {
	defer r.dropDeltas()
	if len(r.deltas) == 0 {
		return nil
	}
	if err := r.opts.Sink.Push(ctx, r.deltas); err != nil {
		r.phase = choosing
		return fmt.Errorf("push deltas of %s: %w", r.opts.Source.Describe(), err)
	}
	return nil
}

// dropDeltas empties the buffer of deltas, so that it keeps no object alive.
func (r *Reflector[T]) dropDeltas() {
	clear(r.deltas)
	r.deltas = r.deltas[:0]
	if cap(r.deltas) > maxKeptBuffer {
		r.deltas = nil
	}
}

// mark appends a delta that marks the begin, the end or the failure of a list.
func (r *Reflector[T]) mark(t object.ChangeType, v object.Version) {
	r.deltas = append(r.deltas, object.Delta[T]{Type: t, Item: object.Item[T]{Version: v}, NewEpoch: r.newEpoch})
}

// abort discards the collected deltas and tells the sink that the current list failed.
func (r *Reflector[T]) abort(ctx context.Context) error {
	r.dropDeltas()
	r.mark(object.ReplaceAbort, "")
	return r.push(ctx)
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

var errOlder = errors.New("the list is older than the version already reached")
