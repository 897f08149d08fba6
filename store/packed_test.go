package store

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"weak"

	"github.com/mirador-k8s/mirador/object"
)

var jsonThings = &object.Codec[*thing]{
	Encode: func(dst []byte, v *thing) ([]byte, error) {
		b, err := json.Marshal(v)
		return append(dst, b...), err
	},
	Decode: func(b []byte) (*thing, error) {
		v := new(thing)
		return v, json.Unmarshal(b, v)
	},
}

// The read cache is bounded by a number of objects, so the objects in it must be small.
func TestReadCacheDoesNotKeepLargeObjects(t *testing.T) {
	w, err := New(Options[*thing]{Layout: Packed, Codec: jsonThings})
	if err != nil {
		t.Fatal(err)
	}
	w.Begin()
	for key, size := range map[object.Key]int{"small": 100, "large": maxRemembered + 1} {
		w.Put(object.Item[*thing]{Key: key, Version: "1", Size: size, Value: &thing{Name: string(key), Color: "red"}})
	}
	w.Commit()
	for key, want := range map[object.Key]bool{"small": true, "large": false} {
		first, _ := w.Reader().Get(key)
		if again, _ := w.Reader().Get(key); (again == first) != want || again.Name != string(key) {
			t.Errorf("%s: the second read returns the same object: %v, want %v", key, again == first, want)
		}
	}
}

// Events that wait for a slow handler hold entries that other handlers have read. These must not keep the decoded
// objects: the backlog of a packed store would be as large as that of a live one.
func TestDecodeOnceDoesNotKeepTheDecodedObject(t *testing.T) {
	const objects, cached = 500, 8
	w, err := New(Options[*thing]{Layout: Packed, Codec: jsonThings, ReadCache: cached})
	if err != nil {
		t.Fatal(err)
	}
	var waiting []*Entry[*thing]
	var decoded []weak.Pointer[thing]
	w.Begin()
	for i := range objects {
		key := fmt.Sprintf("object-%d", i)
		now, _ := w.Put(object.Item[*thing]{Key: object.Key(key), Version: "1", UID: key,
			Value: &thing{Name: key, Color: "red"}})
		waiting = append(waiting, now.DecodeOnce())
	}
	w.Commit()
	for _, e := range waiting {
		first := e.Object()
		if again := e.Object(); again != first {
			t.Fatalf("%s was decoded twice in a row", e.Key)
		}
		decoded = append(decoded, weak.Make(first))
	}
	runtime.GC()
	held := 0
	for _, p := range decoded {
		if p.Value() != nil {
			held++
		}
	}
	if held > cached { // the read cache holds so many
		t.Errorf("%d decoded objects are held by %d entries that wait", held, len(waiting))
	}
	for i, e := range waiting {
		if got := e.Object(); got.Name != fmt.Sprintf("object-%d", i) {
			t.Errorf("%s is now %q", e.Key, got.Name)
		}
	}
}

// An entry keeps its decoded object exactly as long as the read cache does, under concurrent reads.
func TestReadCacheBoundsTheDecodedObjects(t *testing.T) {
	const objects, cached = 100, 8
	for _, guarded := range []bool{false, true} {
		opts := Options[*thing]{Layout: Packed, Codec: jsonThings, ReadCache: cached}
		if guarded {
			opts.OnWritten = func(w Written) { t.Error(w) }
		}
		w := mustNew(t, opts)
		r := w.Reader()
		held := func() (n int) {
			for e := range r.Snapshot().Entries() {
				if e.extra.recent.Load() != nil {
					n++
				}
			}
			return n
		}
		var wg sync.WaitGroup
		for reader := range 4 {
			wg.Go(func() {
				for i := range 20 * objects {
					name := fmt.Sprintf("object-%d", (i*(reader+1)+i/objects)%objects)
					if o, ok := r.Get(object.Key(name)); ok && o.Name != name {
						t.Errorf("%s is %q", name, o.Name)
					}
				}
			})
		}
		for version := range 5 {
			w.Begin()
			for i := range objects {
				name := fmt.Sprintf("object-%d", i)
				w.Put(object.Item[*thing]{Key: object.Key(name), Version: object.Version(strconv.Itoa(version + 1)), UID: name,
					Value: &thing{Name: name}})
			}
			w.Commit()
		}
		wg.Wait()
		if n := held(); n > cached {
			t.Errorf("guarded %v: %d objects are held, and the cache has room for %d", guarded, n, cached)
		}
		last := object.Key(fmt.Sprintf("object-%d", objects-1))
		first, _ := r.Get(last)
		if again, _ := r.Get(last); again != first || held() == 0 {
			t.Errorf("guarded %v: an object that was just read is decoded again", guarded)
		}
		before := r.Snapshot()
		w.Reset()
		for e := range before.Entries() {
			if e.extra.recent.Load() != nil {
				t.Errorf("guarded %v: after Reset %s still has its object", guarded, e.Key)
			}
		}
	}
}

// Entries are plain values: changing a copy does not affect the read cache.
func TestChangingACopyOfAnEntryLeavesTheReadCacheAlone(t *testing.T) {
	const objects, cached = 40, 4
	w := mustNew(t, Options[*thing]{Layout: Packed, Codec: jsonThings, ReadCache: cached})
	w.Begin()
	for i := range objects {
		name := fmt.Sprintf("object-%d", i)
		w.Put(object.Item[*thing]{Key: object.Key(name), Version: "1", UID: name, Value: &thing{Name: name}})
	}
	w.Commit()
	var current Entry[*thing]
	held := 0
	for range 3 {
		for e := range w.Reader().Snapshot().Entries() {
			current = *e
			if got := current.Object(); got.Name != string(e.Key) {
				t.Errorf("the copy of %s has %s", e.Key, got.Name)
			}
		}
	}
	current = Entry[*thing]{}
	for e := range w.Reader().Snapshot().Entries() {
		if e.extra.recent.Load() != nil {
			held++
		}
	}
	if held > cached {
		t.Errorf("%d objects are held, and the cache has room for %d", held, cached)
	}
	w.Reset()
}
