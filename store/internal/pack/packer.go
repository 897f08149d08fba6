package pack

import "sync"

// A Packer packs the objects of one store. Its methods exclude each other; reading what it packed needs none of them.
type Packer struct {
	mu     sync.Mutex
	cache  *cache // apart: bases point to it, and must not keep the Packer alive
	index  index
	coder  coder
	sketch sketch
	read   reading
	set    *base  // the base that coder is set to
	raw    []byte // its bytes
	out    []byte // what Pack makes a string of
	try    []byte // data that may be thrown away
	credit int    // bases that may still be made, times creditUnit
	stats  Stats
}

// A base that nobody else ever uses costs up to 550 bytes for nothing. So bases are made on credit: each object earns
// a part of one, a base that proves useful earns creditProven. Where objects have nothing in common, one in
// creditUnit becomes a base after the first few; where they have, credit never ends.
const (
	creditUnit   = 16
	creditFirst  = 1024 * creditUnit
	creditMost   = 4096 * creditUnit
	creditProven = 3 * creditUnit
)

// New makes a Packer.
func New() *Packer {
	p := &Packer{cache: new(cache), index: make(index), credit: creditFirst}
	p.cache.resize(0)
	return p
}

// Pack gives the packed form of original. context is any text that will be given to Append again, such as the key,
// the uid and the version that a store keeps anyway: what the object has in common with it costs next to nothing.
func (p *Packer) Pack(original []byte, context string) Packed {
	p.mu.Lock()
	defer p.mu.Unlock()
	out, b := p.pack(p.out[:0], original, context)
	if len(original) <= maxKept {
		p.out = out
	}
	return Packed{b, string(out)}
}

// PackInto is Pack, for whoever keeps the data together with bytes of their own: it appends the data to dst.
func (p *Packer) PackInto(dst, original []byte, context string) ([]byte, Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	dst, b := p.pack(dst, original, context)
	return dst, Ref{b}
}

func (p *Packer) pack(dst, original []byte, context string) ([]byte, *base) {
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
	if len(original) > maxKept {
		p.trim()
	}
	return dst, b
}

// trim gives back what only a large object needed.
func (p *Packer) trim() {
	p.unset()
	p.raw, p.out, p.try, p.read, p.coder = nil, nil, nil, reading{}, coder{}
}

// choose packs against the base that suits best, or makes one.
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
	if size <= b.poor(len(original)) {
		p.good(b, size)
		return dst, b
	}
	if next != nil && p.use(next) {
		p.try = p.against(next, p.try[:0], original, context)
		if len(p.try) < size {
			b, size, dst = next, len(p.try), append(dst[:start], p.try...)
			if size <= b.poor(len(original)) {
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

// against packs with base b, which is set.
func (p *Packer) against(b *base, dst, original []byte, context string) []byte {
	shape := ""
	if s := b.shape.Load(); s != nil {
		shape = *s
	}
	return p.coder.append(dst, original, shape, context)
}

// good notes that b suited an object.
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

// refresh makes original a base on top of b, or of what b builds on if b is deep already.
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

// root makes original a base of its own, if there is credit and it is not noise, or keeps it without one.
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

// newBase makes original a base, whose data against parent is given. The object itself is then a copy of it.
func (p *Packer) newBase(parent *base, data []byte, worth int, dst, original []byte, context string) ([]byte, *base) {
	b := &base{
		parent: parent,
		data:   string(data),
		home:   p.cache,
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

// use sets the coder to b. False means that b cannot be read.
func (p *Packer) use(b *base) bool {
	if p.set == b {
		return true
	}
	raw, err := b.bytes(&p.read)
	if err != nil {
		return false
	}
	p.set, p.raw = b, append(p.raw[:0], raw...) // the cache may drop its copy, and r is used again
	p.coder.setBase(p.raw)
	return true
}

func (p *Packer) unset() {
	p.set = nil
	p.coder.setBase(nil)
}

// Release says that k, which this Packer made, is stored no longer. It must be called once for each
// packed object. A base that is used by no stored object leaves the index: nothing is packed against it any more, and
// when the last that holds a Packed of it is gone, so is the base.
func (p *Packer) Release(k Packed) {
	p.mu.Lock()
	defer p.mu.Unlock()
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

// drop takes b out of the index. Its features are not kept, since it tells them itself.
func (p *Packer) drop(b *base) {
	p.cache.forget(b)
	if p.use(b) {
		p.sketch.fill(p.raw)
		p.index.remove(b, &p.sketch)
	}
	p.unset()
}
