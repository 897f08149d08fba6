package query

import (
	"hash/maphash"

	"github.com/mirador-k8s/mirador/object"
)

// nameFilter tells of most names that are not in a set that they are not, by one bit for the hash of each name.
type nameFilter struct {
	seed maphash.Seed
	bits []uint64
}

// bitsOfName is how many bits there are for each name: of the names that are not in the set, as many pass as the
// inverse of this.
const bitsOfName = 16

func newNameFilter(names []string) *nameFilter {
	words := 1
	for words*64 < len(names)*bitsOfName {
		words *= 2
	}
	f := &nameFilter{maphash.MakeSeed(), make([]uint64, words)}
	for _, name := range names {
		word, bit := f.at(name)
		f.bits[word] |= bit
	}
	return f
}

// at returns where the bit of a name is.
func (f *nameFilter) at(name string) (word int, bit uint64) {
	hash := maphash.String(f.seed, name)
	return int(hash>>6) & (len(f.bits) - 1), 1 << (hash & 63)
}

// passes reports whether a name may be in the set.
func (f *nameFilter) passes(name string) bool {
	word, bit := f.at(name)
	return f.bits[word]&bit != 0
}

// fewNames is up to how many names Contains is as fast as a nameFilter.
const fewNames = 16

// containsFunc returns a function that is like Contains, and faster for many keys.
func (v *Visible) containsFunc() func(object.Key) bool {
	if v.All || len(v.Names) <= fewNames {
		return v.Contains
	}
	filter, others := newNameFilter(v.Names), Visible{Namespaces: v.Namespaces, Keys: v.Keys}
	none := others.Empty()
	return func(key object.Key) bool {
		_, name := key.Split()
		return filter.passes(name) && contains(v.Names, name) || !none && others.Contains(key)
	}
}
