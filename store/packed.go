package store

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/mirador-k8s/mirador/object"
)

// home reads entries that are packed or under guard. It is used by any goroutine.
type home[T any] struct {
	codec *object.Codec[T] // nil: the entry has its object
	cfg   *config[T]
	guard *guard[T]
	// once is, for an entry that Once made, the entry it is of, and once it is decoded
	// the object.
	once *once[T]
	// recent are objects that were read or written a moment ago, each in one of the few
	// places that its entry's address gives: looking costs some nanoseconds, and
	// what is held is bounded.
	recent []place[T]
	turn   *atomic.Uint32 // whose place is taken when all are
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
	}{*e, *e.extra, *e.extra.home, once[T]{of: e}}
	c.entry.extra, c.extra.home, c.home.once = &c.extra, &c.home, &c.once
	return &c.entry
}

// place holds what is remembered of the entries with one address modulo the places.
type place[T any] [placeWidth]atomic.Pointer[recent[T]]

const placeWidth = 4

type recent[T any] struct {
	entry *Entry[T]
	obj   T
}

func (h *home[T]) place(e *Entry[T]) *place[T] {
	if len(h.recent) == 0 {
		return nil
	}
	// A record takes 128 bytes or more, so the lowest bits of its address say nothing.
	return &h.recent[uintptr(unsafe.Pointer(e))>>7%uintptr(len(h.recent))]
}

// maxRemembered is how large an object may be to be remembered: a cache of a few hundred objects must not hold hundreds of
// megabytes because they are large.
const maxRemembered = 64 << 10

func (h *home[T]) remember(e *Entry[T], obj T) *recent[T] {
	r := &recent[T]{e, obj}
	at := h.place(e)
	if at == nil || e.Size > maxRemembered {
		return r
	}
	for i := range at {
		if at[i].CompareAndSwap(nil, r) {
			return r
		}
	}
	at[h.turn.Add(1)%placeWidth].Store(r)
	return r
}

// buffers are lent to codecs that do not hold on to what they decode.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// object gives an entry's object to whoever is named, or to the caller.
func (h *home[T]) object(e *Entry[T], to string) T {
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
	if at := h.place(e); at != nil {
		for i := range at {
			if r := at[i].Load(); r != nil && r.entry == e {
				if h.once != nil {
					h.once.remember(r)
				}
				return r.obj, true
			}
		}
	}
	return obj, false
}

func (h *home[T]) unpack(e *Entry[T]) T {
	var obj T
	var err error
	if h.codec.Lends {
		var encoded []byte
		if encoded, err = e.extra.packed.Append(make([]byte, 0, e.extra.packed.Len()), e.names()); err == nil {
			obj, err = tryDecode(h.codec, encoded)
		}
	} else {
		buf := buffers.Get().(*[]byte)
		if *buf, err = e.extra.packed.Append((*buf)[:0], e.names()); err == nil {
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
	r := h.remember(e, obj)
	if h.once != nil {
		h.once.remember(r)
	}
	return obj
}

// maxBuffer is the largest buffer that is kept for the next read.
const maxBuffer = 1 << 20

func (h *home[T]) encoded(e *Entry[T], dst []byte) ([]byte, bool) {
	if h.codec == nil {
		return dst, false
	}
	out, err := e.extra.packed.Append(dst, e.names())
	if err != nil {
		h.cfg.complain(e.Key, fmt.Errorf("unpack the object: %w", err))
		return dst, false
	}
	return out, true
}

// names gives key, uid and version as the one string that pack cut them from. An entry that
// somebody copied and changed gets one of its own, which will not fit its data.
func (e *Entry[T]) names() string {
	at, nk, nu := unsafe.StringData(string(e.Key)), len(e.Key), len(e.UID)
	follows := func(s string, n int) bool {
		return s == "" || unsafe.StringData(s) == (*byte)(unsafe.Add(unsafe.Pointer(at), n))
	}
	if nk > 0 && follows(e.UID, nk) && follows(string(e.Version), nk+nu) {
		return unsafe.String(at, nk+nu+len(e.Version))
	}
	return string(e.Key) + e.UID + string(e.Version)
}
