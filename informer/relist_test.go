package informer

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/store"
)

// silent is a source without changes: these tests apply the deltas themselves.
type silent struct{}

func (silent) List(context.Context, source.ListOptions) (source.Lister[int], error) {
	return nil, errors.New("nothing to list")
}

func (silent) Watch(context.Context, source.WatchOptions) (source.Watcher[int], error) {
	return nil, errors.New("nothing to watch")
}

func (silent) Describe() source.Description { return source.Description{Resource: "numbers"} }

func delta(t object.ChangeType, key, version string, n int) object.Delta[int] {
	return object.Delta[int]{Type: t, Item: object.Item[int]{Key: object.Key(key), Version: object.Version(version),
		UID: "u", Value: n}}
}

// A list that arrives as a stream may contain a later change of one of its own objects. The delivered events match the
// final state: nothing follows a deletion (P6), and no earlier state follows a later one (P2).
func TestP2P6_AVerbatimRelistDeliversTheFinalState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, err := New(silent{}, &Options[int]{Verbatim: true})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		sub, err := i.SubscribeEntries(func(e *object.Event[*store.Entry[int]]) {
			line := e.Type.String() + " " + string(e.Key)
			if e.New != nil {
				line += " " + string(e.New.Version)
			}
			got = append(got, line)
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		i.apply([]object.Delta[int]{delta(object.ReplaceBegin, "", "", 0),
			delta(object.Replaced, "same", "1", 1), delta(object.Replaced, "goes", "2", 1),
			delta(object.Replaced, "moves", "3", 1),
			delta(object.ReplaceEnd, "", "3", 0)})
		synctest.Wait()
		got = nil
		i.apply([]object.Delta[int]{delta(object.ReplaceBegin, "", "", 0),
			delta(object.Replaced, "same", "1", 1), delta(object.Replaced, "goes", "2", 1),
			delta(object.Replaced, "moves", "3", 1),
			delta(object.Deleted, "goes", "8", 1), delta(object.Replaced, "moves", "9", 2),
			delta(object.ReplaceEnd, "", "9", 0)})
		synctest.Wait()
		if want := []string{"Deleted goes", "Updated same 1", "Updated moves 9"}; !slices.Equal(got, want) {
			t.Errorf("received %q, want %q", got, want)
		}
		sub.Remove()
		<-sub.Done()
	})
}
