package kit

import (
	"context"
	"maps"
	"strings"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/informertest"
)

// stopping is P9: after a stop nothing runs and no event is delivered.
func stopping() []promise {
	return []promise{
		{"P9_NothingIsToldAfterRunHasReturned", func(k *kit) {
			k.createMany(20)
			s := k.subject()
			rec := k.record(s, "recorder")
			r := k.startSynced(s)
			k.update("pod-0001")
			r.cancel()
			<-r.done
			delivered := rec.len()
			k.update("pod-0001")
			k.delete("pod-0002")
			time.Sleep(time.Hour)
			if n := rec.len(); n != delivered {
				k.errorf("%d events were delivered after the end", n-delivered)
			}
			if n := k.server.OpenWatches(); n != 0 {
				k.errorf("%d watches are open after the end", n)
			}
		}},
		{"P9_StopNamesTheHandlersThatStillRun", func(k *kit) {
			k.create("a")
			s := k.subject()
			k.handle(s, "the-slow-one", func(informertest.Event) { <-k.freed })
			k.start(s)
			k.eventually(time.Minute, "the subject has synced", s.Synced)
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			start := time.Now()
			err := s.Stop(ctx)
			if err == nil || !strings.Contains(err.Error(), "the-slow-one") {
				k.errorf("stopping with a handler that runs: %v", err)
			}
			if took := time.Since(start); took > 2*time.Second {
				k.errorf("Stop returned after %v, its context ended after 1s", took)
			}
		}},
		{"P9_StateStaysReadableAfterRunHasReturned", func(k *kit) {
			k.createMany(5)
			s := k.subject()
			r := k.startSynced(s)
			before := s.Versions()
			r.cancel()
			<-r.done
			k.update("pod-0001")
			k.delete("pod-0002")
			synctest.Wait()
			if after := s.Versions(); !maps.Equal(before, after) {
				k.errorf("before the stop the store had %v, and after it %v", before, after)
			}
			if p, ok := s.Get(keyOf("pod-0002")); !ok || versionIn(p) != before[keyOf("pod-0002")] {
				k.errorf("a pod that the store had at the stop is read as %v after it", p)
			}
		}},
		{"P9_SubjectCanStartAgain", func(k *kit) {
			k.createMany(5)
			s := k.subject()
			r := k.startSynced(s)
			r.cancel()
			<-r.done
			k.update("pod-0001")
			k.delete("pod-0002")
			k.create("new")
			k.start(s)
			k.converges(s, time.Minute)
		}},
	}
}

// kinds is P10: objects carry their apiVersion and kind.
func kinds() []promise {
	check := func(k *kit, where string, p *corev1.Pod) {
		if p.APIVersion != "v1" || p.Kind != "Pod" {
			k.errorf("%s the pod %s has apiVersion %q and kind %q", where, p.Name, p.APIVersion, p.Kind)
		}
	}
	run := func(k *kit) {
		k.create("listed")
		s := k.subject()
		rec := k.record(s, "recorder")
		k.startSynced(s)
		k.create("watched")
		k.converges(s, time.Minute)
		synctest.Wait()
		for _, name := range []string{"listed", "watched"} {
			p, ok := s.Get(keyOf(name))
			if !ok {
				k.fatalf("the pod %s is not stored", name)
			}
			check(k, "in the store", p)
		}
		for _, e := range rec.all() {
			check(k, "in an event", e.New)
		}
	}
	return []promise{
		{"P10_ObjectsCarryTheirKind", run},
		{"P10_ListedObjectsCarryTheirKind", func(k *kit) {
			k.server.Inject(informertest.Fault{RefuseInitialEvents: true})
			run(k)
		}},
	}
}
