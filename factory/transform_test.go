package factory_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mirador-k8s/mirador/factory"
	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/reflector"
)

// A transform may list the objects of a namespace. The first such list adds an index, which waits for the write in
// progress. That must not be the write that waits for the transform.
func TestTransformMayListTheObjectsOfANamespace(t *testing.T) {
	s := informertest.NewServer()
	cfg, closePipe := informertest.Pipe(s)
	defer closePipe()
	if _, err := s.Create(pod("a", "one")); err != nil {
		t.Fatal(err)
	}
	var h *factory.Handle[*corev1.Pod]
	var found atomic.Int32
	transform := func(p *corev1.Pod) (*corev1.Pod, error) {
		others, err := h.Lister().InNamespace("a").List(labels.Everything())
		if err != nil && !errors.Is(err, factory.ErrNotSynced) {
			return nil, err
		}
		found.Store(int32(len(others)))
		return p, nil
	}
	f, err := factory.New(cfg, &factory.Options{Logger: quiet, Backoff: reflector.Backoff{First: time.Millisecond},
		Types: []factory.TypeOption{factory.ForType(factory.TypeOptions[*corev1.Pod]{Transform: transform})}})
	if err != nil {
		t.Fatal(err)
	}
	h = open[*factory.Handle[*corev1.Pod]](t)(factory.Of[*corev1.Pod](f, nil))
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait(t, f.WaitForSync)
	// The open watch does not send the new object, and new watches are answered 410, so a list delivers the object.
	s.Stall()
	s.Inject(informertest.Fault{Resource: "pods", Verbs: []string{"watch"}, Code: 410, Match: func(r *http.Request) bool {
		return r.URL.Query().Get("sendInitialEvents") == ""
	}})
	if _, err := s.Create(pod("a", "two")); err != nil {
		t.Fatal(err)
	}
	s.CutWatches()
	for s.OpenWatches() > 0 {
		runtime.Gosched()
	}
	s.Resume()
	arrived := func(ctx context.Context) error {
		for {
			if _, err := h.Lister().Get("a", "two"); err == nil {
				return nil
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("the list is never stored, because the transform waits for itself: %w", ctx.Err())
			case <-time.After(time.Millisecond):
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := arrived(ctx); err != nil {
		t.Fatal(err)
	}
	if n := found.Load(); n != 1 {
		t.Errorf("the transform found %d objects, want the one that was stored before the list", n)
	}
	wait(t, f.Stop)
}
