package store

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mirador-k8s/mirador/object"
)

func TestTableTellsKeysOfOneHashApart(t *testing.T) {
	tab := newTable[int](20)
	const hash = 1<<40 + 1
	for i := range 10 {
		key := object.Key(fmt.Sprint(i)) // all of one length, as a hash says
		at, found := tab.find(hash, key)
		if found {
			t.Fatalf("%q is there before it was put", key)
		}
		tab.insert(at, hash, &record[int]{Entry: Entry[int]{Key: key, obj: i}})
	}
	for i := 0; i < 10; i += 2 {
		at, _ := tab.find(hash, object.Key(fmt.Sprint(i)))
		tab.remove(at)
	}
	for i := range 10 {
		r := tab.get(hash, object.Key(fmt.Sprint(i)))
		if (r != nil) != (i%2 == 1) || r != nil && r.obj != i {
			t.Errorf("get(%d) = %v", i, r)
		}
	}
	if at, found := tab.find(hash, "0"); found || tab.cells[at].hash.Load() != emptyCell {
		t.Error("a cell that a key has left is never filled again, not even by the same key")
	}
}

func TestTableShrinksAndForgetsDeletions(t *testing.T) {
	w := mustNew(t, Options[thing]{})
	for round := range 4 {
		w.Begin()
		for i := range 3000 {
			put(w, i+1, fmt.Sprintf("r%d-%d", round, i), "red")
		}
		w.Commit()
		w.Begin()
		for i := range 2990 {
			w.Delete(object.Key(fmt.Sprintf("r%d-%d", round, i)), "")
		}
		w.Commit()
		w.check(t)
	}
	if n := len(w.sh.table.Load().cells); n > 1024 {
		t.Errorf("%d cells for %d objects", n, w.Len())
	}
	// Keys that come and go at a constant number do not make it grow.
	for i := range 20000 {
		w.Begin()
		put(w, i+1, fmt.Sprintf("x%d", i), "red")
		if i >= 50 {
			w.Delete(object.Key(fmt.Sprintf("x%d", i-50)), "")
		}
		w.Commit()
	}
	w.check(t)
	if n := len(w.sh.table.Load().cells); n > 1024 {
		t.Errorf("after much coming and going, %d cells for %d objects", n, w.Len())
	}
}

func TestPointReadsFindAKeyThatStaysWhileOthersComeAndGo(t *testing.T) {
	w := mustNew(t, Options[thing]{})
	r := w.Reader()
	const stay = 20
	w.Begin()
	for i := range stay {
		put(w, 1, fmt.Sprintf("s%d", i), "red")
	}
	w.Commit()
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for i := 0; !done.Load(); i++ {
				key := object.Key(fmt.Sprintf("s%d", i%stay))
				if o, ok := r.Get(key); !ok || o.Name != string(key) {
					t.Errorf("Get(%q) = %v, %v", key, o, ok)
					return
				}
				if o, ok := r.Get("x7"); ok && o.Name != "x7" {
					t.Errorf("Get(x7) = %v", o)
					return
				}
			}
		})
	}
	rnd := seedOf(t)
	for i := range 6000 {
		w.Begin()
		n := rnd.IntN(1 + i%500) // so that the table grows and shrinks
		put(w, i+2, fmt.Sprintf("x%d", n), "red")
		w.Delete(object.Key(fmt.Sprintf("x%d", rnd.IntN(500))), "")
		put(w, i+2, fmt.Sprintf("s%d", i%stay), "blue")
		if i%1000 == 999 {
			for x := range 500 {
				w.Delete(object.Key(fmt.Sprintf("x%d", x)), "")
			}
		}
		w.Commit()
	}
	done.Store(true)
	wg.Wait()
	w.check(t)
}
