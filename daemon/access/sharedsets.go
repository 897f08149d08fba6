package access

import (
	"hash/maphash"
	"runtime"
	"slices"
	"sync"
	"weak"

	"github.com/mirador-k8s/mirador/daemon/query"
)

// sharedSets gives equal sets the same pointer: the sets of a user for list and watch, or those of a team, take the
// memory of one. It keeps no set in memory. The zero value is ready to use.
type sharedSets struct {
	mu   sync.Mutex
	sets map[uint64][]weak.Pointer[query.Visible] // by hash
}

// setSeed is the seed of the hashes.
var setSeed = maphash.MakeSeed()

// hashOf returns a hash of a set. Its fingerprint, which is the same in every process, would take longer.
func hashOf(v *query.Visible) uint64 {
	var h maphash.Hash
	h.SetSeed(setSeed)
	hashTexts(&h, v.Namespaces)
	hashTexts(&h, v.Keys)
	hashTexts(&h, v.Names)
	return h.Sum64()
}

func hashTexts[S ~string](h *maphash.Hash, texts []S) {
	for _, text := range texts {
		h.WriteString(string(text))
		h.WriteByte(0)
	}
	h.WriteByte(1)
}

// share returns a set that is equal to v, which nothing may change any more.
func (s *sharedSets) share(v *query.Visible) *query.Visible {
	hash := hashOf(v)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.sets[hash] {
		if set := known.Value(); set != nil && set.Equal(v) {
			return set
		}
	}
	if s.sets == nil {
		s.sets = map[uint64][]weak.Pointer[query.Visible]{}
	}
	s.sets[hash] = append(s.sets[hash], weak.Make(v))
	runtime.AddCleanup(v, s.forget, hash)
	return v
}

// forget removes the sets with a hash that are no longer in memory.
func (s *sharedSets) forget(hash uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := slices.DeleteFunc(s.sets[hash], func(p weak.Pointer[query.Visible]) bool { return p.Value() == nil })
	if len(left) == 0 {
		delete(s.sets, hash)
	} else {
		s.sets[hash] = left
	}
}
