package store

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store/internal/pack"
)

// home reads entries that are packed or under guard. It is used by any goroutine.
type home[T any] struct {
	codec *object.Codec[T] // nil: the entry has its object
	cfg   *config[T]
	guard *guard[T]
	// once is, for an entry that Once made, the entry it is of, and once it is decoded
	// the object.
	once  *once[T]
	cache *readCache[T] // nil: none
}

type once[T any] struct {
	of  *Entry[T]
	obj atomic.Pointer[weak.Pointer[recent[T]]]
}

// remember notes the object without holding it: an entry that waits for a slow
// reader must not keep what the others have decoded.
func (o *once[T]) remember(r *recent[T]) {
	p := weak.Make(r)
	o.obj.Store(&p)
}

// Once gives an entry that finds the object that was decoded for it as long as anybody, if
// only the read cache, still has it: for those who read one entry many times and soon
// let go of it.
func (e *Entry[T]) Once() *Entry[T] {
	if e == nil || !e.packed() {
		return e
	}
	c := &struct {
		entry Entry[T]
		extra extra[T]
		home  home[T]
		once  once[T]
	}{*e, extra[T]{ref: e.extra.ref, line: e.extra.line}, *e.extra.home, once[T]{of: e}}
	c.entry.extra, c.extra.home, c.home.once = &c.extra, &c.home, &c.once
	return &c.entry
}

// readCache is what the entries have decoded that were read or written a moment ago. Each of them knows its own, so
// looking costs nothing; the cache only knows them all, in turn, so that what they hold is bounded.
type readCache[T any] struct {
	places []atomic.Pointer[recent[T]]
	turn   atomic.Uint32
}

// recent is what was decoded of an entry. It knows that by what all copies of the entry have in common.
type recent[T any] struct {
	of  *extra[T]
	obj T
}

func newReadCache[T any](size int) *readCache[T] {
	if size <= 0 {
		return nil
	}
	return &readCache[T]{places: make([]atomic.Pointer[recent[T]], size)}
}

// maxRemembered is how large an object may be to be remembered: a cache of a few hundred objects must not hold
// hundreds of megabytes because they are large.
const maxRemembered = 64 << 10

// add lets an entry have its object. If it has one by now, that stays, so that all readers have the same.
func (c *readCache[T]) add(e *Entry[T], obj T) *recent[T] {
	r := &recent[T]{e.extra, obj}
	if c == nil || e.Size > maxRemembered {
		return r
	}
	for !r.of.recent.CompareAndSwap(nil, r) {
		if first := r.of.recent.Load(); first != nil {
			return first
		}
	}
	// The entry has it before the cache knows it: so whatever is taken out of the cache is taken from its entry too.
	c.swap(int(c.turn.Add(1)%uint32(len(c.places))), r)
	return r
}

// swap gives a place to another and takes from an entry what was there.
func (c *readCache[T]) swap(place int, r *recent[T]) {
	if was := c.places[place].Swap(r); was != nil {
		was.of.recent.CompareAndSwap(was, nil)
	}
}

func (c *readCache[T]) clear() {
	if c == nil {
		return
	}
	for i := range c.places {
		c.swap(i, nil)
	}
}

// buffers are lent to codecs that do not hold on to what they decode.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// object gives an entry's object to whoever is named, or to the caller.
func (h *home[T]) object(e *Entry[T], to string) T {
	if r := e.extra.recent.Load(); r != nil && h.guard == nil {
		return r.obj
	}
	obj, ok := h.held(e)
	if !ok {
		obj = h.unpack(e)
	}
	if h.guard != nil {
		h.guard.lend(h.cfg, e, obj, to)
	}
	return obj
}

// held gives the object if it is there unpacked.
func (h *home[T]) held(e *Entry[T]) (obj T, ok bool) {
	if h.codec == nil {
		return e.obj, true
	}
	if h.once != nil {
		if p := h.once.obj.Load(); p != nil {
			if r := p.Value(); r != nil {
				return r.obj, true
			}
		}
		e = h.once.of
	}
	r := e.extra.recent.Load()
	if r == nil {
		return obj, false
	}
	if h.once != nil {
		h.once.remember(r)
	}
	return r.obj, true
}

func (h *home[T]) unpack(e *Entry[T]) T {
	var obj T
	var err error
	if h.codec.Lends {
		var encoded []byte
		if encoded, err = e.appendPacked(nil); err == nil {
			obj, err = tryDecode(h.codec, encoded)
		}
	} else {
		buf := buffers.Get().(*[]byte)
		if *buf, err = e.appendPacked((*buf)[:0]); err == nil {
			obj, err = tryDecode(h.codec, *buf)
		}
		if cap(*buf) <= maxBuffer {
			buffers.Put(buf)
		}
	}
	if err != nil {
		h.cfg.complain(e.Key, fmt.Errorf("unpack the object: %w", err))
		return obj
	}
	if h.once != nil {
		e = h.once.of
	}
	r := h.cache.add(e, obj)
	if h.once != nil {
		h.once.remember(r)
	}
	return r.obj
}

// maxBuffer is the largest buffer that is kept for the next read.
const maxBuffer = 1 << 20

func (h *home[T]) encoded(e *Entry[T], dst []byte) ([]byte, bool) {
	if h.codec == nil {
		return dst, false
	}
	out, err := e.appendPacked(dst)
	if err != nil {
		h.cfg.complain(e.Key, fmt.Errorf("unpack the object: %w", err))
		return dst, false
	}
	return out, true
}

// packedForm returns the packed object, and its key, UID and version as the one string that it was packed with.
func (e *Entry[T]) packedForm() (obj pack.Packed, names string, err error) {
	n := len(e.Key) + len(e.UID) + len(e.Version)
	if n > len(e.extra.line) {
		return obj, "", errChanged
	}
	names = e.extra.line[:n]
	key, rest := names[:len(e.Key)], names[len(e.Key):]
	if key != string(e.Key) || rest[:len(e.UID)] != e.UID || rest[len(e.UID):] != string(e.Version) {
		return obj, "", errChanged
	}
	return e.extra.ref.Packed(e.extra.line[n:]), names, nil
}

// errChanged reports an entry that was copied and then changed.
var errChanged = errors.New("the entry's key, UID or version is not the one that its object was stored with")

// appendPacked appends the encoded object.
func (e *Entry[T]) appendPacked(dst []byte) ([]byte, error) {
	obj, names, err := e.packedForm()
	if err != nil {
		return dst, err
	}
	return obj.Append(slices.Grow(dst, obj.Len()), names)
}
