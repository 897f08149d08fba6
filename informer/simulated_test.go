package informer_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/mirador-k8s/mirador/object"
)

// Bugs that the simulator has found, each in its shortest form.

func TestP6_TheDeletionOfANamesakeDeliversTheKnownObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 5, "u1")}}))
		rec := &recorder{}
		subscribe(t, r, rec, nil)
		r.run(t)
		// u1 was deleted, u2 was created and deleted: the queue has coalesced all of that.
		r.say(gone("a", 20, "u2"))
		synctest.Wait()
		same(t, "events", rec.lines(), []string{"Added a new=5 initial", "Deleted a old=5 missed"})
	})
}

func TestP1_AStateOfAnEarlierEpochDoesNotHideNewerChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := item("a", 40, "u1")
		bad.Decode = func([]byte) (*thing, error) { return nil, errors.New("cannot be read") }
		r := make1(t, newFeed(state{100, []object.Item[*thing]{item("a", 90, "u1"), item("b", 95, "u2")}},
			state{50, []object.Item[*thing]{bad, item("b", 45, "u2")}}))
		r.run(t)
		r.say(bookmark(45)) // older than all that was seen: history was reset
		synctest.Wait()
		same(t, "store", contents(r), []string{"a=90", "b=45"})
		r.say(put("a", 51, "u1"))
		synctest.Wait()
		same(t, "store", contents(r), []string{"a=51", "b=45"})
		r.say(put("a", 50, "u1")) // within the new epoch it never goes back
		synctest.Wait()
		same(t, "store", contents(r), []string{"a=51", "b=45"})
	})
}

func TestP13_AnObjectTwiceInAListIsTransformedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 5, "u1"), item("a", 5, "u1"), item("a", 6, "u1")}}),
			func(o *options) { o.Transform = func(o *thing) (*thing, error) { calls++; return o, nil } })
		r.run(t)
		same(t, "store", contents(r), []string{"a=6"})
		if calls != 2 {
			t.Errorf("two versions of an object were transformed %d times", calls)
		}
	})
}
