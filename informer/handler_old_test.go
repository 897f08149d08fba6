package informer

import (
	"testing"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// An object that was deleted before it was delivered, and recreated while the handler had a backlog, has no old state.
func TestAnUpdateOrDeletionOfAnUndeliveredObjectHasNoOldState(t *testing.T) {
	now := "now"
	var got []*string
	f := Funcs[*string]{OnUpdate: func(old, obj *string) { got = append(got, old, obj) },
		OnDelete: func(last *string, _ bool) { got = append(got, last) }}
	w, err := store.New(store.Options[*string]{})
	if err != nil {
		t.Fatal(err)
	}
	entry := w.Last(object.Item[*string]{Key: "a", Value: &now})
	f.handleEntry(&object.Event[*store.Entry[*string]]{Type: object.Updated, Key: "a", New: entry}, "h")
	f.handleEntry(&object.Event[*store.Entry[*string]]{Type: object.Deleted, Key: "a"}, "h")
	if len(got) != 3 || got[0] != nil || got[1] != &now || got[2] != nil {
		t.Errorf("the handler received %v", got)
	}
}
