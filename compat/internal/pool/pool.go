// Package pool holds the informers of a factory: one for each key, started once,
// waited for together. It is what the three factories of compat share.
package pool

import (
	"context"
	"maps"
	"sync"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// Pool is the informers of a factory by key. The zero value is empty and ready.
type Pool[K comparable] struct {
	mu       sync.Mutex
	all      map[K]cache.SharedIndexInformer
	started  map[K]cache.SharedIndexInformer
	shutdown bool
	running  sync.WaitGroup
}

// Get gives the informer of a key, which is made if there is none.
func (p *Pool[K]) Get(key K, newInformer func() cache.SharedIndexInformer) cache.SharedIndexInformer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i, exists := p.all[key]; exists {
		return i
	}
	if p.all == nil {
		p.all, p.started = map[K]cache.SharedIndexInformer{}, map[K]cache.SharedIndexInformer{}
	}
	i := newInformer()
	p.all[key] = i
	return i
}

// Start starts the informers that were not started before; they run until ctx ends.
func (p *Pool[K]) Start(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shutdown {
		return
	}
	for key, i := range p.all {
		if _, already := p.started[key]; !already {
			p.started[key] = i
			p.running.Go(func() { i.RunWithContext(ctx) })
		}
	}
}

// Shutdown lets no informer start any more and waits for those that run.
func (p *Pool[K]) Shutdown() {
	p.mu.Lock()
	p.shutdown = true
	p.mu.Unlock()
	p.running.Wait()
}

// Wait waits until all informers that were started have synced, or ctx ends, and
// says which have.
func (p *Pool[K]) Wait(ctx context.Context) map[K]bool {
	p.mu.Lock()
	started := maps.Clone(p.started)
	p.mu.Unlock()
	checkers := make([]cache.DoneChecker, 0, len(started))
	for _, i := range started {
		checkers = append(checkers, i.HasSyncedChecker())
	}
	cache.WaitFor(ctx, "", checkers...)
	synced := make(map[K]bool, len(started))
	for key, i := range started {
		synced[key] = i.HasSynced()
	}
	return synced
}
