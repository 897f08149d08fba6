package cache

import (
	"testing"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// An update has no old state if the object was deleted and added again within a coalesced backlog.
func TestHandlerIsNeverCalledWithNil(t *testing.T) {
	var got []any
	r := &registration{name: "h", handler: ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { got = append(got, "add", obj) },
		UpdateFunc: func(old, obj any) { got = append(got, old, obj) },
		DeleteFunc: func(last any) { got = append(got, last) },
	}}
	w, err := store.New(store.Options[any]{})
	if err != nil {
		t.Fatal(err)
	}
	entry := w.Last(object.Item[any]{Key: "a", Version: "1", Value: "now"})
	for _, e := range []object.Event[*store.Entry[any]]{
		{Type: object.Updated, Key: "a", New: entry},
		{Type: object.Deleted, Key: "a"},
		{Type: object.Deleted, Key: "a", Missed: true},
	} {
		r.handle(&e)
	}
	want := []any{"add", "now", DeletedFinalStateUnknown{Key: "a"}, DeletedFinalStateUnknown{Key: "a"}}
	if len(got) != len(want) {
		t.Fatalf("the handler received %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("argument %d is %v, want %v", i, got[i], want[i])
		}
	}
}
