package store

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mirador-k8s/mirador/object"
)

func TestTableDistinguishesKeysWithTheSameHash(t *testing.T) {
	tab := newTable[int](20)
	const hash = 1<<40 + 1
	for i := range 10 {
		key := object.Key(fmt.Sprint(i)) // all of one length, because a hash contains the length
		at, found := tab.find(hash, key)
		if found {
			t.Fatalf("%q exists before it was put", key)
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
		t.Error("the cell of a deleted key would be used again")
	}
}

func TestTableShrinksAfterDeletions(t *testing.T) {
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
		t.Errorf("%d cells for %d objects", n, w.objects.n)
	}
	// Adding and deleting as many keys does not make the table grow.
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
		t.Errorf("after many additions and deletions, %d cells for %d objects", n, w.objects.n)
	}
}

func TestKeysLongerThanTheirHashCanEncode(t *testing.T) {
	tab := newTable[int](4)
	const hash = 1<<40 + longKey
	long := strings.Repeat("x", longKey)
	for i, key := range []object.Key{object.Key(long), object.Key(long + "x"), object.Key(long + "y")} {
		at, found := tab.find(hash, key)
		if found {
			t.Fatalf("key %d is found before it was put", i)
		}
		tab.insert(at, hash, &record[int]{Entry: Entry[int]{Key: key, obj: i}})
		if got, ok := tab.object(hash, key); !ok || got != i {
			t.Errorf("key %d is %v, %v", i, got, ok)
		}
	}
}

func TestSnapshotDistinguishesKeysWithTheSameWord(t *testing.T) {
	for _, layout := range []Layout{Live, Packed} {
		w := mustNew(t, Options[thing]{Layout: layout, Codec: thingCodec})
		w.Begin()
		put(w, 1, "a", "red")
		put(w, 2, "b", "red")
		w.Commit()
		s := w.Reader().Snapshot()
		hash := hashKey(s.cfg.seed, "a")
		twin := Snapshot[thing]{cfg: s.cfg, objects: s.objects, keys: s.keys}
		const cells = 8
		for range cells {
			twin.words.push(1, emptyCell)
		}
		first := start(hash, cells)
		twin.words.set(1, first, word(1, hash)) // the word of b
		twin.words.set(1, next(first, cells), word(0, hash))
		if o, ok := twin.Get("a"); !ok || o.Name != "a" {
			t.Errorf("%v: Get(a) = %v, %v", layout, o, ok)
		}
	}
}

// A put stores the object first and then the record. A reader of the record in between waits for it.
func TestEntryIsNeverOlderThanTheObjectReadBefore(t *testing.T) {
	tab := newTable[*thing](4)
	const hash = 1<<40 + 1
	was, now := &record[*thing]{Entry: Entry[*thing]{Key: "a",
		obj: &thing{}}}, &record[*thing]{Entry: Entry[*thing]{Key: "a", obj: &thing{}}}
	at, _ := tab.find(hash, "a")
	tab.insert(at, hash, was)
	c := &tab.cells[at]
	atomic.StorePointer(&c.obj, tab.pointers.of(now))
	if o, _ := tab.object(hash, "a"); o != now.obj {
		t.Fatal("the new object is not returned before the record is stored")
	}
	started, got := make(chan struct{}), make(chan *record[*thing], 1)
	go func() {
		close(started)
		got <- tab.get(hash, "a")
	}()
	<-started
	for range 1000 {
		runtime.Gosched()
	}
	c.rec.Store(now)
	if rec := <-got; rec != now {
		t.Error("the old record was returned")
	}
}

func TestGetFindsAKeyWhileOthersAreAddedAndDeleted(t *testing.T) {
	point := func(name, color string) *thing { return &thing{Name: name, Color: color} }
	t.Run("structs", func(t *testing.T) {
		addAndDelete(t, Options[thing]{}, func(name, color string) thing { return *point(name, color) },
			func(o thing) string { return o.Name })
	})
	t.Run("packed", func(t *testing.T) {
		addAndDelete(t, Options[thing]{Layout: Packed, Codec: thingCodec},
			func(name, color string) thing { return *point(name, color) }, func(o thing) string { return o.Name })
	})
	t.Run("pointers", func(t *testing.T) {
		addAndDelete(t, Options[*thing]{}, point, func(o *thing) string { return o.Name })
	})
	t.Run("any", func(t *testing.T) {
		addAndDelete(t, Options[any]{}, func(name, color string) any { return point(name, color) },
			func(o any) string { return o.(*thing).Name })
	})
}

func addAndDelete[T any](t *testing.T, opts Options[T], point func(name, color string) T, nameOf func(T) string) {
	w := mustNew(t, opts)
	r := w.Reader()
	put := func(v int, name, color string) {
		w.Put(object.Item[T]{Key: object.Key(name), Version: object.Version(strconv.Itoa(v)), Value: point(name, color)})
	}
	const stay = 20
	w.Begin()
	for i := range stay {
		put(1, fmt.Sprintf("s%d", i), "red")
	}
	w.Commit()
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for i := 0; !done.Load(); i++ {
				key := object.Key(fmt.Sprintf("s%d", i%stay))
				if o, ok := r.Get(key); !ok || nameOf(o) != string(key) {
					t.Errorf("Get(%q) = %v, %v", key, o, ok)
					return
				}
				if e, ok := r.Entry(key); !ok || e.Key != key || nameOf(e.Object()) != string(key) {
					t.Errorf("Entry(%q) = %v, %v", key, e, ok)
					return
				}
				if o, ok := r.Get("x7"); ok && nameOf(o) != "x7" {
					t.Errorf("Get(x7) = %v", o)
					return
				}
			}
		})
	}
	rnd := seedOf(t)
	for i := range 3000 {
		w.Begin()
		n := rnd.IntN(1 + i%500) // so that the table grows and shrinks
		put(i+2, fmt.Sprintf("x%d", n), "red")
		w.Delete(object.Key(fmt.Sprintf("x%d", rnd.IntN(500))), "")
		put(i+2, fmt.Sprintf("s%d", i%stay), "blue")
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
