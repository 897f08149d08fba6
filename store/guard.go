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

// Written says that somebody changed a stored object. Stored objects are shared by all
// readers, and in the shared layout parts of them by other objects too: a change is
// seen by everybody, at no version and in no order.
type Written struct {
	Key     object.Key
	Version object.Version
	// Path is the first place that differs, such as "Spec.Containers[0].Image"; "" where no
	// codec could keep a copy to compare with.
	Path string
	// By are all who were given the object until then: a handler's name, or the place in
	// the program that read it.
	By []string
}

// String says it in a sentence, with what to do.
func (w Written) String() string {
	what := "the object"
	if w.Path != "" {
		what = w.Path
	}
	return fmt.Sprintf("somebody wrote to %s of %q in version %s, which is shared by all readers; make a deep copy "+
		"before changing an object. It was given to: %s",
		what, w.Key, w.Version, strings.Join(w.By, "; "))
}

// guard watches over one object that is handed out.
type guard[T any] struct {
	codec *object.Codec[T]

	mu       sync.Mutex
	hash     uint64
	pristine []byte // the object as it was, encoded; nil where that cannot be had
	by       []string
	told     bool
}

// watch puts an entry under guard. Only where Options.OnWritten asks for it: every
// read then costs a hash of the object, and the name of the reader.
func (k *keeper[T]) watch(e *Entry[T], it *object.Item[T]) {
	g := &guard[T]{codec: it.Codec, hash: share.Hash(it.Value)}
	if g.codec == nil {
		g.codec = k.codec
	}
	if g.codec != nil {
		if encoded, err := k.encode(g.codec, it.Value); err == nil {
			g.pristine = slices.Clone(encoded)
		}
	}
	h := &home[T]{cfg: k.cfg, guard: g}
	x := &extra[T]{home: h}
	if e.extra != nil {
		was := e.extra.home
		h.codec, h.cache = was.codec, was.cache
		x.ref, x.line = e.extra.ref, e.extra.line
	}
	e.extra = x
}

// lend notes who is given the object, after a look at whether those before them left
// it as it was.
func (g *guard[T]) lend(cfg *config[T], e *Entry[T], obj T, to string) {
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

func (g *guard[T]) verify(cfg *config[T], e *Entry[T], obj T) {
	g.mu.Lock()
	if g.told || share.Hash(obj) == g.hash {
		g.mu.Unlock()
		return
	}
	g.told = true
	w := Written{Key: e.Key, Version: e.Version, By: slices.Clone(g.by)}
	g.mu.Unlock()
	if g.pristine != nil {
		if was, err := tryDecode(g.codec, slices.Clone(g.pristine)); err == nil {
			w.Path = share.Diff(was, obj)
		}
	}
	defer func() {
		if p := recover(); p != nil { // it may be in the middle of a batch
			cfg.report(e.Key, "", fmt.Errorf("OnWritten panicked: %v", p))
		}
	}()
	cfg.onWritten(w)
}

// caller is the place outside of this module's engine that asked for an object.
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

// engine reports whether a function only hands objects on.
func engine(function string) bool {
	name, ours := strings.CutPrefix(function, "github.com/mirador-k8s/mirador/")
	if !ours {
		return strings.HasPrefix(function, "iter.") || strings.HasPrefix(function, "slices.")
	}
	for _, room := range []string{"store.", "informer.", "fanout.", "factory.", "compat/"} {
		if strings.HasPrefix(name, room) {
			return true
		}
	}
	return false
}

// ObjectFor is Object for somebody with a name, who is named if the object turns out to
// have been written to. It is short enough to be inlined: 50 handlers ask 50 times for the old state of
// an event and for the new one, and it was a tenth of what that cost. There has to be an entry.
func (e *Entry[T]) ObjectFor(name string) T {
	if x := e.extra; x != nil {
		return x.home.object(e, name)
	}
	return e.obj
}

// Verify looks at whether the object is as it was stored, where Options.OnWritten asks
// for that.
func (e *Entry[T]) Verify() {
	if e == nil || e.extra == nil {
		return
	}
	if h := e.extra.home; h.guard != nil {
		if obj, ok := h.held(e); ok {
			h.guard.verify(h.cfg, e, obj)
		}
	}
}
