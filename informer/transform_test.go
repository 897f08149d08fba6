package informer_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/store"
)

// A transform may be slow: only later changes wait for it.
func TestP8_ASnapshotDoesNotWaitForATransform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, "")}}),
			func(o *options) {
				o.Transform = func(x *thing) (*thing, error) {
					if x.n == 12 {
						<-hold
					}
					return x, nil
				}
			})
		r.run(t)
		r.say(put("a", 11, ""), put("b", 12, "")) // the second waits in one batch with the first
		synctest.Wait()
		asked := time.Now()
		same(t, "store meanwhile", contents(r), []string{"a=1"})
		if err := r.AddIndexes(map[string]store.IndexFunc[*thing]{"app": func(x *thing) ([]string, error) {
			return []string{x.app}, nil
		}}); err != nil {
			t.Error(err)
		}
		rec := &recorder{}
		<-subscribe(t, r, rec, nil).Synced()
		if took := time.Since(asked); took > 0 {
			t.Errorf("a snapshot, an index and a handler waited for %s", took)
		}
		close(hold)
		synctest.Wait()
		same(t, "store", contents(r), []string{"a=11", "b=12"})
		same(t, "events", rec.lines(), []string{"Added a new=1 initial", "Updated a old=1 new=11", "Added b new=12"})
	})
}

func TestP13_AVersionTwiceInOneBatchIsTransformedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []int
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, "u1")}}),
			func(o *options) {
				o.Transform = func(x *thing) (*thing, error) {
					calls = append(calls, x.n)
					return x, nil
				}
			})
		rec := &recorder{}
		subscribe(t, r, rec, nil)
		r.run(t)
		r.say(put("a", 11, "u1"), put("a", 11, "u1"), put("a", 12, "u1"), gone("a", 13, "u1"), put("a", 14, "u2"),
			gone("b", 15, "u3"))
		synctest.Wait()
		if want := []int{1, 11, 12, 13, 14}; !slices.Equal(calls, want) {
			t.Errorf("transformed were the versions %v, want %v", calls, want)
		}
		same(t, "events", rec.lines(), []string{"Added a new=1 initial", "Updated a old=1 new=11", "Updated a old=11 new=12",
			"Deleted a old=13", "Added a new=14"})
		if h := r.Health(); h.Stale != 1 {
			t.Errorf("stale = %d, want 1", h.Stale)
		}
	})
}

// WaitVersion returns for the version of a change that cannot be stored.
func TestWaitVersionDoesNotWaitForAChangeThatCannotBeStored(t *testing.T) {
	refuse := func(o *options) {
		o.Transform = func(x *thing) (*thing, error) {
			if x.n == 11 {
				return nil, errors.New("cannot")
			}
			return x, nil
		}
	}
	bad := put("a", 11, "")
	bad.Item.Decode = func([]byte) (*thing, error) { return nil, errors.New("cannot be read") }
	lost := source.Change[*thing]{Type: object.Undecodable, Item: object.Item[*thing]{Key: "a", Version: "11"},
		Err: errors.New("garbage")}
	for _, c := range []struct {
		name   string
		change source.Change[*thing]
		opts   []func(*options)
	}{
		{"a transform fails", put("a", 11, ""), []func(*options){refuse}},
		{"it does not decode", bad, nil},
		{"the event cannot be read", lost, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, "")}}), c.opts...)
				r.run(t)
				r.say(c.change)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := r.WaitVersion(ctx, "11"); err != nil {
					t.Error(err)
				}
				same(t, "store", contents(r), []string{"a=1"})
				if len(r.problems.doing()) != 1 {
					t.Errorf("problems: %v", r.problems.doing())
				}
			})
		})
	}
}
