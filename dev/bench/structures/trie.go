package structures

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"
)

// trie is persistent hash tries, 32 ways wide: nodes carry the batch that made them,
// are edited in place within it and copied after it.
type trie struct {
	batch     uint64
	published atomic.Pointer[tries]
}

type tries struct {
	objects          *node[*Object]
	namespaces, apps *node[*node[*Object]]
}

func newTrie() Candidate {
	t := &trie{}
	t.published.Store(&tries{})
	return t
}

func (t *trie) Update(batch []*Object) {
	t.batch++
	now := *t.published.Load()
	for _, o := range batch {
		old, had := now.objects.get(o.Key)
		now.objects = now.objects.set(t.batch, o.Key, o)
		if had && old.App != o.App {
			app, _ := now.apps.get(old.App)
			now.apps = now.apps.set(t.batch, old.App, app.remove(t.batch, o.Key))
		}
		now.namespaces = t.index(now.namespaces, o.Namespace, o)
		now.apps = t.index(now.apps, o.App, o)
	}
	t.published.Store(&now)
}

func (t *trie) index(in *node[*node[*Object]], value string, o *Object) *node[*node[*Object]] {
	b, _ := in.get(value)
	return in.set(t.batch, value, b.set(t.batch, o.Key, o))
}

func (t *trie) Get(key string) *Object {
	o, _ := t.published.Load().objects.get(key)
	return o
}

func (t *trie) By(index, value string, yield func(*Object)) {
	now := t.published.Load()
	b, _ := pick(index, now.namespaces, now.apps).get(value)
	b.each(yield)
}

func (t *trie) All(yield func(*Object)) { t.published.Load().objects.each(yield) }

// node has a slot for each bit that is set; the last level is a plain list of those
// whose hashes are the same.
type node[V any] struct {
	batch  uint64
	bitmap uint32
	slots  []slot[V]
}

// slot is a deeper node or an entry.
type slot[V any] struct {
	child *node[V]
	key   string
	value V
}

const (
	step    = 5
	deepest = 60
)

var seed = maphash.MakeSeed()

func (n *node[V]) get(key string) (v V, ok bool) {
	hash := maphash.String(seed, key)
	for shift := 0; n != nil; shift += step {
		at, there := n.find(hash, shift, key)
		if !there {
			return v, false
		}
		s := &n.slots[at]
		switch {
		case s.child != nil:
			n = s.child
		case s.key == key:
			return s.value, true
		default:
			return v, false
		}
	}
	return v, false
}

// find gives the place of a hash in a node's slots.
func (n *node[V]) find(hash uint64, shift int, key string) (at int, there bool) {
	if shift >= deepest {
		for i := range n.slots {
			if n.slots[i].key == key {
				return i, true
			}
		}
		return len(n.slots), false
	}
	bit := uint32(1) << (hash >> shift & 31)
	return bits.OnesCount32(n.bitmap & (bit - 1)), n.bitmap&bit != 0
}

func (n *node[V]) set(batch uint64, key string, v V) *node[V] {
	return n.put(batch, maphash.String(seed, key), 0, slot[V]{key: key, value: v})
}

// own gives a node that this batch may edit.
func (n *node[V]) own(batch uint64) *node[V] {
	switch {
	case n == nil:
		return &node[V]{batch: batch}
	case n.batch == batch:
		return n
	}
	return &node[V]{batch, n.bitmap, append(make([]slot[V], 0, len(n.slots)+1), n.slots...)}
}

func (n *node[V]) put(batch, hash uint64, shift int, s slot[V]) *node[V] {
	n = n.own(batch)
	at, there := n.find(hash, shift, s.key)
	switch {
	case !there:
		n.slots = append(n.slots, slot[V]{})
		copy(n.slots[at+1:], n.slots[at:])
		n.slots[at] = s
		if shift < deepest {
			n.bitmap |= 1 << (hash >> shift & 31)
		}
	case n.slots[at].child != nil:
		n.slots[at].child = n.slots[at].child.put(batch, hash, shift+step, s)
	case n.slots[at].key == s.key:
		n.slots[at] = s
	default:
		other := n.slots[at]
		child := (*node[V])(nil).put(batch, maphash.String(seed, other.key), shift+step, other)
		n.slots[at] = slot[V]{child: child.put(batch, hash, shift+step, s)}
	}
	return n
}

func (n *node[V]) remove(batch uint64, key string) *node[V] {
	return n.take(batch, maphash.String(seed, key), 0, key)
}

func (n *node[V]) take(batch, hash uint64, shift int, key string) *node[V] {
	if n == nil {
		return nil
	}
	at, there := n.find(hash, shift, key)
	if !there || n.slots[at].child == nil && n.slots[at].key != key {
		return n
	}
	n = n.own(batch)
	if child := n.slots[at].child; child != nil {
		if n.slots[at].child = child.take(batch, hash, shift+step, key); n.slots[at].child != nil {
			return n
		}
	}
	n.slots = append(n.slots[:at], n.slots[at+1:]...)
	if shift < deepest {
		n.bitmap &^= 1 << (hash >> shift & 31)
	}
	if len(n.slots) == 0 {
		return nil
	}
	return n
}

func (n *node[V]) each(yield func(V)) {
	if n == nil {
		return
	}
	for i := range n.slots {
		if s := &n.slots[i]; s.child != nil {
			s.child.each(yield)
		} else {
			yield(s.value)
		}
	}
}
