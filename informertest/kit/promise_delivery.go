package kit

import (
	"slices"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/object"
)

// initialDelivery is P5: the objects that exist at first are delivered, marked as initial, before the handler is
// synced.
func initialDelivery() []promise {
	const n = 50
	check := func(k *kit, s Subject, start func()) {
		rec := &recorder{}
		var synced func() bool
		early := make(chan struct{}, n)
		ready := make(chan struct{})
		synced = k.handle(s, "slow", func(e informertest.Event) {
			<-ready
			time.Sleep(10 * time.Millisecond)
			if rec.len() < n && synced() {
				early <- struct{}{}
			}
			rec.handle(e)
		})
		close(ready)
		start()
		k.eventually(time.Minute, "the handler has synced", synced)
		if rec.len() < n {
			k.errorf("synced after %d of %d", rec.len(), n)
		}
		if len(early) > 0 {
			k.errorf("synced before the last initial event was handled")
		}
		for _, e := range rec.all() {
			if e.Type != object.Added || !e.Initial {
				k.errorf("%s of %s, initial %v, in the initial state", e.Type, e.Key, e.Initial)
			}
		}
		k.create("later")
		k.eventually(time.Minute, "a later pod is delivered", func() bool { return len(rec.of(keyOf("later"))) > 0 })
		if rec.of(keyOf("later"))[0].Initial {
			k.errorf("a later pod is marked initial")
		}
	}
	return []promise{
		{"P5_InitialStateIsDeliveredBeforeSynced", func(k *kit) {
			k.createMany(n)
			s := k.subject()
			check(k, s, func() { k.start(s) })
		}},
		{"P5_LateHandlerGetsTheStateBeforeSynced", func(k *kit) {
			k.createMany(n)
			s := k.subject()
			k.startSynced(s)
			check(k, s, func() {})
		}},
	}
}

// deletes is P6: no deletion is lost, none is delivered twice.
func deletes() []promise {
	return []promise{
		{"P6_DeleteIsAnnouncedOnce", func(k *kit) {
			k.create("a", "b")
			s := k.subject()
			rec := k.record(s, "recorder")
			k.startSynced(s)
			k.reopen(informertest.Fault{Verbs: []string{"watch"}, DuplicateFrame: 1, Times: 1})
			k.delete("a")
			k.converges(s, time.Minute)
			k.eventually(time.Minute, "the deletion is delivered", func() bool { return len(deletions(rec, "a")) > 0 })
			time.Sleep(10 * time.Minute)
			if d := deletions(rec, "a"); len(d) != 1 || d[0].Missed {
				k.errorf("a deletion that was seen was delivered %d times, missed: %v", len(d), len(d) > 0 && d[0].Missed)
			}
		}},
		{"P6_DeleteMissedDuringGapIsAnnounced", func(k *kit) {
			k.create("a", "b")
			s := k.subject()
			rec := k.record(s, "recorder")
			k.startSynced(s)
			k.unseen(func() { k.delete("a") })
			k.converges(s, 10*time.Minute)
			synctest.Wait()
			if d := deletions(rec, "a"); len(d) != 1 || !d[0].Missed {
				k.errorf("a deletion that was missed was delivered %d times, marked missed: %v", len(d), len(d) > 0 && d[0].Missed)
			}
			if d := deletions(rec, "b"); len(d) != 0 {
				k.errorf("a pod that exists was delivered as deleted %d times", len(d))
			}
		}},
		{"P6_RecreatedUnseenIsDeleteAndAdd", func(k *kit) {
			k.create("a")
			s := k.subject()
			rec := k.record(s, "recorder")
			k.startSynced(s)
			k.unseen(func() {
				k.delete("a")
				k.create("a")
			})
			k.converges(s, 10*time.Minute)
			synctest.Wait()
			var got []object.ChangeType
			for _, e := range rec.of(keyOf("a")) {
				got = append(got, e.Type)
			}
			if want := []object.ChangeType{object.Added, object.Deleted, object.Added}; !slices.Equal(got, want) {
				k.errorf("received %v, want %v", got, want)
			}
		}},
	}
}

func deletions(r *recorder, name string) []informertest.Event {
	return slices.DeleteFunc(r.of(keyOf(name)), func(e informertest.Event) bool { return e.Type != object.Deleted })
}

// isolation is P7: a blocked or panicking handler does not affect others.
func isolation() []promise {
	return []promise{
		{"P7_BlockedHandlerDelaysNoOther", func(k *kit) {
			k.create("a")
			s := k.subject()
			k.handle(s, "blocked", func(informertest.Event) { <-k.freed })
			rec := k.record(s, "other")
			k.startSynced(s)
			for range 100 {
				v := k.update("a")
				synctest.Wait()
				if e := rec.all(); len(e) == 0 || versionIn(e[len(e)-1].New) != v {
					k.fatalf("version %s was not delivered to the other handler at once", v)
				}
			}
		}},
		{"P7_BacklogOfABlockedHandlerIsBounded", func(k *kit) {
			k.setup.Backlog = 100
			k.create("a", "b", "c")
			s := k.subject()
			rec := &recorder{}
			gate := make(chan struct{})
			k.handle(s, "blocked", func(e informertest.Event) {
				select {
				case <-gate:
				case <-k.freed:
				}
				rec.handle(e)
			})
			k.startSynced(s)
			for i := range 3000 {
				k.update([]string{"a", "b", "c"}[i%3])
				if i%50 == 0 {
					synctest.Wait()
				}
			}
			k.converges(s, time.Minute)
			close(gate)
			k.eventually(time.Minute, "the handler has caught up", func() bool {
				for _, name := range []string{"a", "b", "c"} {
					e := rec.of(keyOf(name))
					if len(e) == 0 || versionIn(e[len(e)-1].New) != k.server.Versions(pods)[keyOf(name)] {
						return false
					}
				}
				return true
			})
			if n := rec.len(); n > 3*k.setup.Backlog {
				k.errorf("%d events waited, at most %d may", n, k.setup.Backlog)
			}
			k.checkOld(rec)
		}},
		{"P7_PanickingHandlerCrashesNothing", func(k *kit) {
			k.create("a")
			s := k.subject()
			k.handle(s, "panics", func(informertest.Event) { panic("a handler that panics") })
			rec := k.record(s, "other")
			k.startSynced(s)
			for range 20 {
				k.update("a")
			}
			v := k.server.Version()
			k.converges(s, time.Minute)
			k.eventually(time.Minute, "the other handler has received everything", func() bool {
				e := rec.all()
				return len(e) > 0 && versionIn(e[len(e)-1].New) == v
			})
			if k.problemCount() == 0 {
				k.errorf("a panic was not reported")
			}
		}},
	}
}
