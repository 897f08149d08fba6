package pack

// edits remembers the positions of the first edits of an object in its output, so that they can be repeated by number.
type edits struct {
	at [maxRepeated]struct{ from, size uint32 }
	n  int
}

func (e *edits) add(from, size int) {
	if size >= minRepeated && e.n < maxRepeated {
		e.at[e.n].from, e.at[e.n].size = uint32(from), uint32(size)
		e.n++
	}
}

// append appends the output of edit number n, up to position end.
func (e *edits) append(dst []byte, end int, n byte) ([]byte, bool) {
	if int(n) >= e.n {
		return dst, false
	}
	from, size := int(e.at[n].from), int(e.at[n].size)
	if size > end-len(dst) {
		return dst, false
	}
	return append(dst, dst[from:from+size]...), true
}

// repeat emits target at i as a repetition of the longest earlier edit that matches, and returns the position after
// it, or 0.
func (d *differ) repeat(i int) int {
	t := d.target
	best, size := -1, 0
	for n := range d.edits.n {
		e := d.edits.at[n]
		if int(e.size) <= size || int(e.size) > len(t)-i || t[e.from] != t[i] {
			continue
		}
		if matchLen(t[i:i+int(e.size)], t[e.from:]) == int(e.size) {
			best, size = n, int(e.size)
		}
	}
	if best < 0 {
		return 0
	}
	d.flush()
	d.ops = append(appendEdit(d.ops, editMore, moreRepeat), byte(best))
	return i + size
}
