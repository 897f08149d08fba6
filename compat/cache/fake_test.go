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

// fake is a ListerWatcher whose answers the test sets. It says nothing about
// WatchList.
type fake struct {
	mu    sync.Mutex
	asked []string // what was asked, in order
	list  func(metav1.ListOptions) (runtime.Object, error)
	watch func(metav1.ListOptions) (watch.Interface, error)
	open  *watch.FakeWatcher // the last watch that was opened by default
}

// holding is a fake that lists pods at a version.
func holding(rv string, pods ...*corev1.Pod) *fake {
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
	said := fmt.Sprintf("watch rv=%q", o.ResourceVersion)
	if o.SendInitialEvents != nil {
		said = fmt.Sprintf("watchlist rv=%q match=%s bookmarks=%v", o.ResourceVersion, o.ResourceVersionMatch,
			o.AllowWatchBookmarks)
	}
	f.asked = append(f.asked, said)
	answer := f.watch
	f.mu.Unlock()
	return answer(o)
}

func (f *fake) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// streaming is a fake that says it can give its state by a watch.
type streaming struct{ *fake }

func (streaming) IsWatchListSemanticsUnSupported() bool { return false }

// record is a handler that writes down what it is told.
type record struct {
	mu   sync.Mutex
	told []string
}

func (r *record) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, fmt.Sprintf(format, args...))
}

func (r *record) OnAdd(obj any, initial bool) {
	p := obj.(*corev1.Pod)
	r.say("add %s@%s initial=%v", p.Name, p.ResourceVersion, initial)
}

func (r *record) OnUpdate(old, now any) {
	o, n := old.(*corev1.Pod), now.(*corev1.Pod)
	r.say("update %s@%s->%s", n.Name, o.ResourceVersion, n.ResourceVersion)
}

func (r *record) OnDelete(obj any) {
	if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		r.say("missed delete %s@%s", d.Key, d.Obj.(*corev1.Pod).ResourceVersion)
		return
	}
	p := obj.(*corev1.Pod)
	r.say("delete %s@%s", p.Name, p.ResourceVersion)
}

// take gives what was told since the last take.
func (r *record) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := r.told
	r.told = nil
	return told
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// started runs an informer in the test's bubble until the test ends, and returns
// when all has come to rest.
func started(t *testing.T, i cache.SharedInformer) (stop func()) {
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
