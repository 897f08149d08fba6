package informer

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// newEpochList returns the deltas of a list that begins a new epoch.
func newEpochList(version string, items ...object.Delta[int]) []object.Delta[int] {
	list := append([]object.Delta[int]{delta(object.ReplaceBegin, "", "", 0)}, items...)
	list = append(list, delta(object.ReplaceEnd, "", version, 0))
	list[0].NewEpoch, list[len(list)-1].NewEpoch = true, true
	return list
}

func sameEpochList(version string, items ...object.Delta[int]) []object.Delta[int] {
	list := newEpochList(version, items...)
	list[0].NewEpoch, list[len(list)-1].NewEpoch = false, false
	return list
}

func listed(key, version string, n int) object.Delta[int] {
	return delta(object.Replaced, key, version, n)
}

// unreadable is the value of an object that the transform of these tests rejects.
const unreadable = -1

func rejectUnreadable(n int) (int, error) {
	if n == unreadable {
		return 0, errors.New("unreadable")
	}
	return n, nil
}

// epochInformer returns an informer to which the test applies deltas itself.
func epochInformer(t *testing.T, opts ...func(*Options[int])) *Informer[int] {
	t.Helper()
	o := Options[int]{Transform: rejectUnreadable, OnProblem: func(Problem) {}}
	for _, set := range opts {
		set(&o)
	}
	i, err := New(silent{}, &o)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// eventLines records events as text.
type eventLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *eventLines) add(e *object.Event[*store.Entry[int]]) {
	state := e.New
	if state == nil {
		state = e.Old
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%s %s@%s epoch %d", e.Type, e.Key, state.Version, e.Epoch))
}

// expect compares the events since the last call.
func (l *eventLines) expect(t *testing.T, when string, want ...string) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.lines)
	slices.Sort(want)
	if !slices.Equal(l.lines, want) {
		t.Errorf("%s: got %q, want %q", when, l.lines, want)
	}
	l.lines = nil
}

// replayedEpochs returns the events that a new handler would receive.
func replayedEpochs(i *Informer[int]) *eventLines {
	var l eventLines
	for e := range i.replay(object.Added).Events {
		l.add(&e)
	}
	return &l
}

// An object that cannot be transformed after a restore keeps its state of the epoch before. Resyncs and late handlers
// receive that state with the epoch in which it was read: its next version is lower, and would otherwise go back
// within an epoch.
func TestP2_AStateKeptFromAnEarlierEpochIsReplayedWithThatEpoch(t *testing.T) {
	for name, c := range map[string]struct {
		deltas []object.Delta[int]
		events []string
		state  []string
	}{
		"updated": {
			deltas: []object.Delta[int]{delta(object.Updated, "b", "51", 5)},
			events: []string{"Updated b@51 epoch 1"},
			state:  []string{"Added a@40 epoch 1", "Added b@51 epoch 1"},
		},
		"updated to the version that it had": {
			deltas: []object.Delta[int]{delta(object.Updated, "b", "95", 5)},
			events: []string{"Updated b@95 epoch 1"},
			state:  []string{"Added a@40 epoch 1", "Added b@95 epoch 1"},
		},
		"deleted and added": {
			deltas: []object.Delta[int]{delta(object.Deleted, "b", "51", 5), delta(object.Added, "b", "52", 6)},
			events: []string{"Deleted b@51 epoch 1", "Added b@52 epoch 1"},
			state:  []string{"Added a@40 epoch 1", "Added b@52 epoch 1"},
		},
		"another change that cannot be read": {
			deltas: []object.Delta[int]{delta(object.Updated, "b", "51", unreadable)},
			state:  []string{"Added a@40 epoch 1", "Added b@95 epoch 0"},
		},
		"listed again, readable": {
			deltas: sameEpochList("52", listed("a", "40", 4), listed("b", "45", 5)),
			events: []string{"Updated b@45 epoch 1"},
			state:  []string{"Added a@40 epoch 1", "Added b@45 epoch 1"},
		},
		"listed again, unreadable": {
			deltas: sameEpochList("52", listed("a", "51", unreadable), listed("b", "45", unreadable)),
			state:  []string{"Added a@40 epoch 1", "Added b@95 epoch 0"},
		},
		"reset again, unreadable": {
			deltas: newEpochList("30",
				listed("a", "25", unreadable), listed("b", "26", unreadable), listed("c", "27", 7)),
			events: []string{"Added c@27 epoch 2"},
			state:  []string{"Added a@40 epoch 1", "Added b@95 epoch 0", "Added c@27 epoch 2"},
		},
		"reset again, unreadable at first": {
			deltas: newEpochList("30", listed("a", "25", unreadable), listed("b", "26", unreadable),
				delta(object.Updated, "a", "28", 8), delta(object.Updated, "b", "29", 9)),
			events: []string{"Updated a@28 epoch 2", "Updated b@29 epoch 2"},
			state:  []string{"Added a@28 epoch 2", "Added b@29 epoch 2"},
		},
		"reset again, unreadable at last": {
			deltas: newEpochList("30", listed("a", "25", 5), listed("b", "26", 6),
				delta(object.Updated, "a", "28", unreadable), delta(object.Updated, "b", "29", unreadable)),
			events: []string{"Updated a@25 epoch 2", "Updated b@26 epoch 2"},
			state:  []string{"Added a@25 epoch 2", "Added b@26 epoch 2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := epochInformer(t)
				var got eventLines
				sub, err := i.SubscribeEntries(got.add, &HandlerOptions{Resync: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				i.apply(sameEpochList("100", listed("a", "90", 1), listed("b", "95", 2)))
				got.expect(t, "at the start", "Added a@90 epoch 0", "Added b@95 epoch 0")
				i.apply(newEpochList("50", listed("a", "40", 4), listed("b", "45", unreadable)))
				got.expect(t, "reset", "Updated a@40 epoch 1")
				time.Sleep(time.Minute)
				got.expect(t, "resync", "Resynced a@40 epoch 1", "Resynced b@95 epoch 0")
				before := i.replay(object.Added)

				i.apply(c.deltas)
				got.expect(t, "afterwards", c.events...)
				replayedEpochs(i).expect(t, "a late handler", c.state...)
				var old eventLines
				for e := range before.Events {
					old.add(&e)
				}
				old.expect(t, "a replay of the state before", "Added a@40 epoch 1", "Added b@95 epoch 0")
				sub.Remove()
				<-sub.Done()
			})
		})
	}
}

// While a list that begins an epoch is being stored, a snapshot shows the state before it.
func TestP2_AReplayDuringTheCommitOfANewEpochHasTheEpochBefore(t *testing.T) {
	var i *Informer[int]
	var during *eventLines
	var epoch uint64
	i = epochInformer(t, func(o *Options[int]) {
		o.Indexes = Indexes[int]{"value": func(n int) ([]string, error) {
			if n == 2 {
				during, epoch = replayedEpochs(i), i.Health().Epoch
			}
			return nil, nil
		}}
	})
	i.apply(sameEpochList("100", listed("a", "90", 1)))
	i.apply(newEpochList("50", listed("a", "40", 2)))
	if want := []string{"Added a@90 epoch 0"}; !slices.Equal(during.lines, want) || epoch != 0 {
		t.Errorf("during the commit: %q and epoch %d in Health, want %q and epoch 0", during.lines, epoch, want)
	}
	if after := replayedEpochs(i).lines; !slices.Equal(after, []string{"Added a@40 epoch 1"}) || i.Health().Epoch != 1 {
		t.Errorf("after the commit: %q and epoch %d in Health", after, i.Health().Epoch)
	}
}

// Epochs begin and replays are taken concurrently. The value of the object is the epoch in which it was read.
func TestP2_AReplayHasTheEpochOfItsSnapshot(t *testing.T) {
	i := epochInformer(t)
	i.apply(sameEpochList("1000000", listed("a", "1000000", 0)))
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				for e := range i.replay(object.Resynced).Events {
					if read := uint64(e.New.Object()); read != e.Epoch {
						t.Errorf("a state of epoch %d is replayed with epoch %d", read, e.Epoch)
						return
					}
				}
			}
		})
	}
	for n := 1; n <= 2000; n++ {
		version := fmt.Sprint(1000000 - n)
		i.apply(newEpochList(version, listed("a", version, n)))
	}
	close(done)
	readers.Wait()
}

// A second Run starts with an empty store; only the number of epochs remains.
func TestP2_AnInformerThatRunsAgainHasNoStatesOfEarlierEpochs(t *testing.T) {
	i := epochInformer(t)
	i.apply(sameEpochList("100", listed("a", "90", 1)))
	i.apply(newEpochList("50", listed("a", "40", unreadable)))
	i.beginWrite()
	i.reset()
	i.endWrite()
	i.apply(sameEpochList("60", listed("a", "55", 2)))
	if got := replayedEpochs(i).lines; !slices.Equal(got, []string{"Added a@55 epoch 1"}) {
		t.Errorf("after the reset: %q", got)
	}
}
