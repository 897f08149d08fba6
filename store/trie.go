package store

import (
	"math/bits"
	"slices"
)

// trieNode maps the values of one index to their buckets: a hash trie with five bits per level, whose nodes carry
// their epoch like those of a vector. A node below the root never has a single bucket as its only item, so removed
// values leave no nodes.
type trieNode struct {
	owner  uint64
	bitmap uint32
	items  []trieItem
}

// trieItem is either a node or a bucket.
type trieItem struct {
	sub  *trieNode
	leaf *bucket
}

// hashBits is the number of bits in a hash. Nodes below that depth are lists of the values with the same hash.
const hashBits = 64

func (n *trieNode) find(hash uint64, value string) *bucket {
	for shift := uint(0); n != nil; shift += 5 {
		if shift >= hashBits {
			for _, it := range n.items {
				if it.leaf.h.value == value {
					return it.leaf
				}
			}
			return nil
		}
		bit, pos := n.place(hash, shift)
		if n.bitmap&bit == 0 {
			return nil
		}
		it := n.items[pos]
		if it.leaf != nil {
			if it.leaf.h.value == value {
				return it.leaf
			}
			return nil
		}
		n = it.sub
	}
	return nil
}

// put adds a bucket, or replaces an older copy of the same bucket.
func (n *trieNode) put(owner uint64, shift uint, b *bucket) *trieNode {
	if n == nil {
		n = &trieNode{owner: owner}
	} else {
		n = n.own(owner)
	}
	if shift >= hashBits {
		if i := n.listed(b.h); i >= 0 {
			n.items[i].leaf = b
		} else {
			n.items = append(n.items, trieItem{leaf: b})
		}
		return n
	}
	bit, pos := n.place(b.h.hash, shift)
	if n.bitmap&bit == 0 {
		n.bitmap |= bit
		n.items = slices.Insert(n.items, pos, trieItem{leaf: b})
		return n
	}
	it := &n.items[pos]
	switch {
	case it.sub != nil:
		it.sub = it.sub.put(owner, shift+5, b)
	case it.leaf.h == b.h:
		it.leaf = b
	default:
		var sub *trieNode
		it.sub = sub.put(owner, shift+5, it.leaf).put(owner, shift+5, b)
		it.leaf = nil
	}
	return n
}

// remove removes the bucket of a handle that is in the trie.
func (n *trieNode) remove(owner uint64, shift uint, h *handle) *trieNode {
	n = n.own(owner)
	if shift >= hashBits {
		i := n.listed(h)
		n.items = slices.Delete(n.items, i, i+1)
		return n
	}
	bit, pos := n.place(h.hash, shift)
	it := &n.items[pos]
	if it.sub == nil {
		n.bitmap &^= bit
		n.items = slices.Delete(n.items, pos, pos+1)
		if len(n.items) == 0 {
			return nil
		}
		return n
	}
	it.sub = it.sub.remove(owner, shift+5, h)
	if rest := it.sub.items; len(rest) == 1 && rest[0].leaf != nil {
		*it = rest[0]
	}
	return n
}

// each calls yield for every bucket, in no particular order, until it returns false.
func (n *trieNode) each(yield func(*bucket) bool) bool {
	if n == nil {
		return true
	}
	for _, it := range n.items {
		if it.leaf != nil {
			if !yield(it.leaf) {
				return false
			}
		} else if !it.sub.each(yield) {
			return false
		}
	}
	return true
}

func (n *trieNode) place(hash uint64, shift uint) (bit uint32, pos int) {
	bit = 1 << (hash >> shift & 31)
	return bit, bits.OnesCount32(n.bitmap & (bit - 1))
}

func (n *trieNode) listed(h *handle) int {
	return slices.IndexFunc(n.items, func(it trieItem) bool { return it.leaf.h == h })
}

func (n *trieNode) own(owner uint64) *trieNode {
	if n.owner == owner {
		return n
	}
	return &trieNode{owner: owner, bitmap: n.bitmap, items: slices.Clone(n.items)}
}
