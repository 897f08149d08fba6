package store

import (
	"encoding/json"
	"fmt"
	"runtime"
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

// The read cache is bounded by a number, so what is in it must be small.
func TestALargeObjectIsNotRemembered(t *testing.T) {
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
			t.Errorf("%s: the same object comes again: %v, want %v", key, again == first, want)
		}
	}
}

// Events that wait for a slow handler hold entries that others have read. What those
// decoded must not wait with them: then a packed store's backlog would be as large as a
// live one's.
func TestOnceHoldsNoDecodedObject(t *testing.T) {
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
		now, _ := w.Put(object.Item[*thing]{Key: object.Key(key), Version: "1", UID: key, Value: &thing{Name: key, Color: "red"}})
		waiting = append(waiting, now.Once())
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
	if held > 4*cached { // what the read cache holds, rounded up to its places
		t.Errorf("%d decoded objects are held by %d entries that wait", held, len(waiting))
	}
	for i, e := range waiting {
		if got := e.Object(); got.Name != fmt.Sprintf("object-%d", i) {
			t.Errorf("%s is now %q", e.Key, got.Name)
		}
	}
}
