package access

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/query"
)

// UserKey returns a text that is different for different users: for a different name, UID, groups, or cluster that
// authenticated the user. It is the same for all credentials of a user.
func UserKey(u user.Info) string {
	b := strconv.AppendQuote(nil, u.GetName())
	b = strconv.AppendQuote(b, u.GetUID())
	b = appendGroups(b, u)
	for _, home := range u.GetExtra()[HomeCluster] {
		b = strconv.AppendQuote(append(b, '@'), home)
	}
	return string(b)
}

func appendGroups(b []byte, u user.Info) []byte {
	for _, g := range slices.Sorted(slices.Values(u.GetGroups())) {
		b = strconv.AppendQuote(append(b, ' '), g)
	}
	return b
}

// rbacKey returns a text that is different for users that may have different rights by RBAC: for a different name or
// different groups.
func rbacKey(u user.Info) string {
	return string(appendGroups(strconv.AppendQuote(nil, u.GetName()), u))
}

// reviewKey returns a text that is different for users about whom a cluster may decide differently.
func reviewKey(u user.Info) string {
	b := []byte(UserKey(u))
	extra := u.GetExtra()
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		if key == user.CredentialIDKey {
			continue
		}
		b = strconv.AppendQuote(append(b, '='), key)
		for _, value := range extra[key] {
			b = strconv.AppendQuote(append(b, ','), value)
		}
	}
	return string(b)
}

// visibleKey identifies what a user may see.
type visibleKey struct {
	cluster, verb string
	of            schema.GroupResource
	namespaced    bool
}

// visibleCache keeps sets that were computed, so that each has one pointer as long as it does not change. What it keeps
// is bounded in bytes, for each user and in total.
type visibleCache struct {
	mu    sync.Mutex
	users map[string]*visibleSets // by rbacKey
	size  int                     // of all users
}

// visibleSets are the sets of one user.
type visibleSets struct {
	sets map[unique.Handle[visibleKey]]cachedVisible // handles, because there are many entries
	size int                                         // in bytes
}

type cachedVisible struct {
	version rightsVersion
	set     *query.Visible
}

const (
	// maxCached and maxCachedOfUser bound the size of the cache in bytes.
	maxCached       = 64 << 20
	maxCachedOfUser = maxCached / 16
	// The memory for a user, for a set and for a text, besides the bytes of texts.
	userOverhead, setOverhead, textOverhead = 256, 256, 16
)

// size returns about how many bytes a set takes, with its key.
func (c cachedVisible) size(key *visibleKey) int {
	n := setOverhead + len(key.cluster) + len(key.verb) + len(key.of.Group) + len(key.of.Resource)
	if c.set == nil {
		return n
	}
	for _, s := range c.set.Namespaces {
		n += textOverhead + len(s)
	}
	for _, s := range c.set.Keys {
		n += textOverhead + len(s)
	}
	for _, s := range c.set.Names {
		n += textOverhead + len(s)
	}
	return n
}

// get returns the set of a key, and computes it if the rights have changed.
func (c *visibleCache) get(user string, key visibleKey, now rightsVersion,
	compute func() (*query.Visible, error)) (*query.Visible, error) {
	c.mu.Lock()
	was, ok := c.last(user, key)
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
	if was, ok = c.last(user, key); ok && was.version.of == now.of && was.version.n > now.n {
		return set, nil // another goroutine has computed a newer one
	}
	if ok && (set == nil) == (was.set == nil) && (set == nil || set.Equal(was.set)) {
		set = was.set
	}
	c.put(user, key, cachedVisible{now, set})
	return set, nil
}

func (c *visibleCache) last(user string, key visibleKey) (cachedVisible, bool) {
	of := c.users[user]
	if of == nil {
		return cachedVisible{}, false
	}
	was, ok := of.sets[unique.Make(key)]
	return was, ok
}

// put stores a set, unless it is too large, and removes others if there are too many: first those of the same user, and
// then those of users that have more than their share of the cache.
func (c *visibleCache) put(user string, key visibleKey, next cachedVisible) {
	c.remove(user, key)
	if next.size(&key)+len(user)+userOverhead > maxCachedOfUser {
		return
	}
	of := c.users[user]
	if of == nil {
		if c.users == nil {
			c.users = map[string]*visibleSets{}
		}
		of = &visibleSets{sets: map[unique.Handle[visibleKey]]cachedVisible{}, size: len(user) + userOverhead}
		c.users[user] = of
		c.size += of.size
	}
	of.sets[unique.Make(key)] = next
	of.size += next.size(&key)
	c.size += next.size(&key)
	c.shrink(user, maxCachedOfUser, key)
	if c.size <= maxCached {
		return
	}
	share := maxCached / len(c.users)
	for other, sets := range c.users { // in random order
		if c.size <= maxCached*7/8 {
			return
		}
		if sets.size > share/2 {
			c.shrink(other, share/2, key)
		}
	}
}

// shrink removes sets of a user, except that of a key, until they take at most n bytes.
func (c *visibleCache) shrink(user string, n int, except visibleKey) {
	of := c.users[user]
	for key := range of.sets { // in random order
		if of.size <= n {
			return
		}
		if key.Value() != except {
			c.remove(user, key.Value())
		}
	}
}

// remove removes a set, and a user without sets.
func (c *visibleCache) remove(user string, key visibleKey) {
	of := c.users[user]
	if of == nil {
		return
	}
	handle := unique.Make(key)
	if was, ok := of.sets[handle]; ok {
		of.size -= was.size(&key)
		c.size -= was.size(&key)
		delete(of.sets, handle)
	}
	if len(of.sets) == 0 {
		c.size -= of.size
		delete(c.users, user)
	}
}

// forget removes the sets of a cluster that has left.
func (c *visibleCache) forget(cluster string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for user, of := range c.users {
		for key := range of.sets {
			if key := key.Value(); key.cluster == cluster {
				c.remove(user, key)
			}
		}
	}
}
