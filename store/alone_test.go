package store

import (
	"testing"

	"github.com/mirador-k8s/mirador/object"
)

// PutAlone leaves everything as it is where there is more to a change than it sees to.
func TestPutAloneTakesNothingElse(t *testing.T) {
	item := func(key object.Key, version object.Version) *object.Item[thing] {
		return &object.Item[thing]{Key: key, Version: version, Value: thing{Name: string(key), Color: "red"}}
	}
	with := func(opts Options[thing]) *Writer[thing] {
		opts.Codec = thingCodec
		w, err := New(opts)
		if err != nil {
			t.Fatal(err)
		}
		w.Begin()
		w.Put(*item("a", "5"))
		w.Put(*item("b", "9"))
		w.Commit()
		return w
	}
	empty, err := New(Options[thing]{})
	if err != nil {
		t.Fatal(err)
	}
	behind := with(Options[thing]{})
	behind.Begin()
	behind.SetVersion("7") // an object may be later than the store, where a list is
	behind.Commit()
	for name, c := range map[string]struct {
		w  *Writer[thing]
		it *object.Item[thing]
	}{
		"an object that is not there":                  {with(Options[thing]{}), item("c", "10")},
		"the first object of all":                      {empty, item("a", "10")},
		"a version that the store has":                 {with(Options[thing]{}), item("a", "9")},
		"an older version":                             {with(Options[thing]{}), item("a", "6")},
		"a version older than the object's":            {behind, item("b", "8")},
		"no version":                                   {with(Options[thing]{}), item("a", "")},
		"a version that is none":                       {with(Options[thing]{}), item("a", "x")},
		"a store with a log":                           {with(Options[thing]{LogBytes: 1000}), item("a", "10")},
		"a shared layout":                              {with(Options[thing]{Layout: Shared}), item("a", "10")},
		"a packed layout":                              {with(Options[thing]{Layout: Packed}), item("a", "10")},
		"a store that looks who writes to its objects": {with(Options[thing]{OnWritten: func(Written) {}}), item("a", "10")},
	} {
		before := c.w.Reader().Version()
		if now, old, seq := c.w.PutAlone(c.it); now != nil || old != nil || seq != 0 {
			t.Errorf("%s was taken: %v, %v, %d", name, now, old, seq)
		}
		if got := c.w.Reader().Version(); got != before {
			t.Errorf("%s: the version went from %s to %s", name, before, got)
		}
		c.w.check(t)
		c.w.Begin() // and the writer is as free as it was
		c.w.Commit()
	}
	for _, version := range []object.Version{"10", "1"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("PutAlone of version %s inside a batch went unnoticed", version)
				}
			}()
			w := with(Options[thing]{})
			w.Begin()
			w.PutAlone(item("a", version))
		}()
	}
}

// What was fetched for a batch that never came is let go of.
func TestPutAloneEndsWhatWasFetched(t *testing.T) {
	w, err := New(Options[thing]{})
	if err != nil {
		t.Fatal(err)
	}
	w.Begin()
	put(w, 1, "a", "red")
	w.Commit()
	w.Fetch([]object.Key{"a", "b"})
	it := object.Item[thing]{Key: "a", Version: "2"}
	if now, _, _ := w.PutAlone(&it); now == nil || w.fetched != nil {
		t.Errorf("put %v, and there is still %v", now, w.fetched)
	}
}

// Who asks for a snapshot gets what was put alone, and one that was given out before stays as it is.
func TestPutAloneIsSeenAtOnce(t *testing.T) {
	w, err := New(Options[thing]{Indexes: map[string]IndexFunc[thing]{"color": byColor}})
	if err != nil {
		t.Fatal(err)
	}
	w.Begin()
	put(w, 1, "a", "red")
	put(w, 2, "b", "red")
	last := w.Commit()
	var held []*Snapshot[thing]
	var shown []*Entry[thing]
	for i, color := range []string{"red", "red", "red", "blue", "blue", "red"} {
		if i == 2 { // with a batch in between that changes nothing: nobody has the last snapshot, and its parts are shared all the same
			w.Begin()
			last = w.Commit()
		}
		it := object.Item[thing]{Key: "a", Version: object.Version("3" + string(rune('0'+i))), Value: thing{Name: "a", Color: color}}
		now, old, seq := w.PutAlone(&it)
		shown = append(shown, now)
		if last++; now == nil || old == nil || seq != last {
			t.Fatalf("change %d: %v, %v, %d", i, now, old, seq)
		}
		w.check(t)
		s := w.Reader().Snapshot()
		if s.Seq() != seq || s.Version() != it.Version || w.Reader().Version() != it.Version {
			t.Errorf("change %d: a snapshot of batch %d at %s, the reader at %s", i, s.Seq(), s.Version(), w.Reader().Version())
		}
		if e, _ := s.Entry("a"); e != now {
			t.Errorf("change %d: the snapshot has %+v", i, e)
		}
		n := 0
		for range s.ByIndex("color", color) {
			n++
		}
		if want := map[string]int{"red": 2, "blue": 1}[color]; n != want {
			t.Errorf("change %d: %d objects are %s, not %d", i, n, color, want)
		}
		held = append(held, s)
		for n, s := range held {
			if e, _ := s.Entry("a"); e != shown[n] {
				t.Errorf("after change %d snapshot %d has %+v", i, n, e)
			}
		}
	}
}
