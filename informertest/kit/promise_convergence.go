package kit

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mirador-k8s/mirador/informertest"
)

// convergence is P1: when the server is quiet, the store equals it.
func convergence() []promise {
	return []promise{
		{"P1_StoreEqualsTheServerAfterRandomWrites", func(k *kit) {
			k.createMany(20)
			s := k.subject()
			k.startSynced(s)
			k.churn(rand.New(rand.NewPCG(1, 1)), 300, nil)
			k.converges(s, time.Minute)
		}},
		{"P1_StoreEqualsTheServerAfterRandomFaults", func(k *kit) {
			for seed := range uint64(5) {
				s := k.subject()
				k.start(s)
				// Faults of the previous seed may be left, each of which costs a pause.
				k.eventually(30*time.Minute, "the subject has synced", s.Synced)
				rnd := rand.New(rand.NewPCG(seed, 2))
				k.churn(rnd, 200, func() { k.randomFault(rnd) })
				k.converges(s, 30*time.Minute)
			}
		}},
		{"P1_StoreEqualsTheServerAfterARestore", func(k *kit) {
			k.createMany(5)
			version := k.server.Version()
			s := k.subject()
			k.startSynced(s)
			k.create("later")
			k.update("pod-0001")
			k.delete("pod-0002")
			k.converges(s, time.Minute)
			k.restore(string(version))
			k.converges(s, 10*time.Minute)
			k.create("anew")
			k.converges(s, time.Minute)
		}},
	}
}

// churn writes at random, and calls between now and then.
func (k *kit) churn(rnd *rand.Rand, steps int, between func()) {
	live := map[string]bool{}
	for key := range k.server.Versions(pods) {
		live[key.Name()] = true
	}
	for range steps {
		name := fmt.Sprintf("pod-%04d", rnd.IntN(30))
		switch {
		case !live[name]:
			k.create(name)
			live[name] = true
		case rnd.IntN(3) == 0:
			k.delete(name)
			delete(live, name)
		default:
			k.update(name)
		}
		if rnd.IntN(4) == 0 {
			time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
		}
		if between != nil && rnd.IntN(8) == 0 {
			between()
		}
	}
}

// randomFault causes one fault of a server or a network that loses nothing for good. Dropped frames are not among
// them: no informer can detect them.
func (k *kit) randomFault(rnd *rand.Rand) {
	n := 1 + rnd.IntN(4)
	either := []string{"list", "watch"}
	faults := []informertest.Fault{
		{Code: 500, Verbs: either, Times: n},
		{Code: 403, Verbs: either, Times: n},
		{Code: 429, RetryAfter: 3 * time.Second, Verbs: either, Times: n},
		{Code: 410, Verbs: []string{"watch"}, Times: 1},
		{Code: 410, AsEvent: true, Verbs: []string{"watch"}, Times: 1},
		{Refuse: true, Verbs: either, Times: n},
		{CutAfterBytes: 1 + rnd.IntN(2000), Verbs: either, Times: 1},
		{CutAfterFrames: n, Verbs: []string{"watch"}, Times: 1},
		{GarbageFrame: n, Verbs: []string{"watch"}, Times: 1},
		{DuplicateFrame: n, Verbs: []string{"watch"}, Times: 1},
		{CloseAtOnce: true, Verbs: []string{"watch"}, Times: n},
		{RefuseInitialEvents: true, Times: n},
		{Delay: time.Duration(n) * time.Second, Times: 1},
	}
	switch i := rnd.IntN(len(faults) + 4); {
	case i < len(faults):
		k.server.Inject(faults[i])
		k.server.CutWatches()
	case i == len(faults):
		k.server.CutWatches()
	case i == len(faults)+1:
		k.compact()
		k.server.CutWatches()
	case i == len(faults)+2:
		k.server.Bookmark(pods)
	default:
		k.server.Stall()
		time.Sleep(time.Duration(n) * time.Second)
		k.server.Resume()
	}
}
