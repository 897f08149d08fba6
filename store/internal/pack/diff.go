package pack

// A differ finds the ops that make an object from its base and its context. All its fields are scratch.
type differ struct {
	base    []byte
	inBase  positions // positions in base
	inSelf  positions // positions in ctx, then in the parts of target that the base does not have
	target  []byte
	ctx     string
	shift   int // cursor into base = position in target + shift
	pending int // bytes before the position that are copied from the base and not yet in ops
	edits   edits
	clock   times
	ops     []byte
	lits    []byte
}

const (
	minAligned = 4  // a shorter match with the base is cheaper as literals
	minCtx     = 5  // shortest match in the context
	minOut     = 6  // an address in the output takes two bytes
	minFar     = 7  // likewise in the base
	minSaved   = 4  // number of literals that a copy must replace to pay for its address
	minSeek    = 16 // shortest match for which the cursor is moved
	minHexRun  = 16 // IDs are one edit each, so that siblings have equal ops
	maxHexRun  = 128
	stride     = 3 // distance between indexed positions of the base
	nearby     = 4 // distance from the cursor that is searched without the index after a change of length
)

// setBase sets the base of the next diffs. It indexes every third position, which is enough for matches of 9 bytes.
func (d *differ) setBase(base []byte) {
	d.base = base
	d.inBase.reset(len(base)/stride, 6)
	x := &d.inBase
	slots, drop, shift := x.slots, x.drop&63, x.shift&63
	for i := 0; i+word <= len(base); i += stride {
		slots[(load64(base, i)<<drop*hashFactor)>>shift&uint64(len(slots)-1)] = uint32(i) + 1
	}
}

// diff sets d.ops and d.lits so that apply makes target from them.
func (d *differ) diff(target []byte, ctx string) {
	d.target, d.ctx = target, ctx
	d.ops, d.lits = d.ops[:0], d.lits[:0]
	d.shift, d.pending = 0, 0
	d.edits.n, d.clock = 0, times{}
	if len(d.base) == 0 {
		d.inSelf.reset(len(target)+len(ctx), minCtx)
	} else {
		d.inSelf.reset(4*len(ctx)+512, minCtx)
	}
	for i := 0; i+minCtx <= len(ctx); i++ {
		d.inSelf.put(loadText(ctx, i), i)
	}
	for i := 0; i < len(target); {
		if m := d.aligned(i); m >= minAligned || m > 0 && i+m == len(target) {
			d.pending += m
			i += m
			continue
		}
		i = d.edit(i)
	}
	d.target, d.ctx = nil, ""
}

func loadText(s string, i int) uint64 {
	var b [word]byte
	copy(b[:], s[i:])
	return load64(b[:], 0)
}

// aligned returns the length of the match between target at i and the base at the cursor.
func (d *differ) aligned(i int) int {
	at := i + d.shift
	if at < 0 || at >= len(d.base) {
		return 0
	}
	return matchLen(d.target[i:], d.base[at:])
}

// edit emits edits for target from i on, where it differs from the base at the cursor, and returns the position after
// them.
func (d *differ) edit(i int) int {
	t := d.target
	if end := d.repeat(i); end > 0 {
		return end
	}
	if end := d.time(i); end > 0 {
		return end
	}
	if end := d.fromBehind(i); end > 0 {
		return end
	}
	for j := i; ; j += 1 + (j-i)>>8 { // wider steps if nothing is found for long
		if j >= len(t) {
			return d.literal(i, len(t))
		}
		if j > i {
			if m := d.aligned(j); m >= minAligned || m > 0 && j+m == len(t) {
				return d.literal(i, j)
			}
		}
		if j+word > len(t) {
			continue
		}
		u := load64(t, j)
		if end := d.fromSelf(i, j, u); end > 0 {
			return end
		}
		if len(d.base) > 0 {
			if end := d.fromBase(i, j, u); end > 0 {
				return end
			}
		} else {
			d.inSelf.put(u, len(d.ctx)+j)
		}
		if hexValue[t[j]] != 0xff && hexValue[t[j+7]] != 0xff {
			if end := d.hexRun(i, j); end > 0 {
				return end
			}
		}
	}
}

// fromSelf searches the context and the output for the word at j. The literals before j begin at i. It returns 0 if it
// finds none.
func (d *differ) fromSelf(i, j int, u uint64) int {
	p := d.inSelf.get(u)
	if p < 0 {
		return 0
	}
	t, first := d.target, i-d.pending // the pending copy may be shortened to first
	if p < len(d.ctx) {
		size := matchText(t[j:], d.ctx[p:])
		if size < minCtx {
			return 0
		}
		for j > first && p > 0 && t[j-1] == d.ctx[p-1] {
			j, p, size = j-1, p-1, size+1
		}
		d.before(i, j)
		d.ops = appendAddressed(d.ops, editCtx, size, p)
		d.edits.add(j, size)
		return j + size
	}
	p -= len(d.ctx)
	if p >= j {
		return 0
	}
	if !d.saves(j) {
		return 0
	}
	size := matchLen(t[j:], t[p:])
	for j > first && p > 0 && t[j-1] == t[p-1] {
		j, p, size = j-1, p-1, size+1
	}
	if size < minOut {
		return 0
	}
	d.before(i, j)
	d.ops = appendAddressed(d.ops, editOut, size, j-p-1)
	if len(d.base) == 0 {
		for k := j + 1; k < j+size && k+word <= len(t); k += 2 {
			d.inSelf.put(load64(t, k), len(d.ctx)+k)
		}
	}
	return j + size
}

// saves reports whether the target at j would need more than a few literals before it matches the base at the cursor.
func (d *differ) saves(j int) bool {
	for k := j; k < j+minSaved && k+minAligned <= len(d.target); k++ {
		at := k + d.shift
		if at >= 0 && at+minAligned <= len(d.base) && string(d.target[k:k+minAligned]) == string(d.base[at:at+minAligned]) {
			return false
		}
	}
	return true
}

// fromBehind searches the context for words that begin a little before i, in bytes that happen to be equal in the
// base, so that a version is copied as a whole in all siblings and not from its first differing digit on.
func (d *differ) fromBehind(i int) int {
	for j := i - 1; j >= i-d.pending && j >= i-minCtx+1; j-- {
		if j+word > len(d.target) {
			continue
		}
		u := load64(d.target, j)
		p := d.inSelf.get(u)
		if p >= 0 && p < len(d.ctx) && matchText(d.target[j:], d.ctx[p:]) >= max(minCtx, i-j+2) {
			return d.fromSelf(i, j, u)
		}
	}
	return 0
}

// fromBase searches the base for the word at j, first near the cursor.
func (d *differ) fromBase(i, j int, u uint64) int {
	for by := 1; by <= nearby; by++ {
		for _, off := range [2]int{by, -by} {
			p := j + d.shift + off
			if p >= 0 && p+word <= len(d.base) && load64(d.base, p) == u {
				return d.seek(i, j, p)
			}
		}
	}
	p := d.inBase.get(u)
	if p < 0 {
		return 0
	}
	size := matchLen(d.target[j:], d.base[p:])
	if size >= minSeek {
		return d.seek(i, j, p)
	}
	for j > i && p > 0 && d.target[j-1] == d.base[p-1] {
		j, p, size = j-1, p-1, size+1
	}
	if size < minFar || !d.saves(j) {
		return 0
	}
	if size >= minSeek {
		return d.seek(i, j, p)
	}
	d.before(i, j)
	d.ops = appendAddressed(d.ops, editFar, size, p)
	return j + size
}

// seek moves the cursor to p for the target at j.
func (d *differ) seek(i, j, p int) int {
	for j > i && p > 0 && d.target[j-1] == d.base[p-1] {
		j, p = j-1, p-1
	}
	d.before(i, j)
	d.ops = appendEdit(d.ops, editSeek, int(zigzag(p-j-d.shift)))
	d.shift = p - j
	return j
}

// before emits everything up to j, where another edit begins: literals from i on or, if j is before i, a shorter
// pending copy.
func (d *differ) before(i, j int) {
	if j < i {
		d.pending -= i - j
	}
	if j > i {
		d.literal(i, j)
		return
	}
	d.flush()
}

func (d *differ) flush() {
	if d.pending > 0 {
		d.ops = appendCopy(d.ops, d.pending)
		d.pending = 0
	}
}
