package pack

// edits remembers where the first edits of an object stand in its output, to be repeated by number.
type edits struct {
	at [maxAgain]struct{ from, size uint32 }
	n  int
}

func (e *edits) add(from, size int) {
	if size >= minAgain && e.n < maxAgain {
		e.at[e.n].from, e.at[e.n].size = uint32(from), uint32(size)
		e.n++
	}
}

// append appends what edit number n gave, to no more than end.
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

// same says target at i as a repetition of an earlier edit, the longest that there is.
func (d *differ) same(i int) int {
	t := d.target
	best, size := -1, 0
	for n := range d.again.n {
		e := d.again.at[n]
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
	d.ops = append(appendEdit(d.ops, editMore, moreAgain), byte(best))
	return i + size
}
