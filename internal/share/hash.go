package share

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"
	"reflect"
	"unsafe"
)

// Bounds of a walk. No decoder produces an object beyond them: such an object has cycles, or pointers to the same
// few values on every level.
const (
	maxDepth = 2000
	maxNodes = 1 << 20
)

// A node is the hash of one string, block of memory, map or value in an interface. The nodes of an object are in the
// order of a walk, each before those below it, so a second walk in the same order has the hash of each part in
// advance.
type node struct {
	hash uint64
	end  int32 // the node after this one and all nodes below it
	pair int32 // for maps from strings to interfaces: the first of its entries in walker.pairs
}

// A walker hashes and compares. It keeps its scratch memory from walk to walk.
type walker struct {
	nodes []node
	pairs []pair // entries of maps from strings to interfaces
	spare map[*plan][]*rows
	iter  reflect.MapIter
	depth int
	steps int
	over  bool // a bound was exceeded: hashes and comparisons are meaningless
}

type pair struct {
	key string
	val any
}

var seed = maphash.MakeSeed()

// Hashes of values that have no contents.
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
		return uint64(binary.NativeEndian.Uint32((*[4]byte)(at)[:]))
	case 8:
		return binary.NativeEndian.Uint64((*[8]byte)(at)[:])
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

// hashMem adds the value of plan p at address at to h.
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
			} else {
				h ^= hashShort(s)
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
			if s := *sliceAt(slot); s == nil {
				h ^= hashNil
			} else if len(s) == 0 || o.elem.size == 0 {
				h ^= hashEmpty + uint64(len(s))
			} else {
				h ^= w.hashBlock(o.elem, dataOf(s), len(s))
			}
		case opMap:
			h ^= w.hashMap(o.elem, o.elem.mapAt(slot))
		case opAny, opInterface:
			h ^= w.hashAny(o.load(slot))
		case opArray:
			for j := range o.size {
				h = w.hashMem(o.elem, unsafe.Add(slot, j*o.elem.size), h)
			}
		}
		h = mix(h)
	}
	return h
}

// hashShort hashes a string that is shorter than minText.
func hashShort(s string) uint64 {
	if s == "" {
		return hashEmpty
	}
	return uint64(s[0])
}

// hashBlock adds a node for n consecutive values of plan p.
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

// hashAny hashes the dynamic type and the value of an interface.
func (w *walker) hashAny(x any) uint64 {
	switch v := x.(type) {
	case nil:
		return hashNil
	case string:
		if len(v) < minText {
			return mix(stringPlan.salt ^ hashShort(v))
		}
		h := mix(stringPlan.salt ^ maphash.String(seed, v))
		w.leaf(h)
		return h
	case bool:
		if v {
			return mix(boolPlan.salt)
		}
		return boolPlan.salt
	case int64:
		return mix(int64Plan.salt ^ uint64(v))
	case float64:
		return mix(float64Plan.salt ^ math.Float64bits(v))
	case map[string]any:
		return mapPlan.salt ^ w.hashMap(mapPlan, v)
	case []any:
		return w.hashAnySlice(v)
	}
	switch p := planOf(reflect.TypeOf(x)); {
	case p.isPointer():
		if elem, to := p.pointee(x); to != nil {
			return mix(p.salt ^ w.hashBlock(elem, to, 1))
		} else if isNil(x) {
			return p.salt ^ hashNil
		}
		return p.salt ^ hashEmpty
	case p.isMap():
		return p.salt ^ w.hashMap(p, p.mapIn(x))
	case p.small():
		return w.hashMem(p, copyOf(p, x), p.salt)
	default:
		return w.hashCopy(p, x)
	}
}

// hashAnySlice adds a node for the interface and one for the elements, if there are any.
func (w *walker) hashAnySlice(v []any) uint64 {
	switch {
	case v == nil:
		return anySlicePlan.salt ^ hashNil
	case len(v) == 0:
		return anySlicePlan.salt ^ hashEmpty
	}
	i := len(w.nodes)
	w.nodes = append(w.nodes, node{})
	h := mix(anySlicePlan.salt ^ w.hashBlock(anyPlan, unsafe.Pointer(unsafe.SliceData(v)), len(v)))
	w.nodes[i] = node{hash: h, end: int32(len(w.nodes))}
	return h
}

// hashCopy adds one node for a value in an interface, without nodes for its parts: see shareCopy.
func (w *walker) hashCopy(p *plan, x any) uint64 {
	if !w.enter() {
		return 0
	}
	i := len(w.nodes)
	w.nodes = append(w.nodes, node{})
	h := w.hashMem(p, copyOf(p, x), p.salt)
	w.nodes = w.nodes[:i+1]
	w.nodes[i] = node{hash: h, end: int32(i + 1)}
	w.depth--
	return h
}

// hashMap hashes a map as mapAt returns it. It adds a node unless the map is nil.
func (w *walker) hashMap(p *plan, m any) uint64 {
	if isNil(m) {
		return hashNil
	}
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
		for k, v := range m.(map[string]string) {
			h += mix(maphash.String(seed, k) ^ bits.RotateLeft64(maphash.String(seed, v), 32))
		}
	case mapStringAny:
		at = len(w.pairs)
		for k, v := range m.(map[string]any) {
			w.pairs = append(w.pairs, pair{k, v})
		}
		for j := at; j < at+len(m.(map[string]any)); j++ {
			x := maphash.String(seed, w.pairs[j].key)
			h += mix(x ^ bits.RotateLeft64(w.hashAny(w.pairs[j].val), 32))
		}
	default:
		r := w.collect(p, m)
		for j := range r.n {
			x := w.hashMem(p.key, unsafe.Add(r.keyAt, uintptr(j)*p.key.size), p.salt)
			h += w.hashMem(p.val, unsafe.Add(r.valAt, uintptr(j)*p.val.size), x)
		}
		w.giveBack(r)
	}
	if p.form != mapStringAny {
		// The next walk meets the entries in another order: see shareRows.
		w.nodes = w.nodes[:i+1]
	}
	h = mix(h ^ p.salt)
	w.nodes[i] = node{hash: h, end: int32(len(w.nodes)), pair: int32(at)}
	w.depth--
	return h
}

// reset drops the results of a walk and all references to the object.
func (w *walker) reset() {
	const keep = 1 << 14 // one huge object must not cost memory for ever
	w.nodes = w.nodes[:0]
	clear(w.pairs)
	w.pairs = w.pairs[:0]
	if cap(w.nodes) > keep || cap(w.pairs) > keep {
		w.nodes, w.pairs = nil, nil
	}
	w.depth, w.steps, w.over = 0, 0, false
}

func (w *walker) bytes() int {
	n := cap(w.nodes)*int(unsafe.Sizeof(node{})) + cap(w.pairs)*int(unsafe.Sizeof(pair{}))
	for p, spare := range w.spare {
		for _, r := range spare {
			n += r.keys.Len() * int(p.key.size+p.val.size)
		}
	}
	return n
}
