package kit

import (
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/informertest"
)

const (
	// hourly is how many requests an informer may send in an hour in which every request fails: one in six seconds. A
	// backoff of up to 30 s sends fewer.
	hourly = 600
	// quietHourly is the same for a resource that is not served at all.
	quietHourly = 150
	// fuse ends a fault after this many requests: in fake time a client that retries without a pause would never end.
	fuse = 1500
)

// storms is P11: the number of requests is bounded, whatever the server does.
func storms() []promise {
	either, watches := []string{"list", "watch"}, []string{"watch"}
	out := []promise{}
	for _, c := range []struct {
		name  string
		fault informertest.Fault
	}{
		{"TheServerFails", informertest.Fault{Verbs: either, Code: 500}},
		{"TheServerIsUnavailable", informertest.Fault{Verbs: either, Code: 503}},
		{"TheServerIsBusy", informertest.Fault{Verbs: either, Code: 429}},
		{"AccessIsDenied", informertest.Fault{Verbs: either, Code: 403}},
		{"ConnectionsBreak", informertest.Fault{Verbs: either, Refuse: true}},
		{"BodiesAreCutShort", informertest.Fault{Verbs: either, CutAfterBytes: 40}},
		{"EveryFrameIsGarbage", informertest.Fault{Verbs: either, GarbageFrame: 1}},
		{"EveryVersionIsTooOld", informertest.Fault{Verbs: watches, Code: 410, AsEvent: true}},
		{"EveryVersionIsTooOldAtOnce", informertest.Fault{Verbs: watches, Code: 410}},
		{"EveryVersionIsTooLarge", informertest.Fault{Verbs: either, Status: informertest.TooLargeVersion(99, 1)}},
		{"WatchesCloseAtOnce", informertest.Fault{Verbs: watches, CloseAtOnce: true}},
		{"WatchesAreCutAfterTheirFirstFrame", informertest.Fault{Verbs: watches, CutAfterFrames: 1}},
	} {
		out = append(out, promise{"P11_NoStormWhen" + c.name, func(k *kit) { k.noStorm(c.fault) }})
	}
	return append(out,
		promise{"P11_RetryAfterIsHonoured", func(k *kit) {
			k.create("a")
			k.server.Inject(informertest.Fault{Verbs: either, Code: 429, RetryAfter: time.Minute, Times: fuse})
			k.start(k.subject())
			// The time is long enough to detect a subject that honours Retry-After only sometimes.
			time.Sleep(8 * time.Hour)
			log := k.server.Requests()
			if len(log) < 2 {
				k.errorf("%d requests in eight hours", len(log))
			}
			for i := 1; i < len(log); i++ {
				if gap := log[i].Time.Sub(log[i-1].Time); gap < time.Minute {
					k.errorf("request %d came %v after one that was answered with Retry-After: 60", i, gap)
				}
			}
		}},
		promise{"P11_CancelIsImmediate", func(k *kit) {
			for _, fault := range []informertest.Fault{{Code: 500, Times: fuse}, {Code: 429, Times: fuse},
				{Code: 404, Times: fuse}, {Delay: time.Hour}} {
				remove := k.server.Inject(fault)
				r := k.start(k.subject())
				time.Sleep(47 * time.Second)
				start := time.Now()
				r.cancel()
				<-r.done
				if took := time.Since(start); took > 50*time.Millisecond {
					k.errorf("with %d from the server, stopping took %v", fault.Code, took)
				}
				remove()
			}
		}},
		promise{"P11_MissingBookmarkIsNoEndlessWait", func(k *kit) {
			k.createMany(5)
			k.server.Inject(informertest.Fault{Verbs: watches, NoBookmarks: true})
			s := k.subject()
			k.start(s)
			k.eventually(15*time.Minute, "the subject has synced", s.Synced)
			k.converges(s, time.Minute)
		}},
		promise{"P11_RefusedInitialEventsAreListedInstead", func(k *kit) {
			k.createMany(5)
			k.server.Inject(informertest.Fault{RefuseInitialEvents: true})
			s := k.subject()
			k.startSynced(s)
			k.create("later")
			k.converges(s, time.Minute)
		}},
		promise{"P11_UnservedResourceGoesQuietAndComesBack", func(k *kit) {
			k.createMany(5)
			s := k.subject()
			k.startSynced(s)
			if err := k.server.Unregister(pods); err != nil {
				k.fatalf("%v", err)
			}
			before := len(k.server.Requests())
			time.Sleep(time.Hour)
			if n := len(k.server.Requests()) - before; n > quietHourly {
				k.errorf("%d requests in an hour for a resource that is not served, at most %d", n, quietHourly)
			}
			if err := k.server.Register(pods, "Pod", true); err != nil {
				k.fatalf("%v", err)
			}
			k.create("back")
			k.converges(s, 10*time.Minute)
		}},
	)
}

// noStorm counts the requests of an hour in which a fault fails every request: once for a subject that has never
// synced and once for one that has.
func (k *kit) noStorm(fault informertest.Fault) {
	fault.Times = fuse
	k.createMany(5)
	s := k.subject()
	remove := k.server.Inject(fault)
	k.start(s)
	time.Sleep(time.Hour)
	synctest.Wait()
	if n := len(k.server.Requests()); n > hourly {
		k.errorf("%d requests in an hour before the first sync, at most %d", n, hourly)
	}
	remove()
	k.converges(s, 10*time.Minute)
	before := len(k.server.Requests())
	remove = k.server.Inject(fault)
	k.server.CutWatches()
	k.create("during")
	time.Sleep(time.Hour)
	synctest.Wait()
	if n := len(k.server.Requests()) - before; n > hourly {
		k.errorf("%d requests in an hour after the first sync, at most %d", n, hourly)
	}
	remove()
	k.converges(s, 10*time.Minute)
}
