package informer_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// A transform may read the informer, and add an index for that, without a deadlock: for objects of the first list, of
// a later list, and for changes.
func TestATransformMayCallTheInformer(t *testing.T) {
	byApp := func(x *thing) ([]string, error) { return []string{x.app}, nil }
	calls := map[string]func(r *running, x *thing) error{
		"AddIndexes": func(r *running, x *thing) error {
			return r.AddIndexes(map[string]store.IndexFunc[*thing]{fmt.Sprint("app ", x.name, x.n): byApp})
		},
		"Amend": func(r *running, x *thing) error {
			amend(r, "by hand", x.n)
			return nil
		},
		"Amend of the object": func(r *running, x *thing) error {
			amend(r, x.name, -x.n) // the source replaces it
			return nil
		},
		"Snapshot": func(r *running, _ *thing) error {
			r.Snapshot()
			return nil
		},
		"Subscribe": func(r *running, _ *thing) error {
			sub, err := r.Subscribe(&recorder{}, nil)
			if err == nil {
				sub.Remove()
			}
			return err
		},
		"Health": func(r *running, _ *thing) error {
			r.Health()
			return nil
		},
		"Release": func(r *running, _ *thing) error {
			if r.Release() == nil {
				return fmt.Errorf("an informer that runs was released")
			}
			return nil
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			var called atomic.Int32
			var r *running
			r = make1(t, newFeed(
				state{10, []object.Item[*thing]{item("a", 1, ""), item("b", 2, ""), item("c", 3, "")}},
				state{30, []object.Item[*thing]{item("a", 11, ""), item("b", 22, ""), item("c", 23, ""), item("d", 24, "")}}),
				func(o *options) {
					o.Transform = func(x *thing) (*thing, error) {
						called.Add(1)
						return x, call(r, x)
					}
				})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- r.Run(ctx) }()
			reach := func(what string, v object.Version) {
				t.Helper()
				if err := r.WaitVersion(ctx, v); err != nil {
					t.Fatalf("%s: the transform waits for itself: %v", what, err)
				}
			}
			reach("the first list", "10")
			r.say(put("a", 11, ""), put("b", 12, ""))
			reach("changes", "12")
			r.expire()
			reach("a later list", "30")
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			for key, n := range map[object.Key]int{"a": 11, "b": 22, "c": 23, "d": 24} {
				if x, ok := r.Get(key); !ok || x.n != n {
					t.Errorf("%s is %v, want %d as the last list has it", key, x, n)
				}
			}
			if n := called.Load(); n < 8 {
				t.Errorf("the transform was called %d times, want at least 8", n)
			}
			same(t, "problems", r.problems.doing(), []string{"stream"})
		})
	}
}

// An amendment during a list is stored at once, even while an object of the list is transformed. The list then
// replaces it.
func TestAmendDoesNotWaitForTheTransformOfAList(t *testing.T) {
	hold, inside := make(chan struct{}), make(chan struct{})
	r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, ""), item("b", 2, ""), item("c", 3, "")}}),
		func(o *options) {
			o.Transform = func(x *thing) (*thing, error) {
				if x.name == "b" {
					close(inside)
					<-hold
				}
				return x, nil
			}
		})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	<-inside
	amended := make(chan []string)
	go func() {
		for _, name := range []string{"a", "b", "c", "x"} {
			amend(r, name, 7)
		}
		r.Amend(func(w *store.Writer[*thing]) {
			w.Begin()
			w.Delete("c", "")
			w.Commit()
		})
		amended <- contents(r)
	}()
	select {
	case got := <-amended:
		same(t, "store beside the list", got, []string{"a=7", "b=7", "x=7"})
		close(hold)
	case <-ctx.Done():
		close(hold)
		t.Fatal("what is written waits for a transform")
	}
	if err := r.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	same(t, "store", contents(r), []string{"a=1", "b=2", "c=3"})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
