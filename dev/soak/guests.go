package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mirador-k8s/mirador/informer"
)

// guests are the temporary handlers.
type guests struct {
	mirrors []*mirror
	stay    time.Duration // the longest stay; the shortest is a tenth of it

	joins     atomic.Int64
	coalesced atomic.Uint64 // by handlers that were removed

	mu  sync.Mutex
	odd []string
}

// host adds and removes handlers, one after the other, until ctx ends: each subscribes to one mirror, stays a while
// and is removed. Every third is slow; every fourth subscribes without the initial state.
func (g *guests) host(ctx context.Context, place int) {
	random := rand.New(rand.NewPCG(uint64(place), 1))
	for n := 0; ctx.Err() == nil; n++ {
		m := g.mirrors[(place+n)%len(g.mirrors)]
		w := newWitness(0)
		if random.IntN(3) == 0 {
			w.takes = time.Millisecond
		}
		name := fmt.Sprintf("guest %d.%d", place, n)
		fromNow := random.IntN(4) == 0
		sub, err := m.inf.Subscribe(w, &informer.HandlerOptions{Name: name, FromNow: fromNow})
		if err != nil {
			g.note("%s cannot join: %v", name, err)
			return
		}
		g.joins.Add(1)
		select {
		case <-time.After(g.stay/10 + time.Duration(random.Int64N(int64(g.stay*9/10)))):
		case <-ctx.Done():
		}
		sub.Remove()
		<-sub.Done()
		g.coalesced.Add(sub.Stats().Coalesced)
		if _, odd := w.sums(); odd != "" && !fromNow { // without the initial state, updates of unknown pods are expected
			g.note("%s of the %s mirror: %s", name, m.inf.Name(), odd)
		}
	}
}

func (g *guests) note(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.odd) < 10 {
		g.odd = append(g.odd, fmt.Sprintf(format, args...))
	}
}
