package informer_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/store"
)

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func contents(r *running) []string {
	var out []string
	for k, v := range r.Snapshot().Ordered() {
		out = append(out, fmt.Sprintf("%s=%d", k, v.n))
	}
	return out
}

func subscribe[T any](t *testing.T, r *runningOf[T], h informer.Handler[T],
	opts *informer.HandlerOptions) *informer.Subscription[T] {
	t.Helper()
	sub, err := r.Subscribe(h, opts)
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

func TestP1_TheStoreFollowsTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, ""), item("b", 2, "")}},
			state{50, []object.Item[*thing]{item("b", 20, ""), item("d", 40, "")}}))
		rec := &recorder{}
		subscribe(t, r, rec, nil)
		r.run(t)
		r.say(put("c", 11, ""), put("a", 12, ""))
		r.say(gone("b", 13, ""), put("b", 20, ""))
		synctest.Wait()
		same(t, "store", contents(r), []string{"a=12", "b=20", "c=11"})
		r.expire()
		synctest.Wait()
		same(t, "store after the list", contents(r), []string{"b=20", "d=40"})
		got := rec.lines()
		slices.Sort(got[min(6, len(got)):min(8, len(got))]) // the deletions of a list are in no particular order
		same(t, "events", got, []string{"Added a new=1 initial", "Added b new=2 initial",
			"Added c new=11", "Updated a old=1 new=12", "Deleted b old=13", "Added b new=20",
			"Deleted a old=12 missed", "Deleted c old=11 missed", "Added d new=40"})
		if v := r.Snapshot().Version(); v != "50" {
			t.Errorf("version = %s", v)
		}
	})
}

func TestP2_StaleChangesAreDroppedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 5, "")}}))
		rec := &recorder{}
		subscribe(t, r, rec, nil)
		r.run(t)
		r.say(put("a", 12, ""))
		r.say(put("a", 12, ""), put("a", 11, ""), gone("a", 4, "")) // repeated and stale changes
		r.say(gone("a", 20, ""))
		r.say(put("a", 19, "")) // from a replica that lags
		synctest.Wait()
		same(t, "events", rec.lines(), []string{"Added a new=5 initial", "Updated a old=5 new=12", "Deleted a old=20"})
		if h := r.Health(); h.Stale != 4 {
			t.Errorf("stale = %d, want 4", h.Stale)
		}
	})
}

func TestP2_AHistorySetBackIsANewEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{100, []object.Item[*thing]{item("a", 90, ""), item("b", 95, "")}},
			state{50, []object.Item[*thing]{item("a", 40, "")}}))
		rec := &recorder{}
		subscribe(t, r, rec, nil)
		r.run(t)
		r.say(bookmark(45)) // older than the known state
		synctest.Wait()
		r.say(put("a", 51, ""))
		synctest.Wait()
		same(t, "events", rec.lines(), []string{"Added a new=90 initial", "Added b new=95 initial",
			"Deleted b old=95 missed epoch=1", "Updated a old=90 new=40 epoch=1", "Updated a old=40 new=51 epoch=1"})
		if h := r.Health(); h.Epoch != 1 || len(r.problems.doing()) == 0 {
			t.Errorf("epoch = %d, problems = %v", h.Epoch, r.problems.doing())
		}
	})
}

// A server that was restored from a backup uses versions again for other states.
func TestP1_AReusedVersionIsNotTakenForKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := object.Item[*thing]{Key: "a", Version: "45", Value: &thing{"a", "other", 45}}
		r := make1(t, newFeed(state{100, []object.Item[*thing]{item("a", 45, ""), item("b", 40, "")}},
			state{50, []object.Item[*thing]{again, item("b", 40, "")}}))
		rec := &recorder{}
		subscribe(t, r, rec, nil)
		r.run(t)
		r.say(bookmark(45)) // older than the known state
		synctest.Wait()
		same(t, "events", rec.lines(), []string{"Added a new=45 initial", "Added b new=40 initial",
			"Updated a old=45 new=45 epoch=1"})
		if got, _ := r.Snapshot().Get("a"); got != again.Value {
			t.Errorf("the store has %v", got)
		}
	})
}

func TestP4_ASnapshotIsAheadOfTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, "")}}))
		var behind atomic.Int32
		var seen atomic.Int32
		subscribe(t, r, informer.HandlerFunc[*thing](func(e object.Event[*thing]) {
			seen.Add(1)
			snap := r.Snapshot()
			got, ok := snap.Get(e.Key)
			if snap.Version().Before(e.Version) || e.Type == object.Deleted && ok && got.n < e.Old.n ||
				e.New != nil && (!ok || got.n < e.New.n) {
				behind.Add(1)
			}
		}), nil)
		r.run(t)
		for v := 11; v < 200; v += 3 {
			r.say(put("a", v, ""), put("b", v+1, ""))
		}
		synctest.Wait()
		if behind.Load() > 0 || seen.Load() < 100 {
			t.Errorf("%d of %d events were delivered before the store had them", behind.Load(), seen.Load())
		}
	})
}

// A handler that receives the first object may read the store: a lister must not answer "not synced" then. The test
// has many rounds because it looks for a race.
func TestP4_TheInformerIsSyncedWhenTheFirstHandlerRuns(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, ""), item("b", 2, "")}}))
			var late atomic.Int32
			subscribe(t, r, informer.Funcs[*thing]{OnAdd: func(*thing, bool) {
				if !r.HasSynced() {
					late.Add(1)
				}
			}}, nil)
			r.run(t)
			synctest.Wait()
			if late.Load() != 0 {
				t.Fatalf("%d handlers ran before the informer called itself synced", late.Load())
			}
		})
	}
}

func TestP5_TheInitialStateComesBeforeSyncedForEarlyAndLateHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, ""), item("b", 2, "")}}))
		early, late := &recorder{}, &recorder{}
		sub := subscribe(t, r, early, nil)
		if sub.HasSynced() || r.HasSynced() {
			t.Error("synced before it ran")
		}
		r.run(t)
		<-sub.Synced()
		same(t, "early", early.lines(), []string{"Added a new=1 initial", "Added b new=2 initial"})
		r.say(put("c", 11, ""))
		synctest.Wait()
		sub = subscribe(t, r, late, nil)
		<-sub.Synced()
		got := late.lines()
		slices.Sort(got)
		same(t, "late", got, []string{"Added a new=1 initial", "Added b new=2 initial", "Added c new=11 initial"})
	})
}

func TestP6_AMissedRecreationIsADeletionAndAnAddition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, "u1"), item("b", 2, "u2")}},
			state{20, []object.Item[*thing]{item("a", 15, "u3"), item("b", 12, "u4")}}))
		rec := &recorder{}
		subscribe(t, r, rec, nil)
		r.run(t)
		r.say(put("b", 12, "u4")) // the source has coalesced the deletion
		r.expire()
		synctest.Wait()
		same(t, "events", rec.lines(), []string{"Added a new=1 initial", "Added b new=2 initial",
			"Deleted b old=2 missed", "Added b new=12", "Deleted a old=1 missed", "Added a new=15"})
	})
}

func TestP6_TheDeletionOfAnUnknownObjectIsNotDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, nil}))
		rec := &recorder{}
		subscribe(t, r, rec, nil)
		r.run(t)
		r.say(gone("x", 11, ""))
		synctest.Wait()
		same(t, "events", rec.lines(), nil)
		if v := r.Snapshot().Version(); v != "11" {
			t.Errorf("version = %s: the delete moves history on all the same", v)
		}
	})
}

func TestP7_ABlockedOrPanickingHandlerAffectsNoOtherHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, nil}))
		release := make(chan struct{})
		blocked := &recorder{on: func(object.Event[*thing]) { <-release }}
		panicking := &recorder{on: func(object.Event[*thing]) { panic("no") }}
		good := &recorder{}
		subscribe(t, r, blocked, &informer.HandlerOptions{Name: "blocked", MaxBacklog: 10})
		subscribe(t, r, panicking, &informer.HandlerOptions{Name: "panicking"})
		subscribe(t, r, good, nil)
		r.run(t)
		r.say(put("a", 11, ""))
		synctest.Wait() // all three are in their callbacks or have returned
		for v := 12; v < 1011; v++ {
			r.say(put("a", v, ""))
		}
		synctest.Wait()
		if n := len(good.lines()); n != 1000 {
			t.Errorf("the good handler saw %d of 1000", n)
		}
		if n := len(panicking.lines()); n != 1000 {
			t.Errorf("the panicking handler saw %d of 1000", n)
		}
		for _, h := range r.Health().Handlers {
			switch h.Name {
			case "blocked":
				if h.Backlog > 20 || h.Coalesced < 900 {
					t.Errorf("the blocked handler's backlog is %d, coalesced %d", h.Backlog, h.Coalesced)
				}
			case "panicking":
				if h.Panics != 1000 {
					t.Errorf("panics = %d", h.Panics)
				}
			}
		}
		close(release)
		synctest.Wait()
		got := blocked.lines()
		if last := got[len(got)-1]; !strings.HasSuffix(last, "new=1010") {
			t.Errorf("the blocked handler ends with %q", last)
		}
		if n := r.Health().Problems["handle"]; n != 1000 {
			t.Errorf("P12: %d panics were reported", n)
		}
	})
}

// Two objects that always change together have the same value in every snapshot, in the store and in its index.
func TestP8_ASnapshotIsConsistent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, ""), item("b", 1, "")}}),
			index("n", func(x *thing) []string { return []string{fmt.Sprint(x.n)} }))
		r.run(t)
		stop, torn := make(chan struct{}), make(chan string, 4)
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					snap := r.Snapshot()
					a, _ := snap.Get("a")
					b, _ := snap.Get("b")
					found := 0
					for range snap.ByIndex("n", fmt.Sprint(a.n)) {
						found++
					}
					if a.n != b.n || found != 2 {
						torn <- fmt.Sprintf("a=%d b=%d, %d by the index", a.n, b.n, found)
						return
					}
				}
			})
		}
		for v := 11; v < 500; v++ {
			r.say(put("a", v, ""), put("b", v, ""))
		}
		close(stop)
		readers.Wait()
		select {
		case what := <-torn:
			t.Error("a snapshot mixes two moments: " + what)
		default:
		}
	})
}

func TestP9_StopNamesTheHandlerThatIsStillRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, "")}}),
			func(o *options) { o.StopTimeout = time.Minute })
		release := make(chan struct{})
		subscribe(t, r, &recorder{on: func(object.Event[*thing]) { <-release }}, &informer.HandlerOptions{Name: "stubborn"})
		r.run(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := r.Stop(ctx)
		if err == nil || !strings.Contains(err.Error(), "stubborn") {
			t.Errorf("Stop = %v, want the handler's name", err)
		}
		close(release)
		if err := r.stop(); err != nil {
			t.Errorf("Run = %v: the handler came back in time", err)
		}
		if h := r.Health(); h.Reflector.State != reflector.Stopped {
			t.Errorf("state = %s", h.Reflector.State)
		}
	})
}

func TestP9_AStoppedInformerRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, "")}},
			state{30, []object.Item[*thing]{item("b", 20, "")}}))
		first := &recorder{}
		subscribe(t, r, first, nil)
		r.run(t)
		synctest.Wait()
		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		same(t, "store after the stop", contents(r), []string{"a=1"})
		if _, err := r.Subscribe(first, nil); !errors.Is(err, informer.ErrStopped) {
			t.Errorf("Subscribe after the stop = %v", err)
		}
		if err := r.Stop(t.Context()); err != nil {
			t.Errorf("a second Stop = %v", err)
		}
		r.run(t)
		second := &recorder{}
		<-subscribe(t, r, second, nil).Synced()
		same(t, "second run", second.lines(), []string{"Added b new=20 initial"})
		same(t, "store", contents(r), []string{"b=20"})
		same(t, "first handler", first.lines(), []string{"Added a new=1 initial"})
	})
}

func TestRunTwiceIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, nil}))
		r.run(t)
		if err := r.Run(t.Context()); !errors.Is(err, informer.ErrRunning) {
			t.Errorf("a second Run = %v", err)
		}
	})
}

func TestP12_AFailingTransformKeepsTheStoreAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := map[int]bool{2: true, 12: true, 13: true}
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, ""), item("b", 2, "")}},
			state{30, []object.Item[*thing]{item("a", 12, ""), item("b", 25, "")}}),
			func(o *options) {
				o.Transform = func(x *thing) (*thing, error) {
					if x.n == 13 {
						panic("thirteen")
					}
					if bad[x.n] {
						return nil, errors.New("cannot")
					}
					return x, nil
				}
			})
		r.run(t)
		same(t, "store", contents(r), []string{"a=1"})
		r.say(put("a", 12, ""))
		r.say(put("a", 13, ""))
		r.say(put("c", 14, ""))
		synctest.Wait()
		same(t, "store after failures", contents(r), []string{"a=1", "c=14"})
		r.expire()
		synctest.Wait()
		same(t, "store after a list with a failure", contents(r), []string{"a=1", "b=25"})
		if n := r.Health().Problems["transform"]; n != 4 {
			t.Errorf("transform problems = %d, want 4; all: %v", n, r.problems.doing())
		}
	})
}

func TestP12_AFailingIndexIsReportedAndTheObjectKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, ""), item("b", 2, "")}}),
			func(o *options) {
				o.Indexes = informer.Indexes[*thing]{"odd": func(x *thing) ([]string, error) {
					if x.n%2 == 0 {
						return nil, errors.New("even")
					}
					return []string{"yes"}, nil
				}}
			})
		r.run(t)
		same(t, "store", contents(r), []string{"a=1", "b=2"})
		var found []string
		for x := range r.Snapshot().ByIndex("odd", "yes") {
			found = append(found, x.name)
		}
		same(t, "index", found, []string{"a"})
		same(t, "problems", r.problems.doing(), []string{"index"})
	})
}

func TestP12_AnItemThatCannotBeDecodedIsNotDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := item("a", 15, "")
		broken.Decode = func([]byte) (*thing, error) { return nil, errors.New("half a thing") }
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, ""), item("b", 2, "")}},
			state{20, []object.Item[*thing]{broken}}))
		r.run(t)
		r.expire()
		synctest.Wait()
		same(t, "store", contents(r), []string{"a=1"})
		same(t, "problems", r.problems.doing(), []string{"stream", "decode"})
	})
}

func TestP13_TransformOncePerVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		items := []object.Item[*thing]{item("a", 1, ""), item("b", 2, "")}
		r := make1(t, newFeed(state{10, items}, state{20, items}),
			func(o *options) { o.Transform = func(x *thing) (*thing, error) { calls.Add(1); return x, nil } })
		for range 3 {
			subscribe(t, r, &recorder{}, nil)
		}
		r.run(t)
		r.say(put("a", 1, "")) // the same version again
		r.expire()
		synctest.Wait()
		if n := calls.Load(); n != 2 {
			t.Errorf("the transform ran %d times for 2 versions", n)
		}
	})
}

func TestStartFromASnapshotAsksForNoList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, ""), item("b", 2, "")}}))
		first.run(t)
		snap := first.Snapshot()
		dump := informer.State[*thing]{Version: snap.Version()}
		for e := range snap.Entries() {
			dump.Items = append(dump.Items, object.Item[*thing]{Key: e.Key, Version: e.Version, UID: e.UID, Size: e.Size,
				Value: e.Object()})
		}
		if err := first.stop(); err != nil {
			t.Fatal(err)
		}

		var transformed atomic.Int32
		r := make1(t, newFeed(), func(o *options) { o.StartFrom = &dump },
			func(o *options) { o.Transform = func(x *thing) (*thing, error) { transformed.Add(1); return x, nil } })
		rec := &recorder{}
		subscribe(t, r, rec, nil)
		r.run(t)
		r.say(put("a", 11, ""))
		synctest.Wait()
		got := rec.lines()
		slices.Sort(got[:2])
		same(t, "events", got, []string{"Added a new=1 initial", "Added b new=2 initial", "Updated a old=1 new=11"})
		if r.lists != 0 || r.watches[0].Version != "10" {
			t.Errorf("%d lists, watches %+v", r.lists, r.watches)
		}
		if transformed.Load() != 1 {
			t.Errorf("P13: what was stored transformed was transformed again: %d", transformed.Load())
		}
	})
}

func TestStartFromAnExpiredVersionLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{50, []object.Item[*thing]{item("b", 40, "")}}),
			func(o *options) {
				o.StartFrom = &informer.State[*thing]{
					Version: "10", Items: []object.Item[*thing]{{Key: "a", Version: "1", Value: &thing{name: "a", app: "a", n: 1}}}}
			})
		rec := &recorder{}
		subscribe(t, r, rec, nil)
		r.run(t)
		r.expire()
		synctest.Wait()
		same(t, "events", rec.lines(), []string{"Added a new=1 initial", "Deleted a old=1 missed", "Added b new=40"})
	})
}

// An object that could not be decoded after a restore keeps its state of the old history, also in a saved state. Its
// next version is lower and must not be taken for known.
func TestStartFromAStateOfTwoEpochsLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var problems []string
		r := make1(t, newFeed(state{21, []object.Item[*thing]{item("a", 1, ""), item("b", 20, "")}}),
			func(o *options) {
				o.StartFrom = &informer.State[*thing]{Version: "17",
					Items: []object.Item[*thing]{item("a", 1, ""), item("b", 24, "")}}
			},
			func(o *options) { o.OnProblem = func(p informer.Problem) { problems = append(problems, p.Doing) } })
		rec := &recorder{}
		subscribe(t, r, rec, nil)
		r.run(t)
		r.say(put("b", 23, ""))
		synctest.Wait()
		got := rec.lines()
		slices.Sort(got[:2])
		same(t, "events", got, []string{"Added a new=1 initial", "Added b new=24 initial", "Updated b old=24 new=20 epoch=1",
			"Updated b old=20 new=23 epoch=1"})
		same(t, "problems", problems, []string{"start"})
		if h := r.Health(); h.Epoch != 1 || r.lists != 1 {
			t.Errorf("epoch %d after %d lists", h.Epoch, r.lists)
		}
	})
}

func TestAfterWaitVersionReadsSeeTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, nil}))
		r.run(t)
		if err := r.WaitVersion(t.Context(), "9"); err != nil {
			t.Errorf("a version that was passed: %v", err)
		}
		waited := make(chan error, 1)
		go func() { waited <- r.WaitVersion(t.Context(), "12") }()
		r.say(put("a", 11, ""))
		synctest.Wait()
		select {
		case err := <-waited:
			t.Fatalf("returned at 11: %v", err)
		default:
		}
		r.say(bookmark(13))
		if err := <-waited; err != nil {
			t.Error(err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.WaitVersion(short, "99"); !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "13") {
			t.Errorf("a version that never comes: %v", err)
		}
		if err := r.WaitVersion(short, "yesterday"); err == nil {
			t.Error("a version that is no number was waited for")
		}
		go func() { waited <- r.WaitVersion(context.Background(), "99") }()
		synctest.Wait()
		r.stop()
		if err := <-waited; !errors.Is(err, informer.ErrStopped) {
			t.Errorf("waiting over a stop: %v", err)
		}
	})
}

func TestResyncDeliversAllObjectsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, "")}}),
			func(o *options) { o.Resync = time.Minute })
		often, never := &recorder{}, &recorder{}
		subscribe(t, r, often, nil)
		subscribe(t, r, never, &informer.HandlerOptions{Resync: -1})
		r.run(t)
		time.Sleep(2*time.Minute + time.Second)
		synctest.Wait()
		same(t, "often", often.lines(),
			[]string{"Added a new=1 initial", "Resynced a old=1 new=1", "Resynced a old=1 new=1"})
		same(t, "never", never.lines(), []string{"Added a new=1 initial"})
	})
}

func TestIndexesCanBeAddedWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a1", 1, ""), item("a2", 2, ""), item("b1", 3, "")}}))
		r.run(t)
		byApp := func(x *thing) ([]string, error) { return []string{x.app}, nil }
		if err := r.AddIndexes(informer.Indexes[*thing]{"app": byApp}); err != nil {
			t.Fatal(err)
		}
		if err := r.AddIndexes(informer.Indexes[*thing]{"app": byApp}); err == nil || !strings.Contains(err.Error(), "app") {
			t.Errorf("the same name twice: %v", err)
		}
		r.say(put("a3", 11, ""))
		synctest.Wait()
		n := 0
		for range r.Snapshot().ByIndex("app", "a") {
			n++
		}
		if n != 3 {
			t.Errorf("found %d by the index, want 3", n)
		}
		r.stop()
		if err := r.AddIndexes(informer.Indexes[*thing]{"other": byApp}); !errors.Is(err, informer.ErrStopped) {
			t.Errorf("after the stop: %v", err)
		}
	})
}

func TestWaitSyncedSaysWhyItIsNotSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inf, err := informer.New[*thing](deadSource{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- inf.Run(ctx) }()
		err = inf.WaitSynced(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("WaitSynced = %v", err)
		}
		<-done
	})
}

type deadSource struct{}

func (deadSource) Describe() source.Description { return source.Description{Resource: "things"} }
func (deadSource) List(context.Context, source.ListOptions) (source.Lister[*thing], error) {
	return nil, &source.Error{Reason: source.Refused, Err: errors.New("connection refused")}
}
func (deadSource) Watch(context.Context, source.WatchOptions) (source.Watcher[*thing], error) {
	return nil, errors.New("connection refused")
}

// askedSource records requests and refuses them.
type askedSource struct {
	deadSource
	list chan source.ListOptions
}

func (s askedSource) List(_ context.Context, o source.ListOptions) (source.Lister[*thing], error) {
	s.list <- o
	return nil, &source.Error{Reason: source.Refused, Err: errors.New("connection refused")}
}

func TestTheSourceLearnsWhetherObjectsStayEncodedOrAreShared(t *testing.T) {
	for layout, want := range map[store.Layout]source.ListOptions{
		store.Live:   {},
		store.Shared: {Shares: true},
		store.Packed: {Encoded: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			src := askedSource{list: make(chan source.ListOptions, 1)}
			inf, err := informer.New[*thing](src, &options{Layout: layout})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- inf.Run(ctx) }()
			got := <-src.list
			if got.Encoded != want.Encoded || got.Shares != want.Shares {
				t.Errorf("%v: asked with %+v", layout, got)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBadOptionsAreRefusedWithTheNextStep(t *testing.T) {
	for name, c := range map[string]struct {
		opts options
		says string
	}{
		"index without name": {options{Indexes: informer.Indexes[*thing]{"": store.ByNamespace[*thing]()}},
			"name"},
		"index without func":    {options{Indexes: informer.Indexes[*thing]{"app": nil}}, "function"},
		"half a codec":          {options{Codec: &object.Codec[*thing]{}}, "both Encode and Decode"},
		"state without version": {options{StartFrom: &informer.State[*thing]{}}, "version"},
		"negative resync":       {options{Resync: -1}, "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := informer.New[*thing](newFeed(), &c.opts)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("err = %v, want one that says %q", err, c.says)
			}
		})
	}
	if _, err := informer.New[*thing](nil, nil); err == nil || !strings.Contains(err.Error(), "kube.Typed") {
		t.Errorf("nil source: %v", err)
	}
	r := make1(t, newFeed())
	if _, err := r.Subscribe(nil, nil); err == nil {
		t.Error("a nil handler was taken")
	}
}

// While the consumer is stalled, the queue puts later states in the place of earlier ones, before the changes of other
// objects in between. The store's version must not be newer than the changes that it has.
func TestP1_CoalescingLosesNoStateAndReachesNoVersionEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		r := make1(t, newFeed(state{10, nil}), func(o *options) { o.QueueBytes = 500 },
			func(o *options) { o.HistoryBytes, o.HistoryAge = 1<<20, 0 },
			func(o *options) {
				o.Transform = func(x *thing) (*thing, error) {
					if x.n == 11 {
						<-hold
					}
					return x, nil
				}
			})
		r.run(t)
		r.say(put("a", 11, "")) // the consumer stalls here
		synctest.Wait()
		for v := 12; v < 112; v += 2 {
			r.say(put("b", v, ""))
			r.say(put("c", v+1, ""))
		}
		r.say(gone("b", 112, ""))
		synctest.Wait()
		waited := make(chan []string, 1)
		go func() {
			if err := r.WaitVersion(t.Context(), "111"); err != nil {
				t.Error(err)
			}
			waited <- contents(r)
		}()
		close(hold)
		got := <-waited
		if !slices.Contains(got, "c=111") {
			t.Errorf("at version 111 the store has %q", got)
		}
		synctest.Wait()
		same(t, "store", contents(r), []string{"a=11", "c=111"})
		h := r.Health()
		if h.QueueCoalesced < 50 || h.Stale != 0 {
			t.Errorf("coalesced %d, stale %d", h.QueueCoalesced, h.Stale)
		}
		if v := r.Snapshot().Version(); v != "112" {
			t.Errorf("version = %s", v)
		}
		if _, err := r.Reader().Since("20"); !errors.Is(err, store.ErrGone) {
			t.Errorf("the log claims a history that was coalesced: %v", err)
		}
	})
}

func TestAVerbatimInformerRunsOnceAndStaysReadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, "")}}), func(o *options) { o.Verbatim = true })
		r.run(t)
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		same(t, "store", contents(r), []string{"a=1"})
		if err := r.Run(t.Context()); !errors.Is(err, informer.ErrStopped) {
			t.Errorf("a second Run = %v", err)
		}
	})
}

// Stop does not deliver the changes that wait in the queue.
func TestP9_StopDropsWhatWaitsInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		var transformed atomic.Int32
		r := make1(t, newFeed(state{10, nil}), func(o *options) {
			o.Transform = func(x *thing) (*thing, error) {
				transformed.Add(1)
				<-hold
				return x, nil
			}
		})
		r.run(t)
		r.say(put("a", 11, ""))
		synctest.Wait()
		for v := 12; v < 100; v++ {
			r.say(put("b", v, ""))
		}
		synctest.Wait()
		ended := make(chan error, 1)
		go func() { ended <- r.stop() }()
		synctest.Wait()
		close(hold)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if n := transformed.Load(); n != 1 {
			t.Errorf("%d objects were worked on after the stop", n-1)
		}
		if n := r.Health().QueueDeltas; n != 0 {
			t.Errorf("%d deltas are still held", n)
		}
	})
}

func TestP9_TheStateItStartedFromIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dump := informer.State[*thing]{Version: "10",
			Items: []object.Item[*thing]{{Key: "a", Version: "1", Value: &thing{name: "a", app: "a", n: 1}}}}
		var freed atomic.Bool
		runtime.AddCleanup(dump.Items[0].Value, func(f *atomic.Bool) { f.Store(true) }, &freed)
		r := make1(t, newFeed(), func(o *options) { o.StartFrom = &dump })
		dump = informer.State[*thing]{}
		r.run(t)
		r.say(put("a", 11, "")) // it replaces the object
		r.say(put("a", 12, ""))
		synctest.Wait()
		for range 10 {
			runtime.GC()
		}
		time.Sleep(time.Second) // fake time: let the cleanup's goroutine run
		if !freed.Load() {
			t.Error("an object of the state to start from is still held though it was replaced")
		}
		runtime.KeepAlive(r)
	})
}
