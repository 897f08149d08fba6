package pack

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
)

// Base is a base for code that keeps packed objects outside of the process.
type Base = base

// lastID is the newest ID of a base. It begins at a random number, so that no two processes use the same IDs.
var lastID atomic.Uint64

func init() { lastID.Store(rand.Uint64() >> 1) }

// ID returns a number that no other base has, in this process or in another.
func (b *base) ID() uint64 { return b.id }

// Parent returns the base that this one is a difference to, or nil.
func (b *base) Parent() *Base { return b.parent }

// Data returns the bytes of the base as a difference to its parent.
func (b *base) Data() string { return b.data }

// Len returns the length of the base's own bytes.
func (b *base) Len() int { return int(b.length) }

// Shape returns what objects that were packed against the base may need besides its bytes. It is "" at first, and is
// set once: data that needs the shape is packed after that.
func (b *base) Shape() string {
	if s := b.shape.Load(); s != nil {
		return *s
	}
	return ""
}

// Base returns the base of the object, or nil.
func (k Packed) Base() *Base { return k.base }

// Data returns the packed bytes.
func (k Packed) Data() string { return k.data }

// Bases holds bases that were kept outside of the process. Any number of goroutines may read objects of its bases.
type Bases struct{ cache *cache }

// NewBases returns an empty Bases.
func NewBases() *Bases {
	c := new(cache)
	c.resize(cacheMost * cacheShare)
	return &Bases{c}
}

// Restore returns a base, given what its methods returned when it was kept. Damaged data is an error here or when an
// object is read.
func (s *Bases) Restore(id uint64, parent *Base, data, shape string, length int) (*Base, error) {
	b := &base{id: id, parent: parent, data: data, cache: s.cache, length: uint32(length)}
	if parent != nil {
		b.depth = parent.depth + 1
	}
	if b.depth > maxDepth || length < 0 || length > maxLength {
		return nil, errors.New("the base of a packed object is damaged")
	}
	if shape != "" {
		b.shape.Store(&shape)
	}
	return b, nil
}

// Packed returns the packed object of data that was packed against b, which may be nil.
func (s *Bases) Packed(b *Base, data string) Packed { return Packed{b, data} }

// Whole packs an object against no base.
func Whole(original []byte, context string) Packed {
	p := New()
	p.begin()
	defer p.end()
	p.unset()
	return Packed{nil, string(p.coder.append(nil, original, "", context))}
}

// RefTo returns what reading the data of a packed object needs.
func RefTo(k Packed) Ref { return Ref{k.base} }

// Take counts an object that another Packer made, so that p can Release it, and packs further objects against its
// bases. Bases belong to one Packer: nothing else may take or read objects of the same Bases during the call.
func (p *Packer) Take(k Packed) Ref {
	p.begin()
	defer p.end()
	if k.base == nil {
		p.stats.Whole++
	} else {
		p.take(k.base)
		k.base.users++
	}
	p.stats.Objects++
	p.stats.RawBytes += int64(k.Len())
	p.stats.PackedBytes += int64(len(k.data))
	p.cache.resize(p.stats.PackedBytes)
	return Ref{k.base}
}

// take makes p the owner of a base that it does not have. A base that cannot be read is not used for further objects.
func (p *Packer) take(b *base) {
	if b.users > 0 {
		return
	}
	if b.parent != nil {
		p.take(b.parent)
		b.parent.users++
	}
	b.cache.forget(b)
	b.cache, b.gone = p.cache, false
	b.worth, b.proven = uint32(len(b.data)), true
	if raw, err := b.bytes(&p.read); err == nil { // not use, which also prepares the coder
		p.sketch.fill(raw)
		p.index.add(b, &p.sketch)
	}
	p.stats.Bases++
	p.stats.BaseBytes += int64(b.cost())
}
