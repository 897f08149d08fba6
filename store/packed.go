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

// entryReader reads packed and guarded entries. Any goroutine may use it.
type entryReader[T any] struct {
	codec *object.Codec[T] // nil if the entry is not packed
	cfg   *config[T]
	guard *guard[T]
	once  *once[T]      // for entries from DecodeOnce
	cache *readCache[T] // nil if there is none
}

// once is the state of an entry from DecodeOnce: the original entry and the decoded object.
type once[T any] struct {
	of  *Entry[T]
	obj atomic.Pointer[weak.Pointer[recent[T]]]
}

// remember keeps a weak pointer to the object: an entry that waits for a slow reader must not keep objects in memory
// that other readers have decoded.
func (o *once[T]) remember(r *recent[T]) {
	p := weak.Make(r)
	o.obj.Store(&p)
}

// DecodeOnce returns an entry that decodes its object once for all readers that use it at the same time. It finds the
// decoded object as long as the read cache or a reader still refers to it.
func (e *Entry[T]) DecodeOnce() *Entry[T] {
	if e == nil || !e.packed() {
		return e
	}
	c := &struct {
		entry  Entry[T]
		extra  extra[T]
		reader entryReader[T]
		once   once[T]
	}{*e, extra[T]{ref: e.extra.ref, line: e.extra.line}, *e.extra.reader, once[T]{of: e}}
	c.entry.extra, c.extra.reader, c.reader.once = &c.extra, &c.reader, &c.once
	return &c.entry
}

// readCache bounds the number of decoded objects of recently read or written entries. Each entry refers to its own
// object, so a lookup is one load; the cache evicts them in turn.
type readCache[T any] struct {
	places []atomic.Pointer[recent[T]]
	turn   atomic.Uint32
}

// recent is the decoded object of an entry. All copies of an entry share the same extra.
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

// maxRemembered is the largest size of an object in the read cache, so that a few hundred objects do not take hundreds
// of megabytes.
const maxRemembered = 64 << 10

// add sets the decoded object of an entry. If the entry has one by now, add returns that one, so that all readers have
// the same.
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
	// The entry is set before the cache, so that an eviction always finds the object in its entry.
	c.swap(int(c.turn.Add(1)%uint32(len(c.places))), r)
	return r
}

// swap stores r at a place of the cache and clears the entry of the evicted object.
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

// buffers are for codecs that do not keep the bytes that they decode.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// object returns an entry's object. to is the name of the reader for the guard; "" means the caller.
func (h *entryReader[T]) object(e *Entry[T], to string) T {
	if r := e.extra.recent.Load(); r != nil && h.guard == nil {
		return r.obj
	}
	obj, ok := h.held(e)
	if !ok {
		obj = h.unpack(e)
	}
	if h.guard != nil {
		h.guard.noteReader(h.cfg, e, obj, to)
	}
	return obj
}

// held returns the object if it need not be decoded.
func (h *entryReader[T]) held(e *Entry[T]) (obj T, ok bool) {
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

// unpack decodes the object and adds it to the read cache.
func (h *entryReader[T]) unpack(e *Entry[T]) T {
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
		h.cfg.reportObject(e.Key, fmt.Errorf("unpack the object: %w", err))
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

// maxBuffer is the largest buffer that is kept for the next object.
const maxBuffer = 1 << 20

// encoded appends the encoded object to dst.
func (h *entryReader[T]) encoded(e *Entry[T], dst []byte) ([]byte, bool) {
	if h.codec == nil {
		return dst, false
	}
	out, err := e.appendPacked(dst)
	if err != nil {
		h.cfg.reportObject(e.Key, fmt.Errorf("unpack the object: %w", err))
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
