package pack

import (
	"bytes"
	"sync"
	"sync/atomic"
)

// A cache keeps the bytes of bases that are read often. Readers find them by one atomic load from the base, and take
// the lock only to add one. Its limit grows with the size of the packed data, so that a small store has a small cache.
type cache struct {
	limit  atomic.Int64
	misses atomic.Uint32

	mu   sync.Mutex
	ring []*base // in order of arrival
	size int64
}

const (
	cacheLeast = 1 << 20
	cacheMost  = 4 << 20
	cacheShare = 16 // packed bytes for each byte of the cache

	// One miss in so many adds the base. A base that is read often is added soon; if thousands are read in random
	// order, which a cache of this size cannot serve, few useless copies are made.
	admitted = 8
)

func (c *cache) resize(packed int64) {
	c.limit.Store(min(cacheMost, cacheLeast+packed/cacheShare))
}

// maybeAdd adds a copy of raw, the bytes of b, on some of its calls.
func (c *cache) maybeAdd(b *base, raw []byte) {
	if c.misses.Add(1)%admitted != 0 || int64(len(raw)) > c.limit.Load()/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.gone || b.raw.Load() != nil {
		return
	}
	raw = bytes.Clone(raw)
	b.raw.Store(&raw)
	c.ring = append(c.ring, b)
	c.size += int64(len(raw))
	for limit := c.limit.Load(); c.size > limit; {
		old := c.ring[0]
		c.ring[0] = nil
		c.ring = c.ring[1:]
		if old.recent.Swap(false) {
			c.ring = append(c.ring, old) // a second chance
			continue
		}
		c.size -= int64(old.length)
		old.raw.Store(nil)
	}
}

// forget removes b and never adds it again.
func (c *cache) forget(b *base) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b.gone = true
	if b.raw.Load() == nil {
		return
	}
	b.raw.Store(nil)
	c.size -= int64(b.length)
	for i, x := range c.ring {
		if x == b {
			c.ring = append(c.ring[:i], c.ring[i+1:]...)
			return
		}
	}
}

func (c *cache) bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size
}
