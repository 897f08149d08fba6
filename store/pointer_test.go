package store

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mirador-k8s/mirador/object"
)

func TestObjectsOfDifferentTypesAreReturnedUnchanged(t *testing.T) {
	type pair struct{ a, b string }
	type defined *pair
	one := &thing{Name: "one"}
	for name, objects := range map[string][]any{
		"of one type":              {one, &thing{Name: "two"}, (*thing)(nil)},
		"of several":               {one, "text", pair{"a", "b"}, 7, &pair{}, struct{}{}},
		"of a defined type":        {defined(&pair{"a", "b"}), &pair{"c", "d"}, defined(nil)},
		"nothing first":            {nil, one, "text"},
		"no pointer first":         {pair{"a", "b"}, one, pair{"c", "d"}},
		"a pointer to nothing":     {(*thing)(nil), one, (*pair)(nil)},
		"nothing at all, and late": {nil, nil, one, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := mustNew(t, Options[any]{})
			r := w.Reader()
			read := func(key object.Key, want any) {
				t.Helper()
				got, ok := r.Get(key)
				e, known := r.Entry(key)
				held, there := r.Snapshot().Get(key)
				if !ok || !known || !there || got != want || e.Object() != want || held != want {
					t.Errorf("%s is %v (%v), in the snapshot %v (%v), by entry %v; want %v", key, got, ok, held, there, e, want)
				}
			}
			for i, obj := range objects {
				w.Begin()
				w.Put(object.Item[any]{Key: object.Key(fmt.Sprint("each/", i)), Value: obj})
				w.Put(object.Item[any]{Key: "in/turn", Value: obj})
				w.Commit()
				w.check(t)
				read("in/turn", obj)
			}
			for i, obj := range objects {
				read(object.Key(fmt.Sprint("each/", i)), obj)
			}
			if name == "of one type" {
				c := w.sh.table.Load().seek(hashKey(w.sh.cfg.seed, "each/0"), "each/0")
				if atomic.LoadPointer(&c.obj) == nil {
					t.Error("the object is not in its cell")
				}
			}
		})
	}
}

func TestKeysOfEveryLength(t *testing.T) {
	for _, layout := range []Layout{Live, Packed} {
		t.Run(layout.String(), func(t *testing.T) {
			w := mustNew(t, Options[*thing]{Layout: layout, Codec: jsonThings, OnError: func(object.Key, string, error) {}})
			r := w.Reader()
			var keys []object.Key
			for _, n := range []int{1, 2, longKey - 1, longKey, longKey + 1, 2 * longKey} {
				keys = append(keys, object.Key(strings.Repeat("x", n-1)+"a"), object.Key(strings.Repeat("x", n-1)+"b"))
			}
			keys = append(keys, "")
			for i, key := range keys {
				if _, ok := r.Get(key); ok {
					t.Fatalf("a key of %d bytes exists before it was put", len(key))
				}
				w.Begin()
				w.Put(object.Item[*thing]{Key: key, Version: "1", Value: &thing{Name: "first"}})
				w.Put(object.Item[*thing]{Key: key, Version: "1", Value: &thing{Name: "second", Tags: i}})
				w.Commit()
				w.check(t)
			}
			for i, key := range keys {
				got, _ := r.Get(key)
				held, _ := r.Snapshot().Get(key)
				if got == nil || got.Tags != i || held == nil || held.Tags != i {
					t.Errorf("the key of %d bytes, number %d, is %v, in a snapshot %v", len(key), i, got, held)
				}
			}
			for _, key := range keys {
				w.Begin()
				w.Delete(key, "2")
				w.Commit()
				w.check(t)
				if _, ok := r.Get(key); ok {
					t.Errorf("a key of %d bytes exists after it was deleted", len(key))
				}
			}
		})
	}
}

// A reader that has read one state never reads an older one, whether by Get or Entry.
func TestReadsOfOneKeyNeverGoBack(t *testing.T) {
	t.Run("pointers", func(t *testing.T) {
		neverBack(t, func(n int) *thing { return &thing{Tags: n} }, func(o *thing) int { return o.Tags })
	})
	t.Run("any", func(t *testing.T) {
		neverBack(t, func(n int) any {
			if n%3 == 0 {
				return n
			}
			return &thing{Tags: n}
		}, func(o any) int {
			if o, ok := o.(*thing); ok {
				return o.Tags
			}
			return o.(int)
		})
	})
}

func neverBack[T any](t *testing.T, make func(n int) T, number func(T) int) {
	w := mustNew(t, Options[T]{})
	r := w.Reader()
	put := func(n int) {
		w.Begin()
		if n%50 == 0 {
			w.Delete("a/key", object.Version(strconv.Itoa(n)))
		}
		w.Put(object.Item[T]{Key: "a/key", Version: object.Version(strconv.Itoa(n)), Value: make(n)})
		w.Commit()
	}
	put(1)
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for last := 0; !done.Load(); {
				for _, read := range []func() (int, bool){
					func() (int, bool) { o, ok := r.Get("a/key"); return orZero(number, o, ok), ok },
					func() (int, bool) {
						e, ok := r.Entry("a/key")
						if !ok {
							return 0, false
						}
						return number(e.Object()), true
					},
				} {
					n, ok := read()
					if ok && n < last {
						t.Errorf("state %d after state %d", n, last)
						return
					}
					last = max(last, n)
				}
			}
		})
	}
	for n := range 20_000 {
		put(n + 2)
	}
	done.Store(true)
	wg.Wait()
	w.check(t)
}

func orZero[T any](number func(T) int, o T, ok bool) int {
	if !ok {
		return 0
	}
	return number(o)
}

func TestStoreOfPointersBehavesLikeAMap(t *testing.T) {
	rnd := seedOf(t)
	w := mustNew(t, Options[*thing]{Indexes: map[string]IndexFunc[*thing]{
		"digits": func(o *thing) ([]string, error) { return strings.Split(o.Name, ""), nil }, // none to five
	}})
	r, want := w.Reader(), map[object.Key]*thing{}
	for round := range 300 {
		w.Begin()
		for range 1 + rnd.IntN(20) {
			key := object.Key(fmt.Sprint("ns/", rnd.IntN(1+round)))
			if rnd.IntN(3) == 0 {
				w.Delete(key, "")
				delete(want, key)
				continue
			}
			o := &thing{Tags: round}
			for range rnd.IntN(6) {
				o.Name += strconv.Itoa(rnd.IntN(10))
			}
			w.Put(object.Item[*thing]{Key: key, Value: o})
			want[key] = o
		}
		w.Commit()
		w.check(t)
		for i := range round + 1 {
			key := object.Key(fmt.Sprint("ns/", i))
			o, ok := r.Get(key)
			held, there := r.Snapshot().Get(key)
			if o != want[key] || held != want[key] || ok != (want[key] != nil) || there != ok {
				t.Fatalf("round %d: %s is %p, in a snapshot %p, want %p", round, key, o, held, want[key])
			}
		}
		digit, n := strconv.Itoa(round%10), 0
		for o := range r.Snapshot().ByIndex("digits", digit) {
			if n++; !strings.Contains(o.Name, digit) {
				t.Fatalf("round %d: %q is found under %s", round, o.Name, digit)
			}
		}
		for _, o := range want {
			if strings.Contains(o.Name, digit) {
				n--
			}
		}
		if n != 0 {
			t.Fatalf("round %d: %d too many under %s", round, n, digit)
		}
	}
}
