package store

import (
	"fmt"
	"testing"
)

// trieModel is a trie with hashes that the test chooses, and the values that it must have.
type trieModel struct {
	root *trieNode
	in   map[string]*bucket
}

func (m *trieModel) verify(t *testing.T, hashOf func(string) uint64, values int) {
	t.Helper()
	if err := checkTrie(m.root, 0, 0, true, 1<<62); err != nil {
		t.Fatal(err)
	}
	n := 0
	m.root.each(func(*bucket) bool { n++; return true })
	if n != len(m.in) {
		t.Fatalf("trie has %d buckets, want %d", n, len(m.in))
	}
	for i := range values {
		v := fmt.Sprint("v", i)
		if got := m.root.find(hashOf(v), v); got != m.in[v] {
			t.Fatalf("find(%q) = %v, want %v", v, got, m.in[v])
		}
	}
}

func TestTrieFindsValuesWithCollidingHashes(t *testing.T) {
	for name, hashOf := range map[string]func(string) uint64{
		"all the same":          func(string) uint64 { return 42 },
		"two of them":           func(v string) uint64 { return uint64(len(v)) << 63 },
		"apart in the last bit": func(v string) uint64 { return uint64(v[len(v)-1]&1) << 63 },
		"a few low bits":        func(v string) uint64 { return uint64(v[len(v)-1] & 7) },
		"spread": func(v string) uint64 {
			return uint64(len(v)*7919+
				int(v[len(v)-1])*104729) * 0x9E3779B97F4A7C15
		},
	} {
		t.Run(name, func(t *testing.T) {
			rnd := seedOf(t)
			m := trieModel{in: map[string]*bucket{}}
			var cuts []trieModel
			owner := uint64(1)
			for range 600 {
				v := fmt.Sprint("v", rnd.IntN(40))
				old := m.in[v]
				switch {
				case old != nil && rnd.IntN(2) == 0:
					m.root = m.root.remove(owner, 0, old.h)
					delete(m.in, v)
				default:
					h := &handle{value: v, hash: hashOf(v)}
					if old != nil {
						h = old.h
					}
					b := &bucket{owner: owner, h: h}
					b.slots.push(owner, 1)
					m.root = m.root.put(owner, 0, b)
					m.in[v] = b
				}
				m.verify(t, hashOf, 40)
				if rnd.IntN(20) == 0 {
					kept := trieModel{m.root, map[string]*bucket{}}
					for k, b := range m.in {
						kept.in[k] = b
					}
					cuts = append(cuts, kept)
					owner++
				}
			}
			for _, c := range cuts {
				c.verify(t, hashOf, 40)
			}
			for _, b := range m.in {
				m.root = m.root.remove(owner, 0, b.h)
			}
			if m.root != nil {
				t.Error("an empty trie has a node")
			}
		})
	}
}
