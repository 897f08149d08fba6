package kit

import (
	"math/rand/v2"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/object"
)

// restore sets the server back and ends the watches, as an API server does that was restarted on the restored state.
func (k *kit) restore(version string) {
	if err := k.server.Restore(object.Version(version)); err != nil {
		k.fatalf("%v", err)
	}
	k.server.Inject(informertest.Fault{Verbs: []string{"watch"}, Code: 410, AsEvent: true, Times: 1})
}

// orders are P2, P3 and P4: the order of events, and the store at the time of an event.
func orders() []promise {
	return []promise{
		{"P2_StatesOfAKeyNeverGoBack", func(k *kit) {
			k.createMany(10)
			s := k.subject()
			rec := k.record(s, "recorder")
			k.startSynced(s)
			rnd := rand.New(rand.NewPCG(3, 3))
			k.churn(rnd, 300, func() { k.randomFault(rnd) })
			k.converges(s, 30*time.Minute)
			type place struct {
				key   object.Key
				epoch uint64
			}
			last := map[place]object.Version{}
			for _, e := range rec.all() {
				at := place{e.Key, e.Epoch}
				if v := versionIn(e.New); v != "" {
					if v.Before(last[at]) {
						k.errorf("%s went back from %s to %s", e.Key, last[at], v)
					}
					last[at] = v
				}
			}
		}},
		{"P2_RestoredHistoryStartsANewEpoch", func(k *kit) {
			k.create("a")
			version := k.server.Version()
			s := k.subject()
			rec := k.record(s, "recorder")
			k.startSynced(s)
			k.update("a")
			k.converges(s, time.Minute)
			k.restore(string(version))
			k.converges(s, 10*time.Minute)
			synctest.Wait()
			events := rec.of(keyOf("a"))
			first, end := events[0], events[len(events)-1]
			if versionIn(end.New) != version {
				k.errorf("the restored state was not delivered: the last event was %s at %s", end.Type, versionIn(end.New))
			}
			if end.Epoch <= first.Epoch {
				k.errorf("the state went back to %s within epoch %d", version, end.Epoch)
			}
		}},
		{"P3_AllHandlersSeeOneOrder", func(k *kit) {
			k.createMany(10)
			s := k.subject()
			recs := []*recorder{k.record(s, "one"), k.record(s, "two"), {}}
			k.handle(s, "slow", func(e informertest.Event) {
				time.Sleep(50 * time.Millisecond)
				recs[2].handle(e)
			})
			k.startSynced(s)
			rnd := rand.New(rand.NewPCG(4, 4))
			k.churn(rnd, 400, func() { k.randomFault(rnd) })
			k.converges(s, 30*time.Minute)
			time.Sleep(5 * time.Minute)
			longest := steps(recs[0])
			for _, r := range recs[1:] {
				if s := steps(r); len(s) > len(longest) {
					longest = s
				}
			}
			// Changes made during gaps are not delivered, but most others are.
			if len(longest) < 50 {
				k.errorf("only %d events were delivered", len(longest))
			}
			for i, r := range recs {
				if !subsequence(steps(r), longest) {
					k.errorf("handler %d saw another order than the others", i)
				}
				k.checkOld(r)
			}
		}},
		{"P4_StoreIsThereBeforeTheHandler", func(k *kit) {
			k.createMany(20)
			s := k.subject()
			seen := &recorder{}
			k.handle(s, "reader", func(e informertest.Event) {
				seen.handle(e)
				if v := versionIn(e.New); v != "" {
					p, ok := s.Get(e.Key)
					if !ok || object.Version(p.ResourceVersion).Before(v) {
						k.errorf("%s was delivered at %s while the store has %s", e.Key, v, versionIn(p))
					}
				}
			})
			k.startSynced(s)
			for i := range 200 {
				k.update([]string{"pod-0001", "pod-0002", "pod-0003"}[i%3])
				if i%5 == 0 {
					synctest.Wait()
				}
			}
			k.converges(s, time.Minute)
			k.eventually(time.Minute, "the last update was delivered", func() bool { return seen.len() >= 40 })
		}},
	}
}

// steps reduces the events of a handler to what can be compared.
func steps(r *recorder) []string {
	var out []string
	for _, e := range r.all() {
		if e.Type == object.Deleted {
			out = append(out, string(e.Key)+" gone")
		} else {
			out = append(out, string(e.Key)+" at "+string(versionIn(e.New)))
		}
	}
	return out
}

func subsequence(part, whole []string) bool {
	for _, step := range whole {
		if len(part) > 0 && part[0] == step {
			part = part[1:]
		}
	}
	return len(part) == 0
}

// checkOld checks that the old state of an update is what the handler saw last.
func (k *kit) checkOld(r *recorder) {
	seen := map[object.Key]object.Version{}
	for _, e := range r.all() {
		if e.Type == object.Updated && versionIn(e.Old) != seen[e.Key] {
			k.errorf("%s: the update's old state is %s, but the handler last saw %s", e.Key, versionIn(e.Old), seen[e.Key])
		}
		seen[e.Key] = versionIn(e.New)
	}
}
