package informer_test

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
)

func failingFrom(n int) func(*options) {
	return func(o *options) {
		o.Indexes = informer.Indexes[*thing]{"fails": func(x *thing) ([]string, error) {
			if x.n >= n {
				return nil, errors.New("no")
			}
			return []string{x.app}, nil
		}}
	}
}

// Problems of a batch are reported when the batch is in the store, and OnProblem may call the informer.
func TestP12_OnProblemMayCallTheInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *running
		var seen []object.Version
		ask := func(o *options) {
			o.OnProblem = func(p informer.Problem) {
				if err := r.AddIndexes(informer.Indexes[*thing]{"added by " + string(p.Key): func(x *thing) ([]string, error) {
					return []string{x.app}, nil
				}}); err != nil {
					t.Error(err)
				}
				seen = append(seen, r.Snapshot().Version())
				r.Health()
			}
		}
		r = make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, "")}}), failingFrom(11), ask)
		r.run(t)
		r.say(put("b", 11, ""))
		synctest.Wait()
		r.say(put("c", 12, ""), put("d", 13, ""), put("e", 14, ""))
		synctest.Wait()
		if len(seen) != 4 || seen[0] != "11" || seen[1] != "14" || seen[3] != "14" {
			t.Errorf("the snapshots in OnProblem were of the versions %v", seen)
		}
	})
}

// A panic of OnProblem or of the logger ends neither the reader's goroutine nor a handler's.
func TestP12_APanicInOnProblemIsRecovered(t *testing.T) {
	for _, c := range []struct {
		name string
		opt  func(*options)
	}{
		{"OnProblem", func(o *options) { o.OnProblem = func(informer.Problem) { panic("no") } }},
		{"the logger", func(o *options) { o.Logger = slog.New(panickingLog{}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, "")}},
					state{30, []object.Item[*thing]{item("a", 20, "")}}),
					failingFrom(11), c.opt)
				panics := &recorder{on: func(object.Event[*thing]) { panic("a handler") }}
				subscribe(t, r, panics, nil)
				r.run(t)
				r.say(put("b", 11, ""))
				r.say(put("c", 12, ""), put("d", 13, ""), put("e", 14, ""))
				r.expire() // which the reflector reports
				synctest.Wait()
				same(t, "store", contents(r), []string{"a=20"})
				if n := len(panics.lines()); n < 5 {
					t.Errorf("the handler received %d events", n)
				}
				if h := r.Health(); h.Problems["report"] == 0 || h.Problems["index"] == 0 || h.Problems["handle"] == 0 {
					t.Errorf("counted were %v", h.Problems)
				}
			})
		})
	}
}

// panickingLog is a slog.Handler that panics.
type panickingLog struct{ slog.Handler } // nil
