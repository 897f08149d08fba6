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
	return source.Change[*thing]{Type: source.Put, Item: item(name, v, uid)}
}

func gone(name string, v int, uid string) source.Change[*thing] {
	return source.Change[*thing]{Type: source.Gone, Item: item(name, v, uid)}
}

func bookmark(v int) source.Change[*thing] {
	return source.Change[*thing]{Type: source.Bookmark, Item: object.Item[*thing]{Version: object.Version(fmt.Sprint(v))}}
}

// state is what a list gives.
type state struct {
	version int
	items   []object.Item[*thing]
}

// frame is what one Read of a watch gives.
type frame struct {
	changes []source.Change[*thing]
	err     error
}

// feed is a source that says what a test tells it to: each list takes the next
// state, and all watches read the same frames.
type feed struct {
	states chan state
	frames chan frame

	mu      sync.Mutex
	lists   int
	watches []source.WatchOptions
}

func newFeed(states ...state) *feed {
	f := &feed{states: make(chan state, 16), frames: make(chan frame)}
	for _, s := range states {
		f.states <- s
	}
	return f
}

func (f *feed) Describe() source.Description { return source.Description{Resource: "things"} }

func (f *feed) List(ctx context.Context, _ source.ListOptions) (source.Lister[*thing], error) {
	f.mu.Lock()
	f.lists++
	f.mu.Unlock()
	select {
	case s := <-f.states:
		return &feedList{s: s}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *feed) Watch(ctx context.Context, o source.WatchOptions) (source.Watcher[*thing], error) {
	f.mu.Lock()
	f.watches = append(f.watches, o)
	f.mu.Unlock()
	return &feedWatch{f: f, ctx: ctx}, nil
}

// say hands over one frame and returns when it was taken.
func (f *feed) say(changes ...source.Change[*thing]) { f.frames <- frame{changes: changes} }

// expire ends the watch as a server does that has forgotten its version.
func (f *feed) expire() {
	f.frames <- frame{err: &source.Error{Reason: source.Expired, Err: errors.New("too old")}}
}

type feedList struct {
	s    state
	read bool
}

func (l *feedList) Read(buf []object.Item[*thing]) ([]object.Item[*thing], error) {
	if l.read || len(l.s.items) == 0 {
		return buf, io.EOF
	}
	l.read = true
	return append(buf, l.s.items...), nil
}
func (l *feedList) Version() object.Version { return object.Version(fmt.Sprint(l.s.version)) }
func (l *feedList) Close() error            { return nil }

type feedWatch struct {
	f   *feed
	ctx context.Context
}

func (w *feedWatch) Read(buf []source.Change[*thing]) ([]source.Change[*thing], error) {
	select {
	case fr := <-w.f.frames:
		return append(buf, fr.changes...), fr.err
	case <-w.ctx.Done():
		return buf, w.ctx.Err()
	}
}
func (w *feedWatch) Close() error { return nil }

// recorder writes down what a handler is told.
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

// running is an informer under test.
type running struct {
	*informer.Informer[*thing]
	*feed
	problems *problems
	stop     func() error
}

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

func make1(t *testing.T, f *feed, opts ...informer.Option) *running {
	t.Helper()
	r := &running{feed: f, problems: &problems{}}
	opts = append([]informer.Option{informer.OnProblem(r.problems.add), informer.Logger(slog.New(slog.DiscardHandler))}, opts...)
	inf, err := informer.New[*thing](f, opts...)
	if err != nil {
		t.Fatal(err)
	}
	r.Informer = inf
	return r
}

// run starts the informer, waits until it has synced, and stops it at the end.
func (r *running) run(t *testing.T) {
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
