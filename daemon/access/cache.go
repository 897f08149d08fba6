package access

import (
	"maps"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/query"
)

// visibleKey identifies what a user may see.
type visibleKey struct {
	cluster, user, verb string
	of                  schema.GroupResource
	namespaced          bool
}

// UserKey returns a text that is different for users that may have different rights.
func UserKey(u user.Info) string {
	b := strconv.AppendQuote(nil, u.GetName())
	b = strconv.AppendQuote(b, u.GetUID())
	for _, g := range slices.Sorted(slices.Values(u.GetGroups())) {
		b = strconv.AppendQuote(append(b, ' '), g)
	}
	extra := u.GetExtra()
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		b = strconv.AppendQuote(append(b, '='), key)
		for _, value := range extra[key] {
			b = strconv.AppendQuote(append(b, ','), value)
		}
	}
	return string(b)
}

// visibleCache keeps sets that were computed, so that each has one pointer as long as it does not change.
type visibleCache struct {
	mu   sync.Mutex
	sets map[visibleKey]cachedVisible
	size int // of all sets
}

type cachedVisible struct {
	version rightsVersion
	set     *query.Visible
}

// maxCached bounds the cache: the names in all sets, and as much again for each set.
const maxCached = 1 << 20

func (c cachedVisible) size() int {
	const overhead = 8
	if c.set == nil {
		return overhead
	}
	return overhead + len(c.set.Namespaces) + len(c.set.Keys) + len(c.set.Names)
}

// get returns the set of a key, and computes it if the rights have changed.
func (c *visibleCache) get(key visibleKey, now rightsVersion,
	compute func() (*query.Visible, error)) (*query.Visible, error) {
	c.mu.Lock()
	was, ok := c.sets[key]
	c.mu.Unlock()
	if ok && was.version == now {
		return was.set, nil
	}
	set, err := compute()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if was, ok = c.sets[key]; ok && was.version.of == now.of && was.version.n > now.n {
		return set, nil // another goroutine has computed a newer one
	}
	if ok {
		if (set == nil) == (was.set == nil) && (set == nil || set.Equal(was.set)) {
			set = was.set
		}
		c.size -= was.size()
	}
	if c.sets == nil {
		c.sets = map[visibleKey]cachedVisible{}
	}
	next := cachedVisible{now, set}
	c.sets[key] = next
	c.size += next.size()
	for other := range c.sets { // in random order
		if c.size <= maxCached {
			break
		}
		if other != key {
			c.size -= c.sets[other].size()
			delete(c.sets, other)
		}
	}
	return set, nil
}
