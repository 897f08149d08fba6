package store

import (
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mirador-k8s/mirador/object"
)

func mustNew[T any](t testing.TB, opts Options[T]) *Writer[T] {
	t.Helper()
	w, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func put(w *Writer[thing], version int, key, color string) {
	w.Put(object.Item[thing]{
		Key: object.Key(key), Version: object.Version(strconv.Itoa(version)), UID: key, Size: 10,
		Value: thing{Name: key, Color: color},
	})
}

// checkOneMoment returns an error unless the snapshot is one batch of the test's writer: all objects have the same
// color, the index has exactly these objects under that color, and version and sequence number match.
func checkOneMoment(s *Snapshot[thing]) error {
	color := fmt.Sprintf("c%d", s.Seq())
	n := 0
	for k, o := range s.All() {
		if o.Color != color {
			return fmt.Errorf("seq %d: %q has color %q", s.Seq(), k, o.Color)
		}
		if got, ok := s.Get(k); !ok || got != o {
			return fmt.Errorf("seq %d: Get(%q) = %v, %v", s.Seq(), k, got, ok)
		}
		n++
	}
	x, err := s.Index("color")
	if err != nil {
		return err
	}
	if n != s.Len() || x.Len(color) != n {
		return fmt.Errorf("seq %d: %d objects, Len %d, %d in the index", s.Seq(), n, s.Len(), x.Len(color))
	}
	for v := range x.Values() {
		if v != color {
			return fmt.Errorf("seq %d: the index has %q", s.Seq(), v)
		}
	}
	for o := range s.ByIndex("color", color) {
		if o.Color != color {
			return fmt.Errorf("seq %d: %v is under %q", s.Seq(), o, color)
		}
	}
	if want := object.Version(strconv.FormatUint(s.Seq(), 10)); s.Version() != want {
		return fmt.Errorf("seq %d has version %s", s.Seq(), s.Version())
	}
	return nil
}

func TestP8_SnapshotHasOneVersionOfObjectsAndIndexes(t *testing.T) {
	rnd := seedOf(t)
	w := mustNew(t, Options[thing]{Indexes: map[string]IndexFunc[thing]{"color": byColor}, LogBytes: 5000})
	r := w.Reader()
	const rounds = 300
	var done atomic.Bool
	var committed atomic.Uint64
	w.Begin()
	put(w, 1, "k0", "c1")
	committed.Store(w.Commit())

	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var held *Snapshot[thing]
			for last := uint64(0); !done.Load(); {
				floor := committed.Load()
				s := r.Snapshot()
				if s.Seq() < floor || s.Seq() < last {
					t.Errorf("snapshot of batch %d after %d was committed and %d seen", s.Seq(), floor, last)
					return
				}
				last = s.Seq()
				for _, x := range []*Snapshot[thing]{s, held} {
					if x == nil {
						continue
					}
					if err := checkOneMoment(x); err != nil {
						t.Error(err)
						return
					}
				}
				if held == nil || last%7 == 0 {
					held = s
				}
				if e, ok := r.Entry("k0"); !ok || e.Key != "k0" || e.Object().Name != "k0" {
					t.Errorf("Get of a key that always exists returns %+v, %v", e, ok)
					return
				}
				v := s.Version()
				if changes, err := r.Since(v); err == nil {
					for c := range changes {
						if !v.Before(c.Version) {
							t.Errorf("Since(%s) yields a change at %s", v, c.Version)
							return
						}
					}
				}
			}
		})
	}
	for i := 2; i <= rounds; i++ {
		// Every batch sets the color of every object; some objects are added and deleted.
		color, keys := fmt.Sprintf("c%d", i), 1+rnd.IntN(80)
		if i%10 == 0 {
			w.BeginReplace()
			for k := range keys {
				w.Stage(object.Item[thing]{Key: object.Key(fmt.Sprintf("k%d", k)), Value: thing{fmt.Sprintf("k%d", k), color, 0}})
			}
			w.CommitReplace(object.Version(strconv.Itoa(i)), func(_, _ *Entry[thing]) {
				if s := r.Snapshot(); s.Seq() != uint64(i) {
					t.Errorf("while change %d is delivered, the snapshot is at %d", i, s.Seq())
				}
			})
			committed.Store(uint64(i))
			continue
		}
		w.Begin()
		have := w.objects.n
		for k := range max(keys, have) {
			if key := fmt.Sprintf("k%d", k); k < keys {
				put(w, i, key, color)
			} else {
				w.Delete(object.Key(key), object.Version(strconv.Itoa(i)))
			}
		}
		committed.Store(w.Commit())
	}
	done.Store(true)
	wg.Wait()
	w.check(t)
}

func TestP4_AfterCommitEverySnapshotIsAtThatBatchOrLater(t *testing.T) {
	w := mustNew(t, Options[thing]{})
	r := w.Reader()
	for i := 1; i <= 100; i++ {
		w.Begin()
		if i%3 > 0 { // an empty batch has a number, too
			put(w, i, "k", "red")
		}
		seq := w.Commit()
		if i%5 == 0 {
			continue // no reader takes a snapshot
		}
		if s := r.Snapshot(); seq != uint64(i) || s.Seq() != seq {
			t.Fatalf("after batch %d (sequence number %d) the snapshot has sequence number %d", i, seq, s.Seq())
		}
	}
}

func TestP8_TakenSnapshotIsReadableWhileABatchIsOpen(t *testing.T) {
	w := mustNew(t, Options[thing]{})
	r := w.Reader()
	w.Begin()
	put(w, 1, "k", "red")
	w.Commit()
	before := r.Snapshot()
	w.Begin()
	put(w, 2, "k", "blue")
	put(w, 3, "new", "blue")
	if s := r.Snapshot(); s != before {
		t.Fatalf("inside the batch, Snapshot returns number %d", s.Seq())
	}
	if o, _ := r.Get("k"); o.Color != "blue" {
		t.Error("Get does not see a write inside the batch")
	}
	if r.Len() != 1 || r.Version() != "1" {
		t.Errorf("inside the batch, Len %d and Version %s are not of the last one", r.Len(), r.Version())
	}
	w.Commit()
	if o, _ := before.Get("k"); o.Color != "red" || before.Len() != 1 {
		t.Error("the snapshot changed")
	}
	if _, ok := before.Get("new"); ok {
		t.Error("the snapshot has a later object")
	}
}

// On one processor, a writer inside a batch continues only if the reader yields. The scheduler may choose the reader
// again, so one of several tries must succeed.
func TestSnapshotYieldsToTheWriterDuringABatch(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	w := mustNew(t, Options[thing]{})
	r := w.Reader()
	yielded := 0
	for i := range 4 {
		r.Snapshot()
		w.Begin()
		put(w, i+1, "k", "red")
		var wg sync.WaitGroup
		wg.Go(func() { w.Commit() })
		if s := r.Snapshot(); s.Seq() == uint64(i+1) {
			yielded++
		}
		wg.Wait()
	}
	if yielded == 0 {
		t.Error("the writer never continued while a reader called Snapshot")
	}
}

func TestSnapshotDuringABatchWaitsForOneCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := mustNew(t, Options[thing]{})
		r := w.Reader()
		w.Begin()
		put(w, 1, "k", "red")
		got := make(chan uint64, 3)
		for range 3 {
			go func() { got <- r.Snapshot().Seq() }()
		}
		synctest.Wait() // all are parked
		select {
		case seq := <-got:
			t.Fatalf("a reader got snapshot %d of an open batch", seq)
		default:
		}
		w.Commit()
		w.Begin() // at once: the waiting readers must not wait for this batch too
		synctest.Wait()
		for range 3 {
			select {
			case seq := <-got:
				if seq != 1 {
					t.Errorf("a waiting reader got snapshot %d", seq)
				}
			default:
				t.Fatal("a reader still waits after Commit")
			}
		}
		w.Commit()
	})
}

func TestP8_ReadersDoNotWaitForAReplaceOrANewIndex(t *testing.T) {
	w := mustNew(t, Options[thing]{})
	r := w.Reader()
	seen := 0
	look := func(o thing) ([]string, error) {
		// The index function runs inside the change.
		if s := r.Snapshot(); s.Seq() != 1 || s.Len() != 1 {
			t.Errorf("inside the change, the snapshot has number %d", s.Seq())
		}
		seen++
		return []string{o.Color}, nil
	}
	w.Begin()
	put(w, 1, "k", "red")
	w.Commit()
	if err := w.AddIndexes(map[string]IndexFunc[thing]{"look": look}); err != nil {
		t.Fatal(err)
	}
	w.BeginReplace()
	w.Stage(object.Item[thing]{Key: "new", Version: "2"})
	w.CommitReplace("2", nil)
	if s := r.Snapshot(); s.Seq() != 2 || s.Version() != "2" || s.Len() != 1 || seen != 2 {
		t.Errorf("snapshot %d at %s has %d objects, after %d calls", s.Seq(), s.Version(), s.Len(), seen)
	}
}

func TestAWriterInTightLoopDoesNotStarveReaders(t *testing.T) {
	w := mustNew(t, Options[thing]{})
	r := w.Reader()
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 1; !done.Load(); i++ {
			w.Begin()
			put(w, i, "k", "red")
			w.Commit()
		}
	})
	for last, moved := uint64(0), 0; moved < 300; {
		if s := r.Snapshot(); s.Seq() != last {
			last = s.Seq()
			moved++
		}
	}
	done.Store(true)
	wg.Wait()
}
