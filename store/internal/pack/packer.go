package pack

import "sync"

// A Packer packs the objects of one store. A lock serializes its methods; reading what it packed does not take it.
type Packer struct {
	mu     sync.Mutex
	cache  *cache // a pointer, because bases refer to it and must not keep the Packer in memory
	index  index
	credit int // number of bases that may still be made, times creditUnit
	stats  Stats
	*scratch
}

// scratch is what a Packer needs besides while it packs. Packers take turns with it: most of a large number of stores
// seldom change, and it takes more memory than a small store.
type scratch struct {
	coder  coder
	sketch sketch
	read   reading
	set    *base  // the base that coder uses
	raw    []byte // its bytes
	try    []byte // for data that may be discarded
}

// largest returns the capacity of the largest buffer. Those of the differ's tables are bounded.
func (s *scratch) largest() int {
	return max(cap(s.raw), cap(s.try), cap(s.coder.ops), cap(s.coder.lits), cap(s.coder.steps), s.read.largest())
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// begin takes the lock and a scratch.
func (p *Packer) begin() {
	p.mu.Lock()
	p.scratch = scratches.Get().(*scratch)
}

// end releases what begin took. A scratch that a large object has made large is not kept.
func (p *Packer) end() {
	if p.scratch.largest() <= maxKept {
		scratches.Put(p.scratch)
	}
	p.scratch = nil
	p.mu.Unlock()
}

// A base that no other object uses wastes up to 550 bytes, so the number of bases is limited by a credit: each object
// adds a fraction of a base, and a base that proves useful adds creditProven. If objects have nothing in common, one
// in creditUnit becomes a base after the first few; if they have, the credit does not run out.
const (
	creditUnit   = 16
	creditFirst  = 1024 * creditUnit
	creditMost   = 4096 * creditUnit
	creditProven = 3 * creditUnit
)

// New returns an empty Packer.
func New() *Packer {
	p := &Packer{cache: new(cache), index: make(index), credit: creditFirst}
	p.cache.resize(0)
	return p
}

// Pack appends the packed data of original to dst. context is any text that will be passed to Append again, such as
// the key, UID and version that a store keeps anyway: parts of the object that are in the context take almost no space.
func (p *Packer) Pack(dst, original []byte, context string) ([]byte, Ref) {
	p.begin()
	defer p.end()
	start := len(dst)
	dst, b := p.choose(dst, original, context)
	if b != nil {
		b.users++
	} else {
		p.stats.Whole++
	}
	p.credit = min(p.credit+1, creditMost)
	p.stats.Objects++
	p.stats.RawBytes += int64(len(original))
	p.stats.PackedBytes += int64(len(dst) - start)
	p.cache.resize(p.stats.PackedBytes)
	return dst, Ref{b}
}

// choose packs against the most similar base, or makes a base.
func (p *Packer) choose(dst, original []byte, context string) ([]byte, *base) {
	start := len(dst)
	if len(original) < minSketched || len(original) >= maxLength {
		p.unset()
		return p.coder.append(dst, original, "", context), nil
	}
	p.sketch.fill(original)
	b, next := p.index.find(&p.sketch)
	if b == nil || !p.use(b) {
		return p.root(dst, original, context)
	}
	dst = p.against(b, dst, original, context)
	size := len(dst) - start
	if size <= b.poorSize(len(original)) {
		p.good(b, size)
		return dst, b
	}
	if next != nil && p.use(next) {
		p.try = p.against(next, p.try[:0], original, context)
		if len(p.try) < size {
			b, size, dst = next, len(p.try), append(dst[:start], p.try...)
			if size <= b.poorSize(len(original)) {
				p.good(b, size)
				return dst, b
			}
		}
	}
	if p.credit < creditUnit {
		return dst, b
	}
	return p.refresh(b, size, dst[:start], original, context)
}

// against packs against base b, which use has set.
func (p *Packer) against(b *base, dst, original []byte, context string) []byte {
	shape := ""
	if s := b.shape.Load(); s != nil {
		shape = *s
	}
	return p.coder.append(dst, original, shape, context)
}

// good records that packing an object against b gave a good size.
func (p *Packer) good(b *base, size int) {
	b.record(size)
	if b.shape.Load() == nil {
		shape := string(p.coder.ops)
		b.shape.Store(&shape)
		p.stats.BaseBytes += int64(len(shape))
	}
	if !b.proven && size < int(b.worth)*3/4 {
		b.proven = true
		p.credit = min(p.credit+creditProven, creditMost)
	}
}

// refresh makes original a base that builds on b, or on b's parent if b has the maximum depth.
func (p *Packer) refresh(b *base, size int, dst, original []byte, context string) ([]byte, *base) {
	parent := b
	if parent.depth == maxDepth {
		parent = parent.parent
	}
	if !p.use(parent) {
		return p.root(dst, original, context)
	}
	data := p.coder.append(nil, original, "", "")
	if len(data) > len(original)/4 {
		p.unset()
		if whole := p.coder.append(nil, original, "", ""); len(whole) < len(data)*5/4 {
			parent, data = nil, whole
		}
	}
	p.stats.Refreshed++
	return p.newBase(parent, data, size, dst, original, context)
}

// root makes original a base without parent if there is credit and it is compressible; otherwise it packs original
// without a base.
func (p *Packer) root(dst, original []byte, context string) ([]byte, *base) {
	p.unset()
	if p.credit < creditUnit {
		return p.coder.append(dst, original, "", context), nil
	}
	p.try = p.coder.append(p.try[:0], original, "", "")
	if len(p.try) > len(original)*7/8 {
		return p.coder.append(dst, original, "", context), nil
	}
	return p.newBase(nil, p.try, len(p.try), dst, original, context)
}

// newBase makes original a base with the given data against parent, and packs the object as a copy of it.
func (p *Packer) newBase(parent *base, data []byte, worth int, dst, original []byte, context string) ([]byte, *base) {
	b := &base{
		id:     lastID.Add(1),
		parent: parent,
		data:   string(data),
		cache:  p.cache,
		length: uint32(len(original)),
		worth:  uint32(worth),
	}
	if parent != nil {
		b.depth = parent.depth + 1
		parent.users++
	}
	p.index.add(b, &p.sketch)
	p.credit -= creditUnit
	p.stats.Bases++
	p.stats.BaseBytes += int64(b.cost())
	p.set, p.raw = b, append(p.raw[:0], original...)
	p.coder.setBase(p.raw)
	return p.coder.append(dst, original, "", context), b
}

// use makes the coder use b. It returns false if b cannot be read.
func (p *Packer) use(b *base) bool {
	if p.set == b {
		return true
	}
	raw, err := b.bytes(&p.read)
	if err != nil {
		return false
	}
	p.set, p.raw = b, append(p.raw[:0], raw...) // a copy, because the cache may evict raw, and p.read is reused
	p.coder.setBase(p.raw)
	return true
}

func (p *Packer) unset() {
	p.set = nil
	p.coder.setBase(nil)
}

// Release states that k, which this Packer made, is no longer stored. It must be called once for each packed object. A
// base that no stored object uses leaves the index: nothing is packed against it any more, and the garbage collector
// frees it with the last Packed that refers to it.
func (p *Packer) Release(k Packed) {
	p.begin()
	defer p.end()
	p.stats.Objects--
	p.stats.RawBytes -= int64(k.Len())
	p.stats.PackedBytes -= int64(len(k.data))
	if k.base == nil {
		p.stats.Whole--
	}
	for b := k.base; b != nil; b = b.parent {
		if b.users--; b.users > 0 {
			break
		}
		p.drop(b)
		p.stats.Bases--
		p.stats.BaseBytes -= int64(b.cost())
	}
	p.cache.resize(p.stats.PackedBytes)
}

// drop removes b from the index. Its features are computed from its bytes.
func (p *Packer) drop(b *base) {
	p.cache.forget(b)
	if p.use(b) {
		p.sketch.fill(p.raw)
		p.index.remove(b, &p.sketch)
	}
	p.unset()
}
