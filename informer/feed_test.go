package informer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// thing is an object of these tests.
type thing struct {
	name, app string
	n         int
}

func item(name string, v int, uid string) object.Item[*thing] {
	return object.Item[*thing]{Key: object.Key(name), Version: object.Version(fmt.Sprint(v)), UID: uid, Size: 10,
		Value: &thing{name: name, app: name[:1], n: v}}
}

func put(name string, v int, uid string) source.Change[*thing] {
	return source.Change[*thing]{Type: object.Updated, Item: item(name, v, uid)}
}

func gone(name string, v int, uid string) source.Change[*thing] {
	return source.Change[*thing]{Type: object.Deleted, Item: item(name, v, uid)}
}

func bookmark(v int) source.Change[*thing] {
	return source.Change[*thing]{Type: object.Bookmark, Item: object.Item[*thing]{Version: object.Version(fmt.Sprint(v))}}
}

// stateOf is the result of a list.
type stateOf[T any] struct {
	version int
	items   []object.Item[T]
}

// frameOf is the result of one Read of a watch.
type frameOf[T any] struct {
	changes []source.Change[T]
	err     error
}

// feedOf is a source controlled by a test: each list returns the next state, and all watches read the same frames.
type feedOf[T any] struct {
	states chan stateOf[T]
	frames chan frameOf[T]

	mu      sync.Mutex
	lists   int
	watches []source.WatchOptions
}

// Most tests feed things.
type (
	state = stateOf[*thing]
	frame = frameOf[*thing]
	feed  = feedOf[*thing]
)

func newFeed(states ...state) *feed { return newFeedOf(states...) }

func newFeedOf[T any](states ...stateOf[T]) *feedOf[T] {
	f := &feedOf[T]{states: make(chan stateOf[T], 16), frames: make(chan frameOf[T])}
	for _, s := range states {
		f.states <- s
	}
	return f
}

func (f *feedOf[T]) Describe() source.Description { return source.Description{Resource: "things"} }

func (f *feedOf[T]) List(ctx context.Context, _ source.ListOptions) (source.Lister[T], error) {
	f.mu.Lock()
	f.lists++
	f.mu.Unlock()
	select {
	case s := <-f.states:
		return &feedList[T]{s: s}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *feedOf[T]) Watch(ctx context.Context, o source.WatchOptions) (source.Watcher[T], error) {
	f.mu.Lock()
	f.watches = append(f.watches, o)
	f.mu.Unlock()
	return &feedWatch[T]{f: f, ctx: ctx}, nil
}

// say delivers one frame and returns when it was read.
func (f *feedOf[T]) say(changes ...source.Change[T]) { f.frames <- frameOf[T]{changes: changes} }

// expire ends the watch as a server does that has no history from its version.
func (f *feedOf[T]) expire() {
	f.frames <- frameOf[T]{err: &source.Error{Reason: source.Expired, Err: errors.New("too old")}}
}

type feedList[T any] struct {
	s    stateOf[T]
	read bool
}

func (l *feedList[T]) Read(buf []object.Item[T]) ([]object.Item[T], error) {
	if l.read || len(l.s.items) == 0 {
		return buf, io.EOF
	}
	l.read = true
	return append(buf, l.s.items...), nil
}
func (l *feedList[T]) Version() object.Version { return object.Version(fmt.Sprint(l.s.version)) }
func (l *feedList[T]) Close() error            { return nil }

type feedWatch[T any] struct {
	f   *feedOf[T]
	ctx context.Context
}

func (w *feedWatch[T]) Read(buf []source.Change[T]) ([]source.Change[T], error) {
	select {
	case fr := <-w.f.frames:
		return append(buf, fr.changes...), fr.err
	case <-w.ctx.Done():
		return buf, w.ctx.Err()
	}
}
func (w *feedWatch[T]) Close() error { return nil }

// recorder records the events that a handler receives.
type recorder struct {
	mu  sync.Mutex
	got []string
	on  func(object.Event[*thing])
}

func (r *recorder) Handle(e object.Event[*thing]) {
	line := fmt.Sprintf("%s %s", e.Type, e.Key)
	if e.Old != nil {
		line += fmt.Sprintf(" old=%d", e.Old.n)
	}
	if e.New != nil {
		line += fmt.Sprintf(" new=%d", e.New.n)
	}
	if e.Initial {
		line += " initial"
	}
	if e.Missed {
		line += " missed"
	}
	if e.Epoch > 0 {
		line += fmt.Sprintf(" epoch=%d", e.Epoch)
	}
	r.mu.Lock()
	r.got = append(r.got, line)
	r.mu.Unlock()
	if r.on != nil {
		r.on(e)
	}
}

func (r *recorder) lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.got...)
}

// runningOf is an informer under test.
type runningOf[T any] struct {
	*informer.Informer[T]
	*feedOf[T]
	problems *problems
	stop     func() error
}

type running = runningOf[*thing]

type problems struct {
	mu  sync.Mutex
	all []informer.Problem
}

func (p *problems) add(x informer.Problem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, x)
}

func (p *problems) doing() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, x := range p.all {
		out = append(out, x.Doing)
	}
	return out
}

type options = informer.Options[*thing]

// index sets an index whose function cannot fail.
func index(name string, values func(x *thing) []string) func(*options) {
	return func(o *options) {
		o.Indexes = informer.Indexes[*thing]{name: func(x *thing) ([]string, error) { return values(x), nil }}
	}
}

func make1(t *testing.T, f *feed, opts ...func(*options)) *running {
	t.Helper()
	return makeOf(t, f, opts...)
}

func makeOf[T any](t *testing.T, f *feedOf[T], opts ...func(*informer.Options[T])) *runningOf[T] {
	t.Helper()
	r := &runningOf[T]{feedOf: f, problems: &problems{}}
	o := informer.Options[T]{OnProblem: r.problems.add, Logger: slog.New(slog.DiscardHandler)}
	for _, set := range opts {
		set(&o)
	}
	inf, err := informer.New[T](f, &o)
	if err != nil {
		t.Fatal(err)
	}
	r.Informer = inf
	return r
}

// run starts the informer, waits until it has synced, and stops it at the end.
func (r *runningOf[T]) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	var once sync.Once
	r.stop = func() (err error) {
		once.Do(func() { cancel(); err = <-done })
		return err
	}
	t.Cleanup(func() { r.stop() })
	if err := r.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}
