package share

import (
	"hash/maphash"
	"math"
	"math/bits"
	"reflect"
	"unsafe"
)

// Bounds of what is walked. An object beyond them, which no decoder makes, is one
// whose pointers run in circles or fan out from one another.
const (
	maxDepth = 2000
	maxNodes = 1 << 20
)

// A node is the hash of one string, block of memory or map. The nodes of an object lie in the
// order of a walk, each before those below it, so that a second walk in the same
// order knows the hash of everything before it looks.
type node struct {
	hash uint64
	end  int32 // the node after this one and all below it
	pair int32 // for maps from strings to interfaces: the first of its entries in walker.pairs
}

// A walker hashes and compares. It keeps its scratch memory from walk to walk.
type walker struct {
	nodes []node
	pairs []pair // entries of maps from strings to interfaces
	spare map[*plan][]*rows
	iter  reflect.MapIter
	// Values and maps under comparison, which need an address.
	compared    []any
	left, right unsafe.Pointer
	depth       int
	steps       int
	over        bool // a bound was passed: hashes and comparisons mean nothing
}

type pair struct {
	key string
	val any
}

var seed = maphash.MakeSeed()

// What stands for a value that has nothing below it.
const (
	hashNil   = 0x9ae16a3b2f90404f
	hashEmpty = 0xc3a5c85c97cb3127
)

func mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x^0xa0761d6478bd642f, 0xe7037ed1a0b428db)
	return hi ^ lo
}

func hashRaw(at unsafe.Pointer, n uintptr) uint64 {
	switch n {
	case 1:
		return uint64(*(*uint8)(at))
	case 4:
		return uint64(*(*uint32)(at))
	case 8:
		return *(*uint64)(at)
	}
	return maphash.Bytes(seed, unsafe.Slice((*byte)(at), n))
}

// enter counts a step down and reports whether it is within the bounds.
func (w *walker) enter() bool {
	w.depth++
	w.steps++
	if w.depth > maxDepth || w.steps > maxNodes {
		w.over = true
	}
	return !w.over
}

// unbound lifts the bounds for the rest of the walk.
func (w *walker) unbound() { w.depth, w.steps = math.MinInt/2, math.MinInt/2 }

func (w *walker) leaf(hash uint64) {
	w.nodes = append(w.nodes, node{hash: hash, end: int32(len(w.nodes) + 1)})
}

// hashMem adds to h the value of plan p at address at.
func (w *walker) hashMem(p *plan, at unsafe.Pointer, h uint64) uint64 {
	for i := range p.ops {
		o := &p.ops[i]
		slot := unsafe.Add(at, o.off)
		switch o.kind {
		case opRaw:
			h ^= hashRaw(slot, o.size)
		case opString:
			if s := *(*string)(slot); len(s) >= minText {
				x := maphash.String(seed, s)
				w.leaf(x)
				h ^= x
			} else if len(s) > 0 {
				h ^= uint64(s[0])
			} else {
				h ^= hashEmpty
			}
		case opPointer:
			if to := *(*unsafe.Pointer)(slot); to == nil {
				h ^= hashNil
			} else if o.elem.size == 0 {
				h ^= hashEmpty
			} else {
				h ^= w.hashBlock(o.elem, to, 1)
			}
		case opSlice:
			if s := (*slice)(slot); s.data == nil {
				h ^= hashNil
			} else if s.len == 0 || o.elem.size == 0 {
				h ^= hashEmpty + uint64(s.len)
			} else {
				h ^= w.hashBlock(o.elem, s.data, s.len)
			}
		case opMap:
			if *(*unsafe.Pointer)(slot) == nil {
				h ^= hashNil
			} else {
				h ^= w.hashMap(o.elem, slot)
			}
		case opEface, opIface:
			h ^= w.hashInterface(o, slot)
		case opArray:
			for j := range o.size {
				h = w.hashMem(o.elem, unsafe.Add(slot, j*o.elem.size), h)
			}
		}
		h = mix(h)
	}
	return h
}

// hashBlock makes a node of n values of plan p in a row.
func (w *walker) hashBlock(p *plan, at unsafe.Pointer, n int) uint64 {
	if p.raw {
		h := mix(hashRaw(at, uintptr(n)*p.size) ^ p.salt)
		w.leaf(h)
		return h
	}
	if !w.enter() {
		return 0
	}
	i := len(w.nodes)
	w.nodes = append(w.nodes, node{})
	h := p.salt ^ uint64(n)
	for j := range n {
		h = w.hashMem(p, unsafe.Add(at, uintptr(j)*p.size), h)
	}
	w.nodes[i] = node{hash: h, end: int32(len(w.nodes))}
	w.depth--
	return h
}

// hashInterface takes in the dynamic type and the value.
func (w *walker) hashInterface(o *op, slot unsafe.Pointer) uint64 {
	e := (*eface)(slot)
	if e.typ == nil {
		return hashNil
	}
	p := dynamic(o, slot)
	switch {
	case p.direct:
		return w.hashMem(p, unsafe.Pointer(&e.data), p.salt)
	case p.pinned:
		return p.salt ^ uint64(uintptr(e.data))
	case p.small(e.data):
		return w.hashMem(p, e.data, p.salt)
	case p.kind == reflect.String:
		h := mix(p.salt ^ maphash.String(seed, *(*string)(e.data)))
		w.leaf(h)
		return h
	}
	return w.hashBlock(p, e.data, 1)
}

func (w *walker) hashMap(p *plan, slot unsafe.Pointer) uint64 {
	if !w.enter() {
		return 0
	}
	i := len(w.nodes)
	w.nodes = append(w.nodes, node{})
	// The order of the entries is random, so their hashes are added up.
	var h uint64
	at := 0
	switch p.form {
	case mapStrings:
		for k, v := range *(*map[string]string)(slot) {
			h += mix(maphash.String(seed, k) ^ bits.RotateLeft64(maphash.String(seed, v), 32))
		}
	case mapStringAny:
		at = len(w.pairs)
		for k, v := range *(*map[string]any)(slot) {
			w.pairs = append(w.pairs, pair{k, v})
		}
		for j := at; j < at+len(*(*map[string]any)(slot)); j++ {
			x := maphash.String(seed, w.pairs[j].key)
			h += mix(x ^ bits.RotateLeft64(w.hashInterface(&anyOp, unsafe.Pointer(&w.pairs[j].val)), 32))
		}
	default:
		r := w.collect(p, slot)
		for j := range r.n {
			x := w.hashMem(p.key, unsafe.Add(r.keyAt, uintptr(j)*p.key.size), p.salt)
			h += w.hashMem(p.val, unsafe.Add(r.valAt, uintptr(j)*p.val.size), x)
		}
		w.giveBack(r)
	}
	if p.form != mapStringAny {
		// What is below comes by in another order the next time: see shareRows.
		w.nodes = w.nodes[:i+1]
	}
	h = mix(h ^ p.salt)
	w.nodes[i] = node{hash: h, end: int32(len(w.nodes)), pair: int32(at)}
	w.depth--
	return h
}

// reset forgets the walk and whatever it held on to.
func (w *walker) reset() {
	const keep = 1 << 14 // beyond that, one huge object would cost memory for ever
	w.nodes = w.nodes[:0]
	clear(w.pairs)
	w.pairs = w.pairs[:0]
	if cap(w.nodes) > keep || cap(w.pairs) > keep {
		w.nodes, w.pairs = nil, nil
	}
	w.depth, w.steps, w.over = 0, 0, false
}

func (w *walker) bytes() int {
	n := cap(w.nodes)*int(unsafe.Sizeof(node{})) + cap(w.pairs)*int(unsafe.Sizeof(pair{})) + cap(w.compared)*int(unsafe.Sizeof(any(nil)))
	for p, spare := range w.spare {
		for _, r := range spare {
			n += r.keys.Len() * int(p.key.size+p.val.size)
		}
	}
	return n
}
