package query

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"iter"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// Visible is the set of objects of one resource in one cluster that a user may see. It can be applied to an index
// before any object is read. The zero value contains nothing. It must not be changed once it is in use.
type Visible struct {
	// All means all objects; the other fields are ignored.
	All bool
	// Namespaces are namespaces in which every object is visible, sorted.
	Namespaces []string
	// Keys are single objects, sorted.
	Keys []object.Key
	// Names are names that are visible in every namespace, sorted.
	Names []string

	fingerprint atomic.Uint64 // 0: not computed yet
}

// Contains reports whether an object is visible, given its key.
func (v *Visible) Contains(key object.Key) bool {
	if v.All {
		return true
	}
	namespace, name := key.Split()
	if namespace != "" && contains(v.Namespaces, namespace) {
		return true
	}
	return contains(v.Keys, key) || contains(v.Names, name)
}

// contains reports whether a sorted slice has a value.
func contains[S ~string](sorted []S, value S) bool {
	_, found := slices.BinarySearch(sorted, value)
	return found
}

// Empty reports whether nothing is visible.
func (v *Visible) Empty() bool {
	return !v.All && len(v.Namespaces) == 0 && len(v.Keys) == 0 && len(v.Names) == 0
}

// EmptyIn reports whether nothing can be visible in a namespace, or at all if it is "".
func (v *Visible) EmptyIn(namespace string) bool {
	if namespace == "" || v.All || v.Empty() || len(v.Names) > 0 || contains(v.Namespaces, namespace) {
		return v.Empty()
	}
	i, _ := slices.BinarySearch(v.Keys, object.Key(namespace+"/"))
	return i == len(v.Keys) || !strings.HasPrefix(string(v.Keys[i]), namespace+"/")
}

// AllIn reports whether every object of a namespace is visible, or of all namespaces if it is "".
func (v *Visible) AllIn(namespace string) bool {
	return v.All || namespace != "" && contains(v.Namespaces, namespace)
}

// Equal reports whether two sets are described in the same way.
func (v *Visible) Equal(w *Visible) bool {
	if v == w || v.All || w.All {
		return v == w || v.All == w.All
	}
	return slices.Equal(v.Namespaces, w.Namespaces) && slices.Equal(v.Keys, w.Keys) && slices.Equal(v.Names, w.Names)
}

// Fingerprint returns a hash of what Equal compares, which is never 0. It is computed once, and the same in every
// process.
func (v *Visible) Fingerprint() uint64 {
	if known := v.fingerprint.Load(); known != 0 {
		return known
	}
	h := sha256.New()
	if !v.All {
		writeTexts(h, v.Namespaces)
		writeTexts(h, v.Keys)
		writeTexts(h, v.Names)
	}
	sum := max(binary.LittleEndian.Uint64(h.Sum(nil)), 1)
	v.fingerprint.Store(sum)
	return sum
}

// writeTexts writes the number of texts, and each with its length, so that different lists are different bytes.
func writeTexts[S ~string](h hash.Hash, texts []S) {
	writeLength := func(n int) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		h.Write(b[:])
	}
	writeLength(len(texts))
	for _, text := range texts {
		writeLength(len(text))
		io.WriteString(h, string(text))
	}
}

// section is a part of a scope that is visible: a namespace, or a single object.
type section struct {
	scope
	prefix string // sections are sorted by this: the namespace and a slash, or the key of the object
}

// sections returns what is visible of a scope, in the order of the keys. namespaces are those that have objects; they
// are needed if names are visible in every namespace.
func (v *Visible) sections(s scope, namespaces []string) (out []section) {
	add := func(s scope) {
		prefix := s.namespace + "/" + s.name
		if s.namespace == "" {
			prefix = s.name
		}
		out = append(out, section{s, prefix})
	}
	switch {
	case s.none:
	case s.name != "":
		if v.Contains(object.NewKey(s.namespace, s.name)) {
			add(s)
		}
	case s.namespace != "" && contains(v.Namespaces, s.namespace):
		add(s)
	case s.namespace != "":
		for _, name := range v.Names {
			add(scope{namespace: s.namespace, name: name})
		}
		out = v.appendKeys(out, s.namespace)
	default:
		out = make([]section, 0, len(v.Namespaces)+len(v.Keys))
		for _, namespace := range v.Namespaces {
			add(scope{namespace: namespace})
		}
		out = v.appendKeys(out, "")
		for _, name := range v.Names {
			add(scope{name: name}) // if the objects have no namespace
			for _, namespace := range namespaces {
				if namespace != "" && !contains(v.Namespaces, namespace) {
					add(scope{namespace: namespace, name: name})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b section) int { return strings.Compare(a.prefix, b.prefix) })
	return slices.CompactFunc(out, func(a, b section) bool { return a.prefix == b.prefix })
}

// sections returns what is visible of a scope of a view. ok is false if all keys have to be read to find that out: if
// names are visible in every namespace, and looking up each name in each namespace would be more work.
func (v *View[T]) sections(s scope) (out []section, ok bool) {
	if s.namespace != "" || len(v.Visible.Names) == 0 {
		return v.Visible.sections(s, nil), true
	}
	x, err := v.Snapshot.Index(namespaceIndex)
	if err != nil {
		return nil, false
	}
	namespaces := slices.Collect(x.Values())
	if (len(namespaces)+1)*len(v.Visible.Names) > v.Snapshot.Len()/lookupCost {
		return nil, false
	}
	return v.Visible.sections(s, namespaces), true
}

// lookupCost is about how many keys are read in order in the time that it takes to look up one.
const lookupCost = 4

// appendKeys appends the single objects of a namespace, or of all that are not visible as a whole.
func (v *Visible) appendKeys(out []section, namespace string) []section {
	for _, key := range v.Keys {
		ns, name := key.Split()
		if (namespace == "" || ns == namespace) && (ns == "" || !contains(v.Namespaces, ns)) {
			out = append(out, section{scope{namespace: ns, name: name}, string(key)})
		}
	}
	return out
}

// walkVisible returns the visible objects of a scope that come after a key, sorted by key. What it reads besides them
// counts, too: if that is too much, it ends early, and r.stopped is the error.
func (r *run[T]) walkVisible(v *View[T], s scope, after object.Key) iter.Seq[*store.Entry[T]] {
	sections, ok := v.sections(s)
	if !ok {
		return func(yield func(*store.Entry[T]) bool) {
			visible := v.Visible.containsFunc()
			for e := range r.walk(v, s, after) {
				if visible(e.Key) {
					if !yield(e) {
						return
					}
				} else if !r.step() {
					return
				}
			}
		}
	}
	return func(yield func(*store.Entry[T]) bool) {
		for i := range sections {
			if sections[i].name == "" {
				for e := range r.walk(v, sections[i].scope, after) {
					if !yield(e) {
						return
					}
				}
				continue
			}
			key := object.Key(sections[i].prefix)
			if e, found := v.Snapshot.Entry(key); !found {
				if !r.step() {
					return
				}
			} else if key > after && !yield(e) {
				return
			}
		}
	}
}

// step counts a key that was read and is not part of the answer. It reports whether the work may continue.
func (r *run[T]) step() bool {
	if r.stopped == nil {
		r.stopped = r.budget.scan()
	}
	return r.stopped == nil
}

// visibleSize returns the number of visible objects in the namespace of a request. If r.stopped is an error, it has not
// counted all of them.
func (r *run[T]) visibleSize(v *View[T]) int {
	s, n := scope{namespace: r.req.Namespace}, 0
	x, err := v.Snapshot.Index(namespaceIndex)
	if sections, ok := v.sections(s); ok && err == nil {
		for i := range sections {
			if sections[i].name == "" {
				n += x.Len(sections[i].namespace)
				continue
			}
			if !r.step() {
				return n
			}
			if _, ok := v.Snapshot.Entry(object.Key(sections[i].prefix)); ok {
				n++
			}
		}
		return n
	}
	for range r.walkVisible(v, s, "") {
		if n++; !r.step() {
			break
		}
	}
	return n
}
