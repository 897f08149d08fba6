package fanout_test

import (
	"context"
	"fmt"
	"iter"

	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/object"
)

// Two handlers share one stream. The second joins late and receives the state first.
func Example() {
	type Pod struct{ Name, Phase string }
	f := fanout.New[Pod](fanout.Options{})
	show := func(name string) func(object.Event[Pod]) {
		return func(e object.Event[Pod]) {
			fmt.Printf("%s: %s %s %s -> %s (initial: %t)\n", name, e.Type, e.Key, e.Old.Phase, e.New.Phase, e.Initial)
		}
	}
	updated := make(chan struct{}) // only to make the order of the output fixed
	first, err := f.Join(fanout.HandlerOptions[Pod]{Name: "first", Handle: func(e object.Event[Pod]) {
		show("first")(e)
		if e.Type == object.Updated {
			close(updated)
		}
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	pending, running := Pod{"nginx", "Pending"}, Pod{"nginx", "Running"}
	f.Publish(1, []object.Event[Pod]{{Type: object.Added, Key: "web/nginx", New: pending, Initial: true}})
	f.MarkSynced(1)
	<-first.Synced()
	f.Publish(2, []object.Event[Pod]{{Type: object.Updated, Key: "web/nginx", Old: pending, New: running}})
	<-updated

	second, err := f.Join(fanout.HandlerOptions[Pod]{
		Name:   "second",
		Handle: show("second"),
		Replay: func() fanout.Replay[Pod] {
			var state iter.Seq[object.Event[Pod]] = func(yield func(object.Event[Pod]) bool) {
				yield(object.Event[Pod]{Key: "web/nginx", New: running})
			}
			return fanout.Replay[Pod]{Seq: 2, Events: state}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	<-second.Synced()
	fmt.Println("stopped:", f.Stop(context.Background()))
	// Output:
	// first: Added web/nginx  -> Pending (initial: true)
	// first: Updated web/nginx Pending -> Running (initial: false)
	// second: Added web/nginx  -> Running (initial: true)
	// stopped: <nil>
}
