package cache_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/compat/cache"
)

func pod(name, rv string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: name, ResourceVersion: rv}}
}

// fake is a ListerWatcher with answers set by the test. It does not state its WatchList
// semantics.
type fake struct {
	mu    sync.Mutex
	asked []string // the requests, in order
	list  func(metav1.ListOptions) (runtime.Object, error)
	watch func(metav1.ListOptions) (watch.Interface, error)
	open  *watch.FakeWatcher // the last watch of newWatch
}

// newFake returns a fake that lists pods at a version.
func newFake(rv string, pods ...*corev1.Pod) *fake {
	f := &fake{}
	f.set(rv, pods...)
	f.watch = func(metav1.ListOptions) (watch.Interface, error) { return f.newWatch(), nil }
	return f
}

func (f *fake) set(rv string, pods ...*corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = func(metav1.ListOptions) (runtime.Object, error) {
		l := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: rv}}
		for _, p := range pods {
			l.Items = append(l.Items, *p)
		}
		return l, nil
	}
}

func (f *fake) newWatch() *watch.FakeWatcher {
	w := watch.NewFakeWithChanSize(100, false)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = w
	return w
}

func (f *fake) current() *watch.FakeWatcher {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open
}

func (f *fake) List(o metav1.ListOptions) (runtime.Object, error) {
	f.mu.Lock()
	f.asked = append(f.asked, fmt.Sprintf("list rv=%q limit=%d continue=%q", o.ResourceVersion, o.Limit, o.Continue))
	answer := f.list
	f.mu.Unlock()
	return answer(o)
}

func (f *fake) Watch(o metav1.ListOptions) (watch.Interface, error) {
	f.mu.Lock()
	request := fmt.Sprintf("watch rv=%q", o.ResourceVersion)
	if o.SendInitialEvents != nil {
		request = fmt.Sprintf("watchlist rv=%q match=%s bookmarks=%v", o.ResourceVersion, o.ResourceVersionMatch,
			o.AllowWatchBookmarks)
	}
	f.asked = append(f.asked, request)
	answer := f.watch
	f.mu.Unlock()
	return answer(o)
}

func (f *fake) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// streaming is a fake that supports a watch with an initial state.
type streaming struct{ *fake }

func (streaming) IsWatchListSemanticsUnSupported() bool { return false }

// record is a handler that records its events as text.
type record struct {
	mu       sync.Mutex
	received []string
}

func (r *record) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received = append(r.received, fmt.Sprintf(format, args...))
}

func (r *record) OnAdd(obj any, initial bool) {
	p := obj.(*corev1.Pod)
	r.add("add %s@%s initial=%v", p.Name, p.ResourceVersion, initial)
}

func (r *record) OnUpdate(old, now any) {
	o, n := old.(*corev1.Pod), now.(*corev1.Pod)
	r.add("update %s@%s->%s", n.Name, o.ResourceVersion, n.ResourceVersion)
}

func (r *record) OnDelete(obj any) {
	if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		r.add("missed delete %s@%s", d.Key, d.Obj.(*corev1.Pod).ResourceVersion)
		return
	}
	p := obj.(*corev1.Pod)
	r.add("delete %s@%s", p.Name, p.ResourceVersion)
}

// take returns the events since the last take.
func (r *record) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	received := r.received
	r.received = nil
	return received
}

func assertStrings(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// start runs an informer in the test's bubble until the test ends. It returns when all
// goroutines of the bubble are blocked.
func start(t *testing.T, i cache.SharedInformer) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		i.RunWithContext(ctx)
	}()
	synctest.Wait()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return stop
}
