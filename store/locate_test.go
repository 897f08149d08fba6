package store

import (
	"fmt"
	"testing"

	"github.com/mirador-k8s/mirador/object"
)

// What a Get found is used once, and not after the store has changed.
func TestAGetIsNotRememberedBeyondTheNextChange(t *testing.T) {
	w, err := New(Options[string]{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[object.Key]string{}
	check := func(when string) {
		t.Helper()
		for key, v := range want {
			if e, ok := w.Get(key); !ok || e.Object() != v {
				t.Fatalf("%s: %s is %v, %v; want %q", when, key, e, ok, v)
			}
		}
		if w.Len() != len(want) {
			t.Fatalf("%s: %d objects, not %d", when, w.Len(), len(want))
		}
	}
	put := func(key object.Key, v string) {
		w.Put(object.Item[string]{Key: key, Version: "1", Value: v})
		want[key] = v
	}
	w.Begin()
	for round := range 300 {
		asked := object.Key(fmt.Sprintf("asked/%d", round))
		other := object.Key(fmt.Sprintf("other/%d", round))
		w.Get(asked)
		put(other, "between") // it may be where the other was to go, and may make the table grow
		put(asked, "new")
		w.Get(asked)
		put(asked, "again")
		if w.Get(asked); round%3 == 0 {
			w.Delete(asked, "")
			delete(want, asked)
			if round%6 == 0 {
				put(asked, "back")
			}
		}
	}
	w.Commit()
	check("after the changes")
	for key := range want {
		w.Get(key)
		w.Reset()
		if e, ok := w.Get(key); ok {
			t.Fatalf("after a reset there is %v", e)
		}
		break
	}
}

// Two keys may begin at the same byte.
func TestAKeyThatIsTheBeginningOfAnotherIsNotTheOther(t *testing.T) {
	w := mustNew(t, Options[string]{})
	long := object.Key("namespace/name")
	short := long[:len("namespace")]
	w.Begin()
	w.Put(object.Item[string]{Key: long, Version: "1", Value: "long"})
	w.Get(long)
	if e, ok := w.Get(short); ok {
		t.Errorf("after a Get of %s, %s is %v", long, short, e)
	}
	w.Fetch([]object.Key{long})
	if e, ok := w.Get(short); ok {
		t.Errorf("after a Fetch of %s, %s is %v", long, short, e)
	}
	w.Commit()
}
