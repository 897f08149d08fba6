package cache

import (
	"testing"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// What was deleted before anybody saw it, and came back while the handler had a backlog, is an update of nothing.
func TestAHandlerIsToldOfWhatNobodySawWithoutAnOldState(t *testing.T) {
	var got []any
	r := &registration{name: "h", handler: ResourceEventHandlerFuncs{
		UpdateFunc: func(old, obj any) { got = append(got, old, obj) },
		DeleteFunc: func(last any) { got = append(got, last) },
	}}
	entry := store.NewEntry(object.Item[any]{Key: "a", Version: "1", Value: "now"})
	for _, e := range []object.Event[*store.Entry[any]]{
		{Type: object.Update, Key: "a", New: entry},
		{Type: object.Delete, Key: "a"},
		{Type: object.Delete, Key: "a", Missed: true},
	} {
		r.handle(&e)
	}
	want := []any{nil, "now", nil, DeletedFinalStateUnknown{Key: "a"}}
	if len(got) != len(want) {
		t.Fatalf("the handler was told %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("told %v as number %d, expected %v", got[i], i, want[i])
		}
	}
}
