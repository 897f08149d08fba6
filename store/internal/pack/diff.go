package pack

// A differ finds the ops that make one object of its base and its context. It
// holds scratch only: one per Packer, for one goroutine.
type differ struct {
	base    []byte
	inBase  positions // places in base
	inSelf  positions // places in ctx, then in what the base does not have of target
	target  []byte
	ctx     string
	shift   int // cursor into base = place in target + shift
	pending int // bytes before the place that are copied from the base and not yet in ops
	again   edits
	clock   moments
	ops     []byte
	lits    []byte
}

const (
	minAligned = 4  // a shorter run in common with the base is cheaper as literals
	minCtx     = 5  // words that are looked up in the context and the output
	minOut     = 6  // an address in the output takes two bytes
	minFar     = 7  // likewise in the base
	minSaved   = 4  // bytes that a copy must save from being literals to pay for its address
	minSeek    = 16 // a match as long as this is worth moving the cursor there
	minHexRun  = 16 // ids are taken whole, so that siblings have equal ops
	maxHexRun  = 128
	stride     = 3 // places of the base from one that is indexed to the next
	nearby     = 4 // how far off the cursor is tried by hand after a change of length
)

// setBase makes a base the one that diffs are made to. Every third place is
// indexed, which is enough for matches of 9 bytes and takes 4 us for a pod.
func (d *differ) setBase(base []byte) {
	d.base = base
	d.inBase.reset(len(base)/stride, 6)
	x := &d.inBase
	slots, drop, shift := x.slots, x.drop&63, x.shift&63
	for i := 0; i+word <= len(base); i += stride {
		slots[(load64(base, i)<<drop*hashFactor)>>shift&uint64(len(slots)-1)] = uint32(i) + 1
	}
}

// diff leaves in d.ops and d.lits what apply makes target of.
func (d *differ) diff(target []byte, ctx string) {
	d.target, d.ctx = target, ctx
	d.ops, d.lits = d.ops[:0], d.lits[:0]
	d.shift, d.pending = 0, 0
	d.again.n, d.clock = 0, moments{}
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

// aligned is how much of target at i the base has at the cursor.
func (d *differ) aligned(i int) int {
	at := i + d.shift
	if at < 0 || at >= len(d.base) {
		return 0
	}
	return matchLen(d.target[i:], d.base[at:])
}

// edit deals with what the base does not have at the cursor, from i on, and returns the place
// up to which all is said.
func (d *differ) edit(i int) int {
	t := d.target
	if end := d.same(i); end > 0 {
		return end
	}
	if end := d.moment(i); end > 0 {
		return end
	}
	if end := d.fromBehind(i); end > 0 {
		return end
	}
	for j := i; ; j += 1 + (j-i)>>8 { // wider steps where nothing is found for long
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

// fromSelf looks for the word at j in the context and the output. The literals before j begin at i. 0 means not found.
func (d *differ) fromSelf(i, j int, u uint64) int {
	p := d.inSelf.get(u)
	if p < 0 {
		return 0
	}
	t, first := d.target, i-d.pending // bytes from first on may be taken back from the pending copy
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
		d.again.add(j, size)
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

// saves says whether the target at j, if it were not copied from elsewhere, would make more than a few literals
// before the base at the cursor goes on.
func (d *differ) saves(j int) bool {
	for k := j; k < j+minSaved && k+minAligned <= len(d.target); k++ {
		at := k + d.shift
		if at >= 0 && at+minAligned <= len(d.base) && string(d.target[k:k+minAligned]) == string(d.base[at:at+minAligned]) {
			return false
		}
	}
	return true
}

// fromBehind looks in the context for words that begin a little before i, in bytes that happen to be equal in the
// base: so a version is copied whole and equally in all siblings, not from its first differing digit on.
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

// fromBase looks for the word at j in the base, near the cursor first.
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

// seek moves the cursor so that the base goes on at p for the target at j.
func (d *differ) seek(i, j, p int) int {
	for j > i && p > 0 && d.target[j-1] == d.base[p-1] {
		j, p = j-1, p-1
	}
	d.before(i, j)
	d.ops = appendEdit(d.ops, editSeek, int(zigzag(p-j-d.shift)))
	d.shift = p - j
	return j
}

// before says all up to j, where another edit begins: literals from i on, or, if j is before i, less of the
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
