// Package pool keeps the informers of a factory: one for each key, each started once.
// The three factories of compat share it.
package pool

import (
	"context"
	"maps"
	"sync"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// Pool has the informers of a factory by key. The zero value is an empty pool.
type Pool[K comparable] struct {
	mu       sync.Mutex
	all      map[K]cache.SharedIndexInformer
	started  map[K]cache.SharedIndexInformer
	shutdown bool
	running  sync.WaitGroup
}

// Get returns the informer of a key. It calls newInformer if there is none.
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

// Start starts the informers that were not started before. They run until ctx ends.
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

// Shutdown prevents further starts and waits until all running informers have ended.
func (p *Pool[K]) Shutdown() {
	p.mu.Lock()
	p.shutdown = true
	p.mu.Unlock()
	p.running.Wait()
}

// Wait waits until all started informers have synced or ctx ends, and returns which have
// synced.
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
