package store

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/mirador-k8s/mirador/internal/share"
	"github.com/mirador-k8s/mirador/object"
)

// Written reports that a handler or reader changed a stored object. All readers share stored objects, and in the
// shared layout other objects share their parts: every reader sees such a change, without a new version and without an
// event.
type Written struct {
	Key     object.Key
	Version object.Version
	// Path is the first field that differs, such as "Spec.Containers[0].Image". It is "" if no codec could encode a
	// copy to compare with.
	Path string
	// By names all handlers and readers that had the object until then: a handler's name, or the function, file and
	// line that read it.
	By []string
}

// String returns a sentence with the object, the handlers and readers that had it, and what to do.
func (w Written) String() string {
	what := "the object"
	if w.Path != "" {
		what = w.Path
	}
	return fmt.Sprintf("a handler or reader wrote to %s of %q in version %s, which all readers share; make a deep copy "+
		"before changing an object. These had the object: %s",
		what, w.Key, w.Version, strings.Join(w.By, "; "))
}

// guard detects writes to one object.
type guard[T any] struct {
	codec *object.Codec[T]

	mu       sync.Mutex
	hash     uint64
	original []byte // the object as it was stored, encoded; nil if it has no codec that restores it
	by       []string
	reported bool
}

// watch guards an entry. It is only called if Options.OnWritten is set: every read then hashes the object and records
// the reader.
func (k *keeper[T]) watch(e *Entry[T], it *object.Item[T]) {
	g := &guard[T]{codec: it.Codec, hash: share.Hash(it.Value)}
	if g.codec == nil {
		g.codec = k.codec
	}
	if g.codec != nil {
		if encoded, err := k.encode(g.codec, it.Value); err == nil {
			g.original = slices.Clone(encoded)
		}
	}
	h := &entryReader[T]{cfg: k.cfg, guard: g}
	x := &extra[T]{reader: h}
	if e.extra != nil {
		was := e.extra.reader
		h.codec, h.cache = was.codec, was.cache
		x.ref, x.line = e.extra.ref, e.extra.line
	}
	e.extra = x
}

// noteReader checks the object and records the reader that gets it: a name or, if that is "", the caller.
func (g *guard[T]) noteReader(cfg *config[T], e *Entry[T], obj T, to string) {
	if to == "" {
		to = caller()
	}
	g.verify(cfg, e, obj)
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.Contains(g.by, to) {
		g.by = append(g.by, to)
	}
}

// verify reports the first write to the object.
func (g *guard[T]) verify(cfg *config[T], e *Entry[T], obj T) {
	g.mu.Lock()
	if g.reported || share.Hash(obj) == g.hash {
		g.mu.Unlock()
		return
	}
	g.reported = true
	w := Written{Key: e.Key, Version: e.Version, By: slices.Clone(g.by)}
	g.mu.Unlock()
	if g.original != nil {
		if was, err := tryDecode(g.codec, slices.Clone(g.original)); err == nil {
			w.Path = share.Diff(was, obj)
		}
	}
	defer func() {
		if p := recover(); p != nil { // a batch may be open
			cfg.report(e.Key, "", fmt.Errorf("OnWritten panicked: %v", p))
		}
	}()
	cfg.onWritten(w)
}

// caller returns the innermost function outside the packages that only pass objects on, with its file and line.
func caller() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		if !engine(f.Function) || !more {
			file := f.File[strings.LastIndexByte(f.File, '/')+1:]
			return fmt.Sprintf("%s (%s:%d)", f.Function, file, f.Line)
		}
	}
}

// engine reports whether a function belongs to a package that only passes objects on.
func engine(function string) bool {
	name, ours := strings.CutPrefix(function, "github.com/mirador-k8s/mirador/")
	if !ours {
		return strings.HasPrefix(function, "iter.") || strings.HasPrefix(function, "slices.")
	}
	for _, pkg := range []string{"store.", "informer.", "fanout.", "factory.", "compat/"} {
		if strings.HasPrefix(name, pkg) {
			return true
		}
	}
	return false
}

// ObjectFor is Object for a reader with a name, which Written.By contains if the object is written to. It is short
// enough to be inlined, because it is called for every event and handler. e must not be nil.
func (e *Entry[T]) ObjectFor(name string) T {
	if x := e.extra; x != nil {
		return x.reader.object(e, name)
	}
	return e.obj
}

// Verify calls Options.OnWritten if it is set and the object is not as it was stored.
func (e *Entry[T]) Verify() {
	if e == nil || e.extra == nil {
		return
	}
	if h := e.extra.reader; h.guard != nil {
		if obj, ok := h.held(e); ok {
			h.guard.verify(h.cfg, e, obj)
		}
	}
}
