package informertest

import (
	"slices"
	"sort"

	"github.com/mirador-k8s/mirador/object"
)

// revision is the state of a key from a version on; a nil entry means that the key has no object.
type revision struct {
	version uint64
	entry   *entry
}

// change is one write. old is nil if the object is new, next is nil if it was deleted; final is the state that a
// deletion announces.
type change struct {
	version          uint64
	resource         *resource
	old, next, final *entry
}

// history holds every state since the last compaction, for all resources, in
// one sequence of versions. It knows nothing of HTTP and has no lock: its owner
// calls it from one goroutine at a time.
type history struct {
	version   uint64
	compacted uint64
	log       []change
}

// at returns the object of a key at a version, or nil.
func (h *history) at(r *resource, key object.Key, version uint64) *entry {
	revs := r.revisions[key]
	for i := len(revs) - 1; i >= 0; i-- {
		if revs[i].version <= version {
			return revs[i].entry
		}
	}
	return nil
}

// list returns all objects of a resource at a version, in the order of their keys.
func (h *history) list(r *resource, version uint64) []*entry {
	keys := r.keys()
	out := make([]*entry, 0, len(keys))
	for _, k := range keys {
		if e := h.at(r, k, version); e != nil {
			out = append(out, e)
		}
	}
	return out
}

// since returns a resource's changes after a version, oldest first.
func (h *history) since(r *resource, version uint64) []change {
	from := sort.Search(len(h.log), func(i int) bool { return h.log[i].version > version })
	var out []change
	for _, c := range h.log[from:] {
		if c.resource == r {
			out = append(out, c)
		}
	}
	return out
}

// next is the version that the next write will have.
func (h *history) next() uint64 { return h.version + 1 }

// put stores an entry that was made for the next version.
func (h *history) put(r *resource, old, e *entry) {
	h.version = e.version
	h.append(r, e.key, e)
	h.log = append(h.log, change{version: e.version, resource: r, old: old, next: e})
}

// remove deletes an object and returns the final state that watches send.
func (h *history) remove(r *resource, old *entry) (*entry, error) {
	final, err := old.withVersion(h.next())
	if err != nil {
		return nil, err
	}
	h.removeAs(r, old, final)
	return final, nil
}

// removeAs is like remove, with a given final state, made for the next version.
func (h *history) removeAs(r *resource, old, final *entry) {
	h.version = final.version
	h.append(r, old.key, nil)
	h.log = append(h.log, change{version: final.version, resource: r, old: old, final: final})
}

func (h *history) append(r *resource, key object.Key, e *entry) {
	if _, known := r.revisions[key]; !known {
		r.sorted = nil
	}
	r.revisions[key] = append(r.revisions[key], revision{h.version, e})
}

// compact drops the history before a version. Changes after keep, the version of the slowest open watch, are kept.
func (h *history) compact(resources []*resource, version, keep uint64) {
	h.compacted = max(h.compacted, version)
	for _, r := range resources {
		for k, revs := range r.revisions {
			first := 0
			for i := range revs {
				if revs[i].version <= h.compacted {
					first = i
				}
			}
			revs = slices.Clone(revs[first:])
			if len(revs) == 1 && revs[0].entry == nil {
				delete(r.revisions, k)
				r.sorted = nil
				continue
			}
			r.revisions[k] = revs
		}
	}
	cut := sort.Search(len(h.log), func(i int) bool { return h.log[i].version > min(h.compacted, keep) })
	h.log = slices.Clone(h.log[cut:])
}

// restore goes back to a version and discards everything written later.
func (h *history) restore(resources []*resource, version uint64) {
	for _, r := range resources {
		for k, revs := range r.revisions {
			n := sort.Search(len(revs), func(i int) bool { return revs[i].version > version })
			if n == 0 {
				delete(r.revisions, k)
			} else {
				r.revisions[k] = revs[:n:n]
			}
		}
		r.sorted = nil
	}
	n := sort.Search(len(h.log), func(i int) bool { return h.log[i].version > version })
	h.log = h.log[:n:n]
	h.version = version
}
