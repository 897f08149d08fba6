package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mirador-k8s/mirador/object"
)

func TestInvalidIndexesAreErrors(t *testing.T) {
	for name, indexes := range map[string]map[string]IndexFunc[thing]{
		`add index "color": its function is nil`: {"color": nil},
		"its name is empty":                      {"": byColor},
	} {
		if w, err := New(Options[thing]{Indexes: indexes}); err == nil || w != nil || !strings.Contains(err.Error(), name) {
			t.Errorf("New = %v, %v, want an error with %q", w, err, name)
		}
	}
}

type reported struct {
	key   object.Key
	index string
	err   string
}

func TestP12_AFailingIndexFunctionIsReportedAndTheObjectStored(t *testing.T) {
	var got []reported
	w := mustNew(t, Options[thing]{
		Indexes: map[string]IndexFunc[thing]{"color": byColor, "name": byName},
		OnError: func(key object.Key, index string, err error) { got = append(got, reported{key, index, err.Error()}) },
	})
	commit(w, func() { put(w, 1, "a", "red") })
	commit(w, func() { put(w, 2, "a", "error"); put(w, 3, "b", "panic") })
	want := []reported{{"a", "color", "no color"}, {"b", "color", "index function panicked: bad color"}}
	if !slices.Equal(got, want) {
		t.Errorf("reported %v, want %v", got, want)
	}
	s := w.Reader().Snapshot()
	color, _ := s.Index("color")
	if s.Len() != 2 || len(slices.Collect(color.Values())) != 0 || len(slices.Collect(s.ByIndex("name", "a"))) != 1 {
		t.Errorf("len %d, colors %v", s.Len(), slices.Collect(color.Values()))
	}
	commit(w, func() { put(w, 4, "a", "blue") })
	if n := len(slices.Collect(w.Reader().Snapshot().ByIndex("color", "blue"))); n != 1 {
		t.Errorf("the object is in the index %d times after an update for which the function works, want 1", n)
	}
	w.check(t)
}

func TestFailingIndexFunctionWithoutOnErrorIsHarmless(t *testing.T) {
	w := mustNew(t, Options[thing]{Indexes: map[string]IndexFunc[thing]{"color": byColor}})
	commit(w, func() { put(w, 1, "a", "panic") })
	for range w.Reader().Snapshot().ByIndex("nope", "x") {
		t.Error("an index that does not exist yields an object")
	}
}

func TestErrorForAnUnknownIndexListsTheIndexes(t *testing.T) {
	var got []reported
	w := mustNew(t, Options[thing]{
		Indexes: map[string]IndexFunc[thing]{"name": byName, "color": byColor},
		OnError: func(key object.Key, index string, err error) { got = append(got, reported{key, index, err.Error()}) },
	})
	s := w.Reader().Snapshot()
	_, err := s.Index("colour")
	if !errors.Is(err, errUnknownIndex) || err.Error() != `read index "colour": no such index; known are color, name` {
		t.Errorf("Index = %v", err)
	}
	for range s.ByIndex("colour", "red") {
		t.Error("an index that does not exist yields an object")
	}
	if want := []reported{{"", "colour", err.Error()}}; !slices.Equal(got, want) {
		t.Errorf("reported %v, want %v", got, want)
	}
	if _, err := mustNew(t, Options[thing]{}).Reader().Snapshot().Index("x"); !strings.Contains(err.Error(),
		"there are none") {
		t.Errorf("Index = %v", err)
	}
}

func TestIndexesAreAddedAllOrNone(t *testing.T) {
	w := mustNew(t, Options[thing]{Indexes: map[string]IndexFunc[thing]{"color": byColor}})
	for i := range 100 {
		commit(w, func() { put(w, i+1, fmt.Sprint("k", i), "red") })
	}
	before := w.Reader().Snapshot()
	err := w.AddIndexes(map[string]IndexFunc[thing]{"a": byName, "color": byColor})
	if err == nil || !strings.Contains(err.Error(), `index "color"`) {
		t.Errorf("AddIndexes of a name that exists = %v", err)
	}
	if err := w.AddIndexes(map[string]IndexFunc[thing]{"a": byName, "b": nil}); err == nil {
		t.Error("a nil function was added")
	}
	if got := w.sh.set.Load().sorted(); !slices.Equal(got, []string{"color"}) {
		t.Errorf("indexes are %v", got)
	}
	if err := w.AddIndexes(map[string]IndexFunc[thing]{"name": byName, "a": byTag}); err != nil {
		t.Fatal(err)
	}
	if got := w.sh.set.Load().sorted(); !slices.Equal(got, []string{"a", "color", "name"}) {
		t.Errorf("indexes are %v", got)
	}
	after := w.Reader().Snapshot()
	if n := len(slices.Collect(after.ByIndex("name", "k7"))); n != 1 || after.Seq() != before.Seq() {
		t.Errorf("an existing object is in the new index %d times, snapshot %d", n, after.Seq())
	}
	if _, err := before.Index("name"); err == nil {
		t.Error("the earlier snapshot has the new index")
	}
	w.check(t)
}

func TestIndexesAreAddedInsideABatchAndAReplace(t *testing.T) {
	w := mustNew(t, Options[thing]{})
	r := w.Reader()
	commit(w, func() { put(w, 1, "a", "red") })
	before := r.Snapshot()
	w.Begin()
	put(w, 2, "b", "red")
	if err := w.AddIndexes(map[string]IndexFunc[thing]{"color": byColor}); err != nil {
		t.Fatal(err)
	}
	if s := r.Snapshot(); s != before || len(r.sh.set.Load().sorted()) != 0 {
		t.Error("the index is visible before the batch is committed")
	}
	put(w, 3, "c", "red")
	w.Commit()
	w.BeginReplace()
	w.Seen("a", "1", "")
	w.Stage(object.Item[thing]{Key: "d", Value: thing{Name: "d", Color: "red"}})
	if err := w.AddIndexes(map[string]IndexFunc[thing]{"name": byName}); err != nil {
		t.Fatal(err)
	}
	if s := r.Snapshot(); len(slices.Collect(s.ByIndex("color", "red"))) != 3 ||
		len(slices.Collect(s.ByIndex("name", "b"))) != 1 {
		t.Error("while the replace is open, the index lacks the stored objects")
	}
	w.CommitReplace("9", nil)
	w.check(t)
	if s := r.Snapshot(); len(slices.Collect(s.ByIndex("color", "red"))) != 2 ||
		len(slices.Collect(s.ByIndex("name", "d"))) != 1 {
		t.Error("after the replace, the index lacks the objects of the list")
	}
}

func TestAnUpdateComputesTheValuesOfTheNewObjectOnly(t *testing.T) {
	var asked []string
	w := mustNew(t, Options[thing]{Indexes: map[string]IndexFunc[thing]{"color": func(o thing) ([]string, error) {
		asked = append(asked, o.Color)
		return []string{o.Color}, nil
	}}})
	commit(w, func() { put(w, 1, "a", "red"); put(w, 2, "a", "blue"); w.Delete("a", "3") })
	if !slices.Equal(asked, []string{"red", "blue"}) {
		t.Errorf("the index function was called for %v", asked)
	}
}

func TestIndexValuesWithoutObjectsAreRemoved(t *testing.T) {
	w := mustNew(t, Options[thing]{Indexes: map[string]IndexFunc[thing]{"color": byColor}})
	for i := range 5000 {
		commit(w, func() { put(w, i+1, "a", fmt.Sprint("c", i)) })
		if i%100 == 0 {
			w.Reader().Snapshot()
		}
	}
	n := 0
	w.roots[0].each(func(*bucket) bool { n++; return true })
	if n != 1 || len(w.roots[0].items) != 1 {
		t.Errorf("%d values are left", n)
	}
	w.check(t)
}
