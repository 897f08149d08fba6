package informer_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
)

// A callback that ends the writer's goroutine stops the informer instead of stalling it: Run says why, the store stays
// readable at the last version that it has completely, and a new Run begins anew.
func TestP12_ACallbackThatEndsTheWritersGoroutineStopsTheInformer(t *testing.T) {
	exitAt := func(x *thing, version int) {
		if x.n == version {
			runtime.Goexit()
		}
	}
	transform := func(version int) func(*options) {
		return func(o *options) {
			o.Transform = func(x *thing) (*thing, error) { exitAt(x, version); return x, nil }
		}
	}
	indexed := func(version int) func(*options) {
		return index("app", func(x *thing) []string { exitAt(x, version); return []string{x.app} })
	}
	report := func(o *options) {
		o.Transform = func(x *thing) (*thing, error) {
			if x.n == 2 {
				panic("so that it is reported")
			}
			return x, nil
		}
		o.OnProblem = func(informer.Problem) { runtime.Goexit() }
	}
	for name, c := range map[string]struct {
		option func(*options)
		want   string // what the store has
	}{
		"transform of a change":      {transform(2), "b=1"},
		"index function of a change": {indexed(2), "b=1"},
		"OnProblem":                  {report, "b=1"},
		"transform of a list":        {transform(1), ""},
		"index function of a list":   {indexed(1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				feed := newFeed(state{1, []object.Item[*thing]{item("b", 1, "u")}}, state{9, nil})
				r := make1(t, feed, c.option)
				ended := make(chan error, 1)
				go func() { ended <- r.Run(context.Background()) }()
				synctest.Wait()
				if c.want != "" {
					r.say(put("a", 2, "u"))
				}
				err := <-ended
				if err == nil || !strings.Contains(err.Error(), "runtime.Goexit") {
					t.Fatalf("Run has returned %v", err)
				}
				same(t, "store", contents(r), strings.Fields(c.want))
				if v := string(r.Snapshot().Version()); (v == "1") != (c.want != "") {
					t.Errorf("the store is at version %q", v)
				}
				r.run(t)
				synctest.Wait()
				if v := r.Snapshot().Version(); v != "9" || len(contents(r)) > 0 {
					t.Errorf("the next Run has %v at version %q", contents(r), v)
				}
			})
		})
	}
}
