package informer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

func amend(r *running, name string, n int) {
	r.Amend(func(w *store.Writer[*thing]) {
		w.Begin()
		w.Put(object.Item[*thing]{Key: object.Key(name), Value: &thing{name: name, n: n}})
		w.Commit()
	})
}

func TestAmendedObjectsAreReadableAndDeliverNoEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, "")}}))
		rec := &recorder{}
		subscribe(t, r, rec, &informer.HandlerOptions{FromNow: true, Resync: time.Minute})
		amend(r, "by-hand", 7)
		same(t, "store", contents(r), []string{"by-hand=7"})
		r.run(t)
		synctest.Wait()
		same(t, "store after the list", contents(r), []string{"a=1"})
		amend(r, "later", 8)
		time.Sleep(61 * time.Second) // the resync waits for the amendment's sequence number
		synctest.Wait()
		got := rec.lines()
		same(t, "events", got[:min(2, len(got))], []string{"Deleted by-hand old=7 missed", "Added a new=1 initial"})
		if len(got) != 4 {
			t.Errorf("a resync gave %d objects, want 2: %q", len(got)-2, got)
		}
	})
}

func TestAHandlerFromNowDoesNotReceiveStoredObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, "")}}))
		r.run(t)
		synctest.Wait()
		rec := &recorder{}
		sub := subscribe(t, r, rec, &informer.HandlerOptions{FromNow: true})
		r.say(put("b", 11, ""))
		synctest.Wait()
		same(t, "events", rec.lines(), []string{"Added b new=11"})
		if !sub.HasSynced() {
			t.Error("a handler that wants nothing of the past has not synced")
		}
	})
}
