package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mirador-k8s/mirador/object"
)

func TestListDeletesMissingObjectsAndKeepsUndecodableOnes(t *testing.T) {
	w := mustNew(t, Options[thing]{Indexes: map[string]IndexFunc[thing]{"color": byColor}})
	commit(w, func() {
		for i, key := range []string{"same", "changed", "gone", "broken", "reborn"} {
			put(w, i+1, key, "red")
		}
	})
	r := w.Reader()
	w.BeginReplace()
	for _, c := range []struct {
		key     object.Key
		version object.Version
		uid     string
		want    bool
	}{
		{"same", "1", "same", true},
		{"same", "1", "", true}, // an unknown UID equals every UID
		{"same", "", "same", false},
		{"changed", "7", "changed", false},
		{"reborn", "5", "another uid", false},
		{"unknown", "1", "", false},
	} {
		if got := w.Seen(c.key, c.version, c.uid); got != c.want {
			t.Errorf("Seen(%q, %q, %q) = %v", c.key, c.version, c.uid, got)
		}
	}
	if !w.Keep("broken") || w.Keep("unknown") {
		t.Error("Keep must report whether an object is stored")
	}
	w.Stage(object.Item[thing]{Key: "reborn", Version: "5", UID: "another uid", Value: thing{Color: "blue"}})
	w.Stage(object.Item[thing]{Key: "new", Version: "8", Value: thing{Color: "first"}})
	w.Stage(object.Item[thing]{Key: "changed", Version: "7", Value: thing{Color: "blue"}})
	w.Stage(object.Item[thing]{Key: "new", Version: "9", Value: thing{Color: "blue"}})
	if w.Keep("new") || w.Keep("changed") {
		t.Error("Keep treats a staged object as stored")
	}
	if s := r.Snapshot(); s.Seq() != 1 || s.Len() != 5 {
		t.Error("a list is visible before it is committed")
	}
	if _, ok := r.Get("new"); ok {
		t.Error("Get sees a list before it is committed")
	}
	var got []string
	seq := w.CommitReplace("20", func(old, now *Entry[thing]) {
		if r.Snapshot().Version() != "20" {
			t.Error("the list is not published when its changes are delivered")
		}
		switch {
		case now == nil:
			got = append(got, "- "+string(old.Key))
		case old == nil:
			got = append(got, "+ "+string(now.Key)+" "+string(now.Version))
		default:
			got = append(got, "~ "+string(now.Key)+" "+old.UID+">"+now.UID)
		}
	})
	want := []string{"- gone", "~ reborn reborn>another uid", "+ new 9", "~ changed changed>"}
	if seq != 2 || !slices.Equal(got, want) {
		t.Errorf("batch %d, changes %q, want %q", seq, got, want)
	}
	s := r.Snapshot()
	blue := slices.Collect(s.ByIndex("color", "blue"))
	if s.Len() != 5 || len(blue) != 3 {
		t.Errorf("%d objects, %d blue", s.Len(), len(blue))
	}
	w.check(t)
}

func TestAbortedListHasNoEffect(t *testing.T) {
	w := mustNew(t, Options[thing]{})
	commit(w, func() { put(w, 1, "a", "red"); put(w, 2, "b", "red") })
	w.BeginReplace()
	w.Seen("a", "1", "")
	w.Stage(object.Item[thing]{Key: "c", Version: "3"})
	w.AbortReplace()
	w.BeginReplace() // the aborted list has no effect on this one
	w.Seen("b", "2", "")
	var gone []object.Key
	w.CommitReplace("9", func(old, now *Entry[thing]) {
		if now != nil {
			t.Errorf("%q was delivered as a change", now.Key)
			return
		}
		gone = append(gone, old.Key)
	})
	if !slices.Equal(gone, []object.Key{"a"}) || w.objects.n != 1 {
		t.Errorf("deleted %v, %d left", gone, w.objects.n)
	}
	w.check(t)
}

func TestUnstagedObjectsAreDeletedWithTheList(t *testing.T) {
	w := mustNew(t, Options[thing]{})
	commit(w, func() { put(w, 1, "a", "red"); put(w, 2, "b", "red"); put(w, 3, "c", "red") })
	w.BeginReplace()
	w.Seen("a", "1", "")
	w.Stage(object.Item[thing]{Key: "b", Version: "5"})
	w.Stage(object.Item[thing]{Key: "new", Version: "6"})
	w.Keep("c")
	for _, key := range []object.Key{"a", "b", "new", "unknown"} {
		w.Unstage(key)
	}
	var deleted []string
	w.CommitReplace("9", func(old, now *Entry[thing]) {
		if now != nil {
			t.Errorf("%q was delivered as a change", now.Key)
			return
		}
		deleted = append(deleted, string(old.Key))
	})
	slices.Sort(deleted)
	if _, ok := w.Get("c"); !ok || w.objects.n != 1 || !slices.Equal(deleted, []string{"a", "b"}) {
		t.Errorf("deleted %v, %d left", deleted, w.objects.n)
	}
	w.check(t)
}

func TestListOfUnchangedObjectsDoesNotAllocatePerObject(t *testing.T) {
	w := mustNew(t, Options[thing]{Indexes: map[string]IndexFunc[thing]{"color": byColor}})
	w.BeginReplace()
	keys := make([]object.Key, 10000)
	for i := range keys {
		keys[i] = object.Key(fmt.Sprint("k", i))
		w.Stage(object.Item[thing]{Key: keys[i], Version: "1", Value: thing{Color: "red"}})
	}
	w.CommitReplace("1", nil)
	w.check(t)
	n := testing.AllocsPerRun(5, func() {
		w.BeginReplace()
		for _, k := range keys {
			if !w.Seen(k, "1", "") {
				t.Fatal("not seen")
			}
		}
		w.CommitReplace("1", nil)
	})
	if n > 10 {
		t.Errorf("a list without a change allocates %v times", n)
	}
}

func TestCallsInTheWrongPhasePanic(t *testing.T) {
	idleW := func() *Writer[thing] { return mustNew(t, Options[thing]{}) }
	inBatch := func() *Writer[thing] { w := idleW(); w.Begin(); return w }
	inReplace := func() *Writer[thing] { w := idleW(); w.BeginReplace(); return w }
	for _, c := range []struct {
		name string
		w    *Writer[thing]
		do   func(w *Writer[thing])
		want string
	}{
		{"Put outside", idleW(), func(w *Writer[thing]) { w.Put(object.Item[thing]{}) }, "store: Put: no batch is open"},
		{"Delete outside", idleW(), func(w *Writer[thing]) { w.Delete("a", "") }, "store: Delete: no batch is open"},
		{"SetVersion outside", idleW(), func(w *Writer[thing]) { w.SetVersion("1") }, "store: SetVersion: no batch"},
		{"Commit outside", idleW(), func(w *Writer[thing]) { w.Commit() }, "store: Commit: no batch is open"},
		{"Stage outside", idleW(), func(w *Writer[thing]) { w.Stage(object.Item[thing]{}) },
			"store: Stage: no batch is open"},
		{"second Begin", inBatch(), func(w *Writer[thing]) { w.Begin() }, "store: Begin: a batch is open"},
		{"BeginReplace in batch", inBatch(), func(w *Writer[thing]) { w.BeginReplace() }, "a batch is open"},
		{"Reset in batch", inBatch(), func(w *Writer[thing]) { w.Reset() }, "a batch is open"},
		{"Seen in a batch beside a list", inReplace(), func(w *Writer[thing]) { w.Begin(); w.Seen("a", "1", "") },
			"store: Seen: a batch is open"},
		{"Put in replace", inReplace(), func(w *Writer[thing]) { w.Put(object.Item[thing]{}) }, "a replace is open"},
		{"second BeginReplace", inReplace(), func(w *Writer[thing]) { w.BeginReplace() }, "a replace is open"},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, c.want) {
					t.Errorf("panic %q, want %q", text, c.want)
				}
			}()
			c.do(c.w)
		})
	}
}

func TestStagedReportsAnObjectThatTheListHasTwice(t *testing.T) {
	w := mustNew(t, Options[thing]{})
	w.BeginReplace()
	if w.Staged("a", "1", "u") {
		t.Error("Staged is true before anything is staged")
	}
	w.Stage(object.Item[thing]{Key: "a", Version: "1", UID: "a", Value: thing{Name: "a", Color: "red"}})
	for _, c := range []struct {
		version object.Version
		uid     string
		want    bool
	}{{"1", "a", true}, {"1", "", true}, {"2", "a", false}, {"1", "another uid", false}, {"", "a", false}} {
		if got := w.Staged("a", c.version, c.uid); got != c.want {
			t.Errorf("Staged(a, %q, %q) = %v", c.version, c.uid, got)
		}
	}
	w.AbortReplace()
}

func TestStagingAKeyOftenDoesNotGrowTheTable(t *testing.T) {
	w := mustNew(t, Options[thing]{})
	item := func(key object.Key) object.Item[thing] {
		return object.Item[thing]{Key: key, Version: "1", Value: thing{Name: string(key)}}
	}
	w.BeginReplace()
	for range 100 {
		w.Stage(item("a"))
		w.Stage(item("b"))
		w.Unstage("b")
	}
	w.CommitReplace("1", nil)
	w.check(t)
	if n := len(w.sh.table.Load().cells); w.objects.n != 1 || n > 2*minCells {
		t.Errorf("%d cells for %d objects", n, w.objects.n)
	}
}

func TestListOverridesABatchThatWasCommittedWhileItWasOpen(t *testing.T) {
	w := mustNew(t, Options[thing]{Indexes: map[string]IndexFunc[thing]{"color": byColor}})
	commit(w, func() {
		for i, key := range []string{"same", "repeated", "changed", "gone", "dropped"} {
			put(w, i+1, key, "red")
		}
	})
	r := w.Reader()
	w.BeginReplace()
	if !w.Seen("same", "1", "same") || !w.Seen("dropped", "5", "dropped") || !w.Seen("repeated", "2", "repeated") {
		t.Fatal("Seen does not know the stored objects")
	}
	w.Repeat("repeated")
	w.Stage(object.Item[thing]{Key: "changed", Version: "7", Value: thing{Color: "blue"}})
	w.Stage(object.Item[thing]{Key: "new", Version: "8", Value: thing{Color: "blue"}})
	commit(w, func() {
		for _, key := range []string{"same", "changed", "new", "extra"} {
			w.Put(object.Item[thing]{Key: object.Key(key), Value: thing{Color: "green"}})
		}
		w.Delete("dropped", "")
	})
	if s := r.Snapshot(); s.Len() != 6 || len(slices.Collect(s.ByIndex("color", "green"))) != 4 || !w.ListOpen() {
		t.Errorf("%d objects are readable while the list is open", s.Len())
	}
	var got []string
	w.CommitReplace("20", func(old, now *Entry[thing]) {
		switch {
		case now == nil:
			got = append(got, "- "+string(old.Key))
		case old == nil:
			got = append(got, "+ "+string(now.Key))
		default:
			got = append(got, "~ "+string(now.Key)+" "+old.Object().Color+">"+now.Object().Color)
		}
	})
	slices.Sort(got)
	want := []string{"+ dropped", "- extra", "- gone", "~ changed green>blue", "~ new green>blue",
		"~ repeated red>red", "~ same green>red"}
	if !slices.Equal(got, want) {
		t.Errorf("changes %q, want %q", got, want)
	}
	s := r.Snapshot()
	if s.Len() != 5 || len(slices.Collect(s.ByIndex("color", "red"))) != 3 ||
		len(slices.Collect(s.ByIndex("color", "blue"))) != 2 {
		t.Errorf("%d objects are stored after the list", s.Len())
	}
}
