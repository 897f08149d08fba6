package reflector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// phase is where the state machine stands. It is finer than State, which is
// what the outside needs to know.
type phase uint8

const (
	choosing   phase = iota // how to get the state
	opening                 // a list
	reading                 // a list
	initial                 // reading the initial state of a watch
	connecting              // opening a watch from a version
	following               // reading a watch
)

// Reflector mirrors one source into one sink.
type Reflector[T any] struct {
	opts  Options[T]
	board board

	phase   phase
	fresh   bool           // the next list must be the newest there is
	setBack bool           // history was set back, and its state is not read yet
	trouble bool           // something was reported since a stream last lived
	whole   bool           // the next list is to come in one piece: a page of the last one expired
	refused int            // how often in a row a watch was denied or not supported
	version object.Version // how far history has been read; "" before the first state
	failed  int            // failures in a row, until a stream lives
	lost    int            // how often in a row the place in history was lost soon after
	stateAt time.Time      // when the last state was complete
	readAt  time.Time      // when the source was last read from

	// The source did not keep what it promised about initial state: it is listed until
	// initialAt, and initialPause is how long that was the last time.
	initialAt    time.Time
	initialPause time.Duration

	list  *listing[T]
	watch *watching[T]

	items   []object.Item[T]
	changes []source.Change[T]
	deltas  []object.Delta[T]
	beat    heartbeat
}

// New makes a reflector; Run or Step starts it.
func New[T any](opts Options[T]) (*Reflector[T], error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	r := &Reflector[T]{opts: opts, version: opts.StartAt}
	r.board.h = Health{Since: time.Now(), Version: opts.StartAt}
	switch {
	case opts.Unsure && !opts.TrustOrder:
		r.fresh, r.setBack = true, true
	case opts.StartAt != "":
		r.phase = connecting
	}
	return r, nil
}

// Health tells how the reflector is doing. It may be called from anywhere.
func (r *Reflector[T]) Health() Health { return r.board.read() }

// Run mirrors until ctx ends or the sink takes no more. It returns nil when ctx
// ended and the sink's error otherwise, and may be called again to go on from
// where it was.
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

// Step does the next thing there is to do and returns how long to wait before
// the next step. It blocks only in the source and the sink. Its error is the
// sink's, or that ctx has ended; what the source does wrong is not an error here.
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

// Close gives up what is open and marks the reflector stopped. The position is
// kept: a later Step goes on from there, with a new list if one was half read.
func (r *Reflector[T]) Close() {
	r.closeStreams()
	switch r.phase {
	case reading, initial, opening:
		r.phase = choosing
	case following:
		r.phase = connecting
	}
	r.board.enter(Stopped)
}

// Relist lets the next Step read the state again, not older than what was read
// before, for callers that step by themselves. A source that did not keep its
// promise of an initial state gets another chance.
func (r *Reflector[T]) Relist() {
	r.closeStreams()
	r.phase, r.initialAt, r.initialPause = choosing, time.Time{}, 0
}

func (r *Reflector[T]) closeStreams() {
	if r.list != nil {
		r.list.close()
		r.list = nil
	}
	if r.watch != nil {
		r.watch.close()
		r.watch = nil
		r.beat.over(time.Now())
	}
}

// choose picks the way to get the state.
func (r *Reflector[T]) choose(ctx context.Context) (time.Duration, error) {
	r.closeStreams()
	r.board.enter(Listing)
	if r.opts.Source.Describe().InitialState && !time.Now().Before(r.initialAt) {
		return r.openInitial(ctx)
	}
	r.phase = opening
	return 0, nil
}

// retry notes a failure, tells of it, and says how long to wait. What is open is
// closed; the caller has set the phase to go on with.
func (r *Reflector[T]) retry(ctx context.Context, doing string, err error) (time.Duration, error) {
	r.closeStreams()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	r.failed++
	reason := source.ReasonOf(err)
	wait := max(r.opts.Backoff.after(r.failed), r.opts.Backoff.stretch(source.RetryAfter(err)))
	state := Retrying
	if r.phase == opening && (doing == "watch" || doing == "stream") {
		state = Polling
	}
	if reason == source.NotServed {
		state = NotServed
		r.phase = choosing
		if r.failed > 3 { // the first tries are quick: a server that starts may not know all it serves yet
			wait = max(wait, r.opts.Backoff.stretch(r.opts.Backoff.Rare))
		}
	}
	r.report(doing, "", err, wait)
	r.board.enter(state)
	r.board.update(func(h *Health) {
		h.Failures, h.NextTry = r.failed, time.Now().Add(wait)
		h.Retries++
	})
	return wait, nil
}

// report makes a failure known: in the health, in the counts, to the caller.
func (r *Reflector[T]) report(doing string, key object.Key, err error, wait time.Duration) {
	desc := r.opts.Source.Describe()
	err = fmt.Errorf("%s of %s: %w", doing, desc, err)
	r.trouble = true
	r.board.update(func(h *Health) {
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

// troubled reports whether something went wrong since a stream last lived.
func (r *Reflector[T]) troubled() bool { return r.failed > 0 || r.trouble }

// alive notes that the source keeps up a stream: what failed before is over.
func (r *Reflector[T]) alive() {
	if !r.troubled() {
		return
	}
	r.failed, r.refused, r.trouble = 0, 0, false
	r.board.update(func(h *Health) {
		h.Err, h.Failures, h.NextTry = nil, 0, time.Time{}
	})
}

// heard notes that the source said something when it was last read from, and how far
// that brought us. The sink may have taken its time since.
func (r *Reflector[T]) heard() {
	b := &r.board
	b.mu.Lock() // and not update: this is on the way of every event
	b.h.LastWord, b.h.Version = r.readAt, r.version
	b.mu.Unlock()
}

// pushResting is push with a watchdog held meanwhile.
func (r *Reflector[T]) pushResting(ctx context.Context, dog *watchdog) error {
	dog.rest()
	defer dog.heard()
	return r.push(ctx)
}

// keptBuffer is how many items a buffer may have room for to be kept for the next time.
const keptBuffer = 1024

// push hands over the deltas collected and forgets them. What the sink did not
// take is lost, so a later Step begins with a new state.
func (r *Reflector[T]) push(ctx context.Context) error {
	defer r.dropDeltas()
	if len(r.deltas) == 0 {
		return nil
	}
	if err := r.opts.Sink.Push(ctx, r.deltas); err != nil {
		r.phase = choosing
		return fmt.Errorf("handing on %s: %w", r.opts.Source.Describe(), err)
	}
	return nil
}

// dropDeltas empties the buffer of deltas: the sink has its own copy, and the buffer must keep no object alive.
func (r *Reflector[T]) dropDeltas() {
	clear(r.deltas)
	r.deltas = r.deltas[:0]
	if cap(r.deltas) > keptBuffer {
		r.deltas = nil
	}
}

func (r *Reflector[T]) mark(t object.ChangeType, v object.Version) {
	r.deltas = append(r.deltas, object.Delta[T]{Type: t, Item: object.Item[T]{Version: v}, NewEpoch: r.setBack})
}

// abort tells the sink that the list under way came to nothing.
func (r *Reflector[T]) abort(ctx context.Context) error {
	r.deltas = r.deltas[:0]
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

var errOlder = errors.New("the list is older than what was already seen")
