package informer_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/store"
)

// tagged is an object with a map, which is what a handler most often writes to.
type tagged struct {
	name   string
	labels map[string]string
}

func taggedItem(n, v int) object.Item[*tagged] {
	name := fmt.Sprintf("object-%d", n)
	labels := map[string]string{"app": "shop", "tier": "front"} // the same in all of them
	return object.Item[*tagged]{Key: object.Key(name), Version: object.Version(fmt.Sprint(v)), Size: 10, Owned: true,
		Value: &tagged{name, labels}}
}

// A handler that writes to its objects corrupts what others read, but ends neither the process nor the informer, in
// any layout: the engine does not read objects again that handlers hold. If it did, the race detector would report
// it, and without the race detector the runtime would end the process.
func TestP7_AHandlerThatWritesToItsObjectsDoesNotCrash(t *testing.T) {
	for _, layout := range []store.Layout{store.Live, store.Shared} {
		t.Run(layout.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const objects, rounds = 10, 30
				var first []object.Item[*tagged]
				for n := range objects {
					first = append(first, taggedItem(n, 1))
				}
				r := makeOf(t, newFeedOf(stateOf[*tagged]{10, first}), func(o *informer.Options[*tagged]) { o.Layout = layout })
				var events atomic.Int32
				subscribe(t, r, informer.HandlerFunc[*tagged](func(e object.Event[*tagged]) {
					events.Add(1)
					for i := range 20 {
						e.New.labels[fmt.Sprint("written-", i)] = "by a handler"
					}
					e.New.name = "written"
				}), nil)
				r.run(t)
				version := 10
				for range rounds {
					var changes []source.Change[*tagged]
					for n := range objects {
						version++
						changes = append(changes, source.Change[*tagged]{Type: object.Updated, Item: taggedItem(n, version)})
					}
					r.say(changes...)
				}
				synctest.Wait()
				if n := events.Load(); n < objects*2 {
					t.Errorf("the handler received %d events", n)
				}
				if v := r.Snapshot().Version(); v != object.Version(fmt.Sprint(version)) {
					t.Errorf("the store is at version %s of %d", v, version)
				}
			})
		})
	}
}
