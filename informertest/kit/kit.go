package kit

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/object"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

const namespace = "default"

// kit is the environment of a case: a server, a subject and the checks. Its methods must be called from the case's own
// goroutine, except by handlers.
type kit struct {
	server     *informertest.Server
	newSubject func(Setup) (Subject, error)
	setup      Setup
	closePipe  func()
	runs       []*run
	// freed is closed at the end, to unblock handlers.
	freed chan struct{}
	// writes numbers the updates, so that each one is a change.
	writes int

	mu       sync.Mutex
	failures []string
	problems []error
}

// run is a subject that was started.
type run struct {
	Subject
	cancel context.CancelFunc
	done   chan struct{}
}

func newKit(newSubject func(Setup) (Subject, error)) *kit {
	k := &kit{server: informertest.NewServer(), newSubject: newSubject, freed: make(chan struct{})}
	k.setup.Config, k.closePipe = informertest.Pipe(k.server)
	k.setup.OnProblem = func(err error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.problems = append(k.problems, err)
	}
	return k
}

func (k *kit) errorf(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.failures) < 5 {
		k.failures = append(k.failures, fmt.Sprintf(format, args...))
	}
}

func (k *kit) fatalf(format string, args ...any) {
	k.errorf(format, args...)
	panic(errGaveUp)
}

func (k *kit) problemCount() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.problems)
}

// tearDown ends everything that a case started, in whatever state it is.
func (k *kit) tearDown() {
	close(k.freed)
	k.server.Resume()
	for _, r := range k.runs {
		r.cancel()
		<-r.done
	}
	k.closePipe()
}

// subject makes a subject.
func (k *kit) subject() Subject {
	s, err := k.newSubject(k.setup)
	if err != nil {
		k.fatalf("making the subject: %v", err)
	}
	return s
}

// handle adds a handler to a subject.
func (k *kit) handle(s Subject, name string, f func(informertest.Event)) (synced func() bool) {
	synced, err := s.AddHandler(name, f)
	if err != nil {
		k.fatalf("adding handler %q: %v", name, err)
	}
	return synced
}

// record adds a handler that records its events.
func (k *kit) record(s Subject, name string) *recorder {
	r := &recorder{}
	k.handle(s, name, r.handle)
	return r
}

// start runs a subject until the case ends.
func (k *kit) start(s Subject) *run {
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{Subject: s, cancel: cancel, done: make(chan struct{})}
	k.runs = append(k.runs, r)
	go func() {
		defer close(r.done)
		if err := s.Run(ctx); err != nil && ctx.Err() == nil {
			k.setup.OnProblem(err)
		}
	}()
	return r
}

// startSynced runs a subject and waits until it has caught up.
func (k *kit) startSynced(s Subject) *run {
	r := k.start(s)
	k.eventually(5*time.Minute, "the subject has synced", s.Synced)
	k.converges(s, 5*time.Minute)
	return r
}

// eventually waits in fake time until holds returns true.
func (k *kit) eventually(within time.Duration, what string, holds func() bool) {
	end := time.Now().Add(within)
	for {
		synctest.Wait()
		if holds() {
			return
		}
		if !time.Now().Before(end) {
			k.fatalf("after %v it does not hold that %s", within, what)
		}
		time.Sleep(within / 100)
	}
}

// converges waits until the subject's store equals the server.
func (k *kit) converges(s Subject, within time.Duration) {
	k.eventually(within, "the store equals the server", func() bool {
		return maps.Equal(s.Versions(), k.server.Versions(pods))
	})
}

// pod returns a pod that differs from every other one made here.
func (k *kit) pod(name string) *corev1.Pod {
	k.writes++
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
			Labels: map[string]string{"write": strconv.Itoa(k.writes)}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image"}}},
	}
}

func keyOf(name string) object.Key { return object.NewKey(namespace, name) }

func (k *kit) create(names ...string) {
	for _, n := range names {
		if _, err := k.server.Create(k.pod(n)); err != nil {
			k.fatalf("%v", err)
		}
	}
}

func (k *kit) createMany(n int) {
	for i := range n {
		k.create(fmt.Sprintf("pod-%04d", i))
	}
}

func (k *kit) update(name string) object.Version {
	v, err := k.server.Update(k.pod(name))
	if err != nil {
		k.fatalf("%v", err)
	}
	return v
}

func (k *kit) delete(name string) {
	if _, err := k.server.Delete(k.pod(name)); err != nil {
		k.fatalf("%v", err)
	}
}

func (k *kit) compact() {
	if err := k.server.Compact(k.server.Version()); err != nil {
		k.fatalf("%v", err)
	}
}

// unseen calls do while the subject is disconnected, and compacts the history: the subject must relist.
func (k *kit) unseen(do func()) {
	back := k.server.Inject(informertest.Fault{Code: 503})
	k.server.CutWatches()
	synctest.Wait()
	do()
	// One more write, so that every version the subject knows is before the compaction.
	k.create(fmt.Sprintf("after-gap-%d", k.writes))
	k.compact()
	back()
}

// reopen makes the subject reopen its watch, with a fault on it, and waits until it has.
func (k *kit) reopen(fault informertest.Fault) {
	// Some informers relist after a watch that ends right after its start; this must not happen here.
	time.Sleep(time.Minute)
	k.server.Inject(fault)
	k.server.CutWatches()
	synctest.Wait()
	k.eventually(5*time.Minute, "the watch is open again", func() bool { return k.server.OpenWatches() == 1 })
}

// recorder records the events of a handler.
type recorder struct {
	mu     sync.Mutex
	events []informertest.Event
}

func (r *recorder) handle(e informertest.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) all() []informertest.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]informertest.Event(nil), r.events...)
}

// of returns the events of one key.
func (r *recorder) of(key object.Key) []informertest.Event {
	var out []informertest.Event
	for _, e := range r.all() {
		if e.Key == key {
			out = append(out, e)
		}
	}
	return out
}

func (r *recorder) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events)
}

// versionIn returns the version of a pod, or "" if it is nil.
func versionIn(p *corev1.Pod) object.Version {
	if p == nil {
		return ""
	}
	return object.Version(p.ResourceVersion)
}
