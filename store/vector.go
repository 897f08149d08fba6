package store

// A vector is a 32-way tree whose nodes carry the epoch in which they were
// made. A node of the current epoch is in no snapshot and is edited in place; any
// other is copied first. Copying the header (a vec value) and moving to the
// next epoch therefore is a snapshot, at a cost that does not depend on the size.
const (
	width     = 1 << levelBits
	levelBits = 5
	low       = width - 1
)

type leaf[V any] struct {
	owner uint64
	vals  [width]V
}

// branch has either branches or leaves below it.
type branch[V any] struct {
	owner  uint64
	kids   *[width]*branch[V]
	leaves *[width]*leaf[V]
}

func newBranch[V any](owner uint64, ofLeaves bool) *branch[V] {
	if ofLeaves {
		return &branch[V]{owner: owner, leaves: new([width]*leaf[V])}
	}
	return &branch[V]{owner: owner, kids: new([width]*branch[V])}
}

func (b *branch[V]) clone(owner uint64) *branch[V] {
	c := &branch[V]{owner: owner}
	if b.leaves != nil {
		leaves := *b.leaves
		c.leaves = &leaves
	} else {
		kids := *b.kids
		c.kids = &kids
	}
	return c
}

// vec holds up to 32 values in one small slice, because most index buckets are
// small, and more in a tree. The zero vec is empty.
type vec[V any] struct {
	few   []V
	owner uint64 // of few
	root  *branch[V]
	shift uint // of root: an index's bits from here on choose root's child
	n     int
}

func (v *vec[V]) get(i int) V {
	b := v.root
	if b == nil {
		return v.few[i]
	}
	for s := v.shift; s > levelBits; s -= levelBits {
		b = b.kids[(i>>s)&low]
	}
	return b.leaves[(i>>levelBits)&low].vals[i&low]
}

// chunk returns the values from base, a multiple of 32, to the next multiple.
func (v *vec[V]) chunk(base int) []V {
	b := v.root
	if b == nil {
		return v.few
	}
	for s := v.shift; s > levelBits; s -= levelBits {
		b = b.kids[(base>>s)&low]
	}
	return b.leaves[(base>>levelBits)&low].vals[:min(width, v.n-base)]
}

func (v *vec[V]) set(owner uint64, i int, val V) { *v.edit(owner, i) = val }

func (v *vec[V]) push(owner uint64, val V) {
	i := v.n
	switch {
	case v.root == nil && i < width:
		v.ownFew(owner)
		v.few = append(v.few, val)
		v.n++
		return
	case v.root == nil:
		first := &leaf[V]{owner: owner}
		copy(first.vals[:], v.few)
		v.root, v.shift = newBranch[V](owner, true), levelBits
		v.root.leaves[0] = first
		v.few = nil
	case i == 1<<(v.shift+levelBits):
		up := newBranch[V](owner, false)
		up.kids[0] = v.root
		v.root, v.shift = up, v.shift+levelBits
	}
	v.n++
	*v.edit(owner, i) = val
}

// pop drops the last value, and every node that then holds none.
func (v *vec[V]) pop(owner uint64) {
	i := v.n - 1
	if v.root == nil {
		v.ownFew(owner)
		clear(v.few[i:])
		v.few = v.few[:i]
		v.n--
		return
	}
	v.n--
	if v.n <= width/2 {
		v.few, v.owner = append([]V(nil), v.root.firstLeaf(v.shift).vals[:v.n]...), owner
		v.root, v.shift = nil, 0
		return
	}
	v.dropLast(owner, i)
	for v.shift > levelBits && v.n <= 1<<v.shift {
		v.root, v.shift = v.root.kids[0], v.shift-levelBits
	}
}

func (b *branch[V]) firstLeaf(shift uint) *leaf[V] {
	for ; shift > levelBits; shift -= levelBits {
		b = b.kids[0]
	}
	return b.leaves[0]
}

func (v *vec[V]) dropLast(owner uint64, i int) {
	b := v.ownRoot(owner)
	for s := v.shift; s > levelBits; s -= levelBits {
		if i&(1<<s-1) == 0 { // the child starts here, so it is empty now
			b.kids[(i>>s)&low] = nil
			return
		}
		b = b.ownKid(owner, (i>>s)&low, s)
	}
	if i&low == 0 {
		b.leaves[(i>>levelBits)&low] = nil
		return
	}
	var zero V
	b.ownLeaf(owner, (i>>levelBits)&low).vals[i&low] = zero
}

// edit returns the place of value i in nodes that no snapshot shares.
func (v *vec[V]) edit(owner uint64, i int) *V {
	if v.root == nil {
		v.ownFew(owner)
		return &v.few[i]
	}
	b := v.ownRoot(owner)
	for s := v.shift; s > levelBits; s -= levelBits {
		b = b.ownKid(owner, (i>>s)&low, s)
	}
	return &b.ownLeaf(owner, (i>>levelBits)&low).vals[i&low]
}

func (v *vec[V]) ownFew(owner uint64) {
	if v.owner != owner {
		v.few, v.owner = append([]V(nil), v.few...), owner
	}
}

func (v *vec[V]) ownRoot(owner uint64) *branch[V] {
	if v.root.owner != owner {
		v.root = v.root.clone(owner)
	}
	return v.root
}

// ownKid returns child i of a branch at the given shift, made or copied as needed.
func (b *branch[V]) ownKid(owner uint64, i int, shift uint) *branch[V] {
	kid := b.kids[i]
	switch {
	case kid == nil:
		kid = newBranch[V](owner, shift == 2*levelBits)
		b.kids[i] = kid
	case kid.owner != owner:
		kid = kid.clone(owner)
		b.kids[i] = kid
	}
	return kid
}

func (b *branch[V]) ownLeaf(owner uint64, i int) *leaf[V] {
	l := b.leaves[i]
	switch {
	case l == nil:
		l = &leaf[V]{owner: owner}
		b.leaves[i] = l
	case l.owner != owner:
		l = &leaf[V]{owner: owner, vals: l.vals}
		b.leaves[i] = l
	}
	return l
}
