package store

import (
	"errors"
	"fmt"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// Options configure a store. The zero value is valid.
type Options[T any] struct {
	// Indexes are the first indexes; AddIndexes adds others later.
	Indexes map[string]IndexFunc[T]
	// LogBytes bounds the log of changes: the sum of the sizes of the objects before and after each change, plus 64
	// for each change. 0 means no log.
	LogBytes int
	// LogAge bounds the log by age. 0 means no bound.
	LogAge time.Duration
	// Layout is the form in which the objects are kept.
	Layout Layout
	// Codec encodes and decodes objects for the packed layout if an item has no codec of its own. An object without
	// any codec is kept live.
	Codec *object.Codec[T]
	// ReadCache is the number of recently read or written objects that the packed layout keeps decoded. Objects larger
	// than 64 KiB are not kept. 0 means 256, a negative number none.
	ReadCache int
	// OnWritten, if set, is called for every stored object that was written to, with the names of the handlers and
	// readers that had it. It is for tests: each read then costs a hash of the object, and each object a copy of its
	// encoding. It runs in the goroutine that detects the write, under the same restrictions as OnError.
	OnWritten func(Written)
	// OnError is called if an index function fails or panics, with an empty key if ByIndex reads an index that does
	// not exist, and with an empty index if an object cannot be kept or read in the layout. It runs in the goroutine
	// in which that happens: the writer's, during a batch, or any reader's. It must neither use the writer nor ask for
	// a snapshot.
	OnError func(key object.Key, index string, err error)
}

// config is the part of a store that never changes: its options and what belongs to them. Snapshots refer to it and
// not to the shared state, so that an old snapshot does not keep newer objects in memory.
type config[T any] struct {
	seed     maphash.Seed
	onError  func(key object.Key, index string, err error)
	logBytes int
	logAge   time.Duration

	layout    Layout
	readCache int
	keptLive  atomic.Uint64
	bytes     atomic.Int64 // of packed objects

	reportedNoCodec atomic.Bool // errNoCodec was reported
	onWritten       func(Written)
}

// report calls OnError if it is set.
func (c *config[T]) report(key object.Key, index string, err error) {
	if c.onError != nil {
		c.onError(key, index, err)
	}
}

// plain reports whether every object can be read from its slot: none is packed or guarded.
func (c *config[T]) plain() bool { return c.layout != Packed && c.onWritten == nil }

// keysStay reports whether all states of an object share the string of its key. In the packed layout the key is in the
// same allocation as the object.
func (c *config[T]) keysStay() bool { return c.layout != Packed }

// reportObject reports an object that could not be kept or read in the store's layout. It reports errNoCodec once,
// because that applies to all objects.
func (c *config[T]) reportObject(key object.Key, err error) {
	if errors.Is(err, errNoCodec) && c.reportedNoCodec.Swap(true) {
		return
	}
	c.report(key, "", fmt.Errorf("keep the object %s: %w", c.layout, err))
}
