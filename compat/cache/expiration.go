package cache

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
)

// ExpirationPolicy says when an object is too old.
type ExpirationPolicy interface {
	IsExpired(obj *TimestampedEntry) bool
}

// TimestampedEntry is an object with the time at which it was stored.
type TimestampedEntry struct {
	Obj       any
	Timestamp time.Time
}

// TTLPolicy lets objects live for a fixed time.
type TTLPolicy struct {
	// TTL is how long; 0 or less is for ever.
	TTL time.Duration
	// Clock tells the time.
	Clock clock.Clock
}

// IsExpired reports whether an entry is older than the TTL.
func (p *TTLPolicy) IsExpired(e *TimestampedEntry) bool {
	return p.TTL > 0 && p.Clock.Since(e.Timestamp) > p.TTL
}

// ExpirationCache is a Store whose objects expire. An expired object is removed
// when somebody reads it.
type ExpirationCache struct {
	shelf   *shelf
	key     KeyFunc
	clock   clock.Clock
	policy  ExpirationPolicy
	expired func(key string) // for tests; may be nil

	mu sync.Mutex // between the look at an object's age and its removal nothing is stored
}

var _ Store = &ExpirationCache{}

// NewTTLStore makes a store whose objects live for ttl.
func NewTTLStore(keyFunc KeyFunc, ttl time.Duration) Store {
	return NewExpirationStore(keyFunc, &TTLPolicy{TTL: ttl, Clock: clock.RealClock{}})
}

// NewExpirationStore makes a store whose objects live as long as a policy says.
func NewExpirationStore(keyFunc KeyFunc, policy ExpirationPolicy) Store {
	return &ExpirationCache{shelf: newShelf(nil), key: keyFunc, clock: clock.RealClock{}, policy: policy}
}

// FakeExpirationPolicy lets all expire but those it names, for tests.
type FakeExpirationPolicy struct {
	NeverExpire     sets.Set[string]
	RetrieveKeyFunc KeyFunc
}

// IsExpired reports whether an entry is not named.
func (p *FakeExpirationPolicy) IsExpired(e *TimestampedEntry) bool {
	key, _ := p.RetrieveKeyFunc(e)
	return !p.NeverExpire.Has(key)
}

// NewFakeExpirationStore makes a store with the caller's clock that tells a channel
// what expired, for tests.
func NewFakeExpirationStore(keyFunc KeyFunc, deletedKeys chan<- string, policy ExpirationPolicy,
	clock clock.Clock) Store {
	c := &ExpirationCache{shelf: newShelf(nil), key: keyFunc, clock: clock, policy: policy}
	if deletedKeys != nil {
		c.expired = func(key string) { deletedKeys <- key }
	}
	return c
}

func (c *ExpirationCache) fresh(key string) (any, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	item, exists := c.shelf.get(key)
	if !exists {
		return nil, false
	}
	e := item.(*TimestampedEntry)
	if !c.policy.IsExpired(e) {
		return e.Obj, true
	}
	c.shelf.drop(key, nil)
	if c.expired != nil {
		c.expired(key)
	}
	return nil, false
}

// GetByKey gives an object that has not expired.
func (c *ExpirationCache) GetByKey(key string) (any, bool, error) {
	obj, exists := c.fresh(key)
	return obj, exists, nil
}

// Get gives an object that has not expired.
func (c *ExpirationCache) Get(obj any) (any, bool, error) {
	key, err := c.key(obj)
	if err != nil {
		return nil, false, KeyError{Obj: obj, Err: err}
	}
	return c.GetByKey(key)
}

// List gives the objects that have not expired.
func (c *ExpirationCache) List() []any {
	keys := c.shelf.ListKeys()
	list := make([]any, 0, len(keys))
	for _, key := range keys {
		if obj, exists := c.fresh(key); exists {
			list = append(list, obj)
		}
	}
	return list
}

// ListKeys gives the keys of all objects, also of those that nobody has found
// expired yet.
func (c *ExpirationCache) ListKeys() []string { return c.shelf.ListKeys() }

// LastStoreSyncResourceVersion is the resource version that was written last.
func (c *ExpirationCache) LastStoreSyncResourceVersion() string {
	return c.shelf.LastStoreSyncResourceVersion()
}

// Bookmark notes a resource version.
func (c *ExpirationCache) Bookmark(rv string) { c.shelf.Bookmark(rv) }

// Add stores an object, as of now.
func (c *ExpirationCache) Add(obj any) error {
	key, err := c.key(obj)
	if err != nil {
		return KeyError{Obj: obj, Err: err}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shelf.put(key, &TimestampedEntry{Obj: obj, Timestamp: c.clock.Now()})
	return nil
}

// Update stores an object, as of now.
func (c *ExpirationCache) Update(obj any) error { return c.Add(obj) }

// Delete removes an object.
func (c *ExpirationCache) Delete(obj any) error {
	key, err := c.key(obj)
	if err != nil {
		return KeyError{Obj: obj, Err: err}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shelf.drop(key, obj)
	return nil
}

// Replace makes list all there is, as of now.
func (c *ExpirationCache) Replace(list []any, resourceVersion string) error {
	now := c.clock.Now()
	items := make([]keyed, len(list))
	for i, obj := range list {
		key, err := c.key(obj)
		if err != nil {
			return KeyError{Obj: obj, Err: err}
		}
		items[i] = keyed{key, &TimestampedEntry{Obj: obj, Timestamp: now}}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shelf.replace(items, resourceVersion)
	return nil
}

// Resync does nothing.
func (c *ExpirationCache) Resync() error { return nil }
