package cache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/informer"
)

// TestNoDeadlockWhileTheWriterReportsProblems has index functions and transforms fail in open batches. At the same
// time it calls all methods that wait for the writer or take a lock, from several goroutines and from OnProblem.
func TestNoDeadlockWhileTheWriterReportsProblems(t *testing.T) {
	for name, calls := range map[string]bool{"OnProblem only counts": false, "OnProblem calls the informer": true} {
		t.Run(name, func(t *testing.T) { reportDuringCalls(t, calls) })
	}
}

func reportDuringCalls(t *testing.T, onProblemCalls bool) {
	const rounds = 8
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logr.Discard()))
	defer cancel()
	f := newFake("10", pod("a", "1"), pod("b", "2"))
	f.watch = func(metav1.ListOptions) (watch.Interface, error) { return endless(ctx), nil }
	var i cache.SharedIndexInformer
	callAll := func() {
		reg, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{})
		if err != nil {
			return // the informer has stopped
		}
		i.GetIndexer().List()
		i.GetIndexer().GetIndexers()
		i.IsStopped()
		_ = i.AddIndexers(cache.Indexers{"late": byName}) // from the second time on the name is taken
		if err := errors.Join(i.GetIndexer().Update(pod("by-hand", "1")), i.RemoveEventHandler(reg)); err != nil {
			t.Error(err)
		}
	}
	var reports, indexed, transformed atomic.Int64
	sometimes := func(n *atomic.Int64) error {
		if n.Add(1)%3 == 0 {
			return errors.New("fails on purpose")
		}
		return nil
	}
	i = cache.With(cache.Options{OnProblem: func(informer.Problem) {
		if n := reports.Add(1); onProblemCalls && n%16 == 1 {
			callAll()
		}
	}}).NewSharedIndexInformer(f, &corev1.Pod{}, 0, cache.Indexers{"failing": func(any) ([]string, error) {
		return []string{"x"}, sometimes(&indexed)
	}})
	if err := i.SetTransform(func(obj any) (any, error) { return obj, sometimes(&transformed) }); err != nil {
		t.Fatal(err)
	}
	var running, callers sync.WaitGroup
	running.Go(func() { i.RunWithContext(ctx) })
	for range 3 {
		callers.Go(func() {
			for range rounds {
				callAll()
				// Let some batches pass without a reader, so that the next reader may have to wait for an open one.
				for seen := indexed.Load(); indexed.Load() < seen+20 && ctx.Err() == nil; {
					runtime.Gosched()
				}
			}
		})
	}
	within(t, "the callers", callers.Wait)
	cancel()
	within(t, "RunWithContext", running.Wait)
	if !i.IsStopped() {
		t.Error("IsStopped is false after the stop")
	}
	if reports.Load() == 0 {
		t.Error("no problem was reported, so the test proves nothing")
	}
}

// endless returns a watch that sends changes until ctx ends.
func endless(ctx context.Context) watch.Interface {
	events := make(chan watch.Event, 100)
	go func() {
		for n := 0; ; n++ {
			select {
			case events <- watch.Event{Type: watch.Modified, Object: pod(fmt.Sprint("p", n%10), fmt.Sprint(100+n))}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return watch.NewProxyWatcher(events)
}

// within fails the test, with the stacks of all goroutines, if f has not returned after a while.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		stacks := make([]byte, 1<<20)
		t.Fatalf("%s did not return:\n%s", what, stacks[:runtime.Stack(stacks, true)])
	}
}
