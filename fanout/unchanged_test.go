package fanout_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/object"
)

// If an unchanged update and a changed one are coalesced, the result is changed.
func TestCoalescedUpdateIsUnchangedOnlyIfAllAre(t *testing.T) {
	unchanged := func(key object.Key) event {
		return event{Type: object.Updated, Key: key, Old: 1, New: 1, Unchanged: true}
	}
	var seen []string
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		entered, leave := make(chan struct{}), make(chan struct{})
		join(t, f, opts{MaxBacklog: 1, Handle: func(e event) {
			if e.Key == "stuck" {
				close(entered)
				<-leave
				return
			}
			seen = append(seen, fmt.Sprintf("%s %s unchanged=%t", e.Type, e.Key, e.Unchanged))
		}})
		f.Publish(1, []event{add("stuck", 1)})
		<-entered
		f.Publish(2, []event{
			unchanged("twice"), unchanged("twice"),
			update("before", 0, 1), unchanged("before"),
			unchanged("after"), update("after", 1, 2),
			add("new", 1), unchanged("new"),
			remove("back", 1), add("back", 1), unchanged("back"),
		})
		close(leave)
		synctest.Wait()
		stop(t, f)
	})
	want := []string{
		"Updated twice unchanged=true",
		"Updated before unchanged=false",
		"Updated after unchanged=false",
		"Added new unchanged=false",
		"Deleted back unchanged=false", "Added back unchanged=false",
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("seen %q\nwant %q", seen, want)
	}
}
