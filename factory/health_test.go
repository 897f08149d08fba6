package factory_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/factory"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/informertest"
)

// AddIndex waits for the writer, which reports problems, and Of and Release wait for AddIndex. OnProblem calls Health,
// which must wait for neither.
func TestHealthDoesNotWaitForAddIndexAndStart(t *testing.T) {
	s := informertest.NewServer()
	cfg, closePipe := informertest.Pipe(s)
	defer closePipe()
	var f *factory.Factory
	var reported atomic.Int32
	f, err := factory.New(cfg, &factory.Options{Logger: quiet, OnProblem: func(informer.Problem) {
		f.Health()
		reported.Add(1)
	}})
	if err != nil {
		t.Fatal(err)
	}
	h := open[*factory.Handle[*corev1.Pod]](t)(factory.Of[*corev1.Pod](f, nil))
	fails := func(*corev1.Pod) ([]string, error) { return nil, errors.New("no") }
	if err := h.AddIndex("fails", fails); err != nil {
		t.Fatal(err)
	}
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait(t, f.WaitForSync)
	const rounds = 100
	var all sync.WaitGroup
	all.Go(func() {
		for n := range rounds {
			if _, err := s.Create(pod("a", fmt.Sprintf("pod-%d", n))); err != nil {
				t.Error(err)
			}
		}
	})
	all.Go(func() {
		for n := 0; reported.Load() < rounds; n++ {
			if runtime.Gosched(); n >= rounds/4 {
				continue
			}
			if err := h.AddIndex(fmt.Sprintf("index-%d", n), fails); err != nil {
				t.Error(err)
			}
		}
	})
	all.Go(func() {
		for reported.Load() < rounds {
			again, err := factory.Of[*corev1.Pod](f, nil)
			if err != nil {
				t.Error(err)
				return
			}
			again.Release()
		}
	})
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("deadlock: no progress for a minute")
	}
	wait(t, f.Stop)
}
