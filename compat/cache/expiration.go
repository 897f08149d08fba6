package cache

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
)

// ExpirationPolicy decides when an object has expired.
type ExpirationPolicy interface {
	IsExpired(obj *TimestampedEntry) bool
}

// TimestampedEntry is an object with the time at which it was stored.
type TimestampedEntry struct {
	Obj       any
	Timestamp time.Time
}

// TTLPolicy expires objects after a fixed time.
type TTLPolicy struct {
	// TTL is the lifetime of an object; 0 or less means forever.
	TTL time.Duration
	// Clock provides the current time.
	Clock clock.Clock
}

// IsExpired reports whether an entry is older than the TTL.
func (p *TTLPolicy) IsExpired(e *TimestampedEntry) bool {
	return p.TTL > 0 && p.Clock.Since(e.Timestamp) > p.TTL
}

// ExpirationCache is a Store whose objects expire. An expired object is removed when
// it is read.
type ExpirationCache struct {
	store   *indexedStore
	key     KeyFunc
	clock   clock.Clock
	policy  ExpirationPolicy
	expired func(key string) // for tests; may be nil

	mu sync.Mutex // makes checking an object's age and removing it atomic
}

var _ Store = &ExpirationCache{}

// NewTTLStore returns a store whose objects expire after ttl.
func NewTTLStore(keyFunc KeyFunc, ttl time.Duration) Store {
	return NewExpirationStore(keyFunc, &TTLPolicy{TTL: ttl, Clock: clock.RealClock{}})
}

// NewExpirationStore returns a store whose objects expire according to a policy.
func NewExpirationStore(keyFunc KeyFunc, policy ExpirationPolicy) Store {
	return &ExpirationCache{store: newIndexedStore(nil), key: keyFunc, clock: clock.RealClock{}, policy: policy}
}

// FakeExpirationPolicy expires all objects except those in NeverExpire, for tests.
type FakeExpirationPolicy struct {
	NeverExpire     sets.Set[string]
	RetrieveKeyFunc KeyFunc
}

// IsExpired reports whether an entry is missing from NeverExpire.
func (p *FakeExpirationPolicy) IsExpired(e *TimestampedEntry) bool {
	key, _ := p.RetrieveKeyFunc(e)
	return !p.NeverExpire.Has(key)
}

// NewFakeExpirationStore returns a store with the caller's clock that sends the keys
// of expired objects to a channel, for tests.
func NewFakeExpirationStore(keyFunc KeyFunc, deletedKeys chan<- string, policy ExpirationPolicy,
	clock clock.Clock) Store {
	c := &ExpirationCache{store: newIndexedStore(nil), key: keyFunc, clock: clock, policy: policy}
	if deletedKeys != nil {
		c.expired = func(key string) { deletedKeys <- key }
	}
	return c
}

func (c *ExpirationCache) fresh(key string) (any, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	item, exists := c.store.get(key)
	if !exists {
		return nil, false
	}
	e := item.(*TimestampedEntry)
	if !c.policy.IsExpired(e) {
		return e.Obj, true
	}
	c.store.drop(key, nil)
	if c.expired != nil {
		c.expired(key)
	}
	return nil, false
}

// GetByKey returns an object that has not expired.
func (c *ExpirationCache) GetByKey(key string) (any, bool, error) {
	obj, exists := c.fresh(key)
	return obj, exists, nil
}

// Get returns an object that has not expired.
func (c *ExpirationCache) Get(obj any) (any, bool, error) {
	key, err := c.key(obj)
	if err != nil {
		return nil, false, KeyError{Obj: obj, Err: err}
	}
	return c.GetByKey(key)
}

// List returns the objects that have not expired.
func (c *ExpirationCache) List() []any {
	keys := c.store.ListKeys()
	list := make([]any, 0, len(keys))
	for _, key := range keys {
		if obj, exists := c.fresh(key); exists {
			list = append(list, obj)
		}
	}
	return list
}

// ListKeys returns the keys of all objects, including expired ones that have not been
// removed yet.
func (c *ExpirationCache) ListKeys() []string { return c.store.ListKeys() }

// LastStoreSyncResourceVersion returns the resource version of the last write.
func (c *ExpirationCache) LastStoreSyncResourceVersion() string {
	return c.store.LastStoreSyncResourceVersion()
}

// Bookmark records a resource version.
func (c *ExpirationCache) Bookmark(rv string) { c.store.Bookmark(rv) }

// Add stores an object with the current time.
func (c *ExpirationCache) Add(obj any) error {
	key, err := c.key(obj)
	if err != nil {
		return KeyError{Obj: obj, Err: err}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store.put(key, &TimestampedEntry{Obj: obj, Timestamp: c.clock.Now()})
	return nil
}

// Update stores an object with the current time.
func (c *ExpirationCache) Update(obj any) error { return c.Add(obj) }

// Delete removes an object.
func (c *ExpirationCache) Delete(obj any) error {
	key, err := c.key(obj)
	if err != nil {
		return KeyError{Obj: obj, Err: err}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store.drop(key, obj)
	return nil
}

// Replace replaces all objects by those of list, with the current time.
func (c *ExpirationCache) Replace(list []any, resourceVersion string) error {
	now := c.clock.Now()
	items := make([]keyedObject, len(list))
	for i, obj := range list {
		key, err := c.key(obj)
		if err != nil {
			return KeyError{Obj: obj, Err: err}
		}
		items[i] = keyedObject{key, &TimestampedEntry{Obj: obj, Timestamp: now}}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store.replace(items, resourceVersion)
	return nil
}

// Resync does nothing.
func (c *ExpirationCache) Resync() error { return nil }
