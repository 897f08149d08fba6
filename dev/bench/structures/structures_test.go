package structures

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/object"
)

func TestEveryCandidateReadsWhatWasWritten(t *testing.T) {
	const n = 3000
	for _, candidate := range Candidates {
		t.Run(candidate.Name, func(t *testing.T) {
			c := candidate.New()
			all := objects(n)
			want := map[string]*Object{}
			write := func(batch []*Object) {
				c.Update(batch)
				for _, o := range batch {
					want[o.Key] = o
				}
			}
			for i := 0; i < n; i += 100 {
				write(all[i : i+100])
			}
			changed := updatesOf(all).some(2000)
			for i, o := range changed[:1000] {
				write(changed[i : i+1])
				if got := c.Get(o.Key); got != o {
					t.Fatalf("Get(%s) is %v after writing %v", o.Key, got, o)
				}
			}
			write(changed[1000:])

			got := map[string]*Object{}
			c.All(func(o *Object) { got[o.Key] = o })
			if err := same(got, want); err != nil {
				t.Errorf("everything: %v", err)
			}
			indexes := map[[2]string]map[string]*Object{{byApp, "no such"}: nil}
			put := func(index, value string, o *Object) {
				under := [2]string{index, value}
				if indexes[under] == nil {
					indexes[under] = map[string]*Object{}
				}
				indexes[under][o.Key] = o
			}
			for _, o := range want {
				put(byNamespace, o.Namespace, o)
				put(byApp, o.App, o)
			}
			for under, inside := range indexes {
				got := map[string]*Object{}
				c.By(under[0], under[1], func(o *Object) { got[o.Key] = o })
				if err := same(got, inside); err != nil {
					t.Errorf("%s: %v", under, err)
				}
			}
			if o := c.Get("no/such"); o != nil {
				t.Errorf("a key that was never written gives %v", o)
			}
		})
	}
}

func same(got, want map[string]*Object) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d objects, want %d", len(got), len(want))
	}
	for k, o := range want {
		if got[k] != o {
			return fmt.Errorf("%s is %v, want %v", k, got[k], o)
		}
	}
	return nil
}

// witness looks at what is written to a candidate.
type witness struct {
	Candidate
	newest                 map[string]*Object
	updates, moved, repeat int
}

func (w *witness) Update(batch []*Object) {
	for _, o := range batch {
		old := w.newest[o.Key]
		w.newest[o.Key] = o
		if old == nil {
			continue
		}
		w.updates++
		if old.App != o.App {
			w.moved++
		}
		if !object.Version(old.Version).Before(object.Version(o.Version)) {
			w.repeat++
		}
	}
	w.Candidate.Update(batch)
}

func TestEveryMeasuredUpdateIsNewAndOneInTenMoves(t *testing.T) {
	w := &witness{Candidate: newTrie(), newest: map[string]*Object{}}
	work(w, &harness.Params{Quick: true})
	if w.repeat > 0 {
		t.Errorf("%d of %d updates have no later version than the object that they replace", w.repeat, w.updates)
	}
	if tenth := w.updates / 10; w.moved < tenth || w.moved > tenth+1 {
		t.Errorf("%d of %d updates move their object to another app, want a tenth", w.moved, w.updates)
	}
}

func TestReadersOfEverythingSeeWholeBatches(t *testing.T) {
	for _, candidate := range Candidates {
		if candidate.Name == "sync.Map" {
			continue // promises nothing of the kind
		}
		t.Run(candidate.Name, func(t *testing.T) {
			c, batch := candidate.New(), objects(200)
			var stop atomic.Bool
			var reading sync.WaitGroup
			for range 2 {
				reading.Go(func() {
					for !stop.Load() {
						seen := map[string]int{}
						c.All(func(o *Object) { seen[o.Version]++ })
						if len(seen) > 1 {
							t.Errorf("one read found states of several batches: %v", seen)
							return
						}
					}
				})
			}
			for version := range 300 {
				for i, o := range batch {
					later := *o
					later.Version = strconv.Itoa(version)
					batch[i] = &later
				}
				c.Update(batch)
			}
			stop.Store(true)
			reading.Wait()
		})
	}
}

func TestTheTrieKeepsEarlierStates(t *testing.T) {
	var n *node[int]
	for i := range 1000 {
		n = n.set(1, fmt.Sprint(i), i)
	}
	before := n
	for i := range 1000 {
		if i%2 == 0 {
			n = n.remove(2, fmt.Sprint(i))
		} else {
			n = n.set(2, fmt.Sprint(i), -i)
		}
	}
	for i := range 1000 {
		if v, ok := before.get(fmt.Sprint(i)); !ok || v != i {
			t.Fatalf("the earlier state has %d, %v for %d", v, ok, i)
		}
		v, ok := n.get(fmt.Sprint(i))
		if i%2 == 0 && ok || i%2 == 1 && v != -i {
			t.Fatalf("the later state has %d, %v for %d", v, ok, i)
		}
	}
}
