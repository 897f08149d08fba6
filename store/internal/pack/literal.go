package pack

// minSubRun is the number of digits between other literals from which they get an edit of their own.
const minSubRun = 8

// hexRun emits the hexadecimal digits around j as one edit if they are long enough to be an ID. Otherwise an ID that
// begins or ends with the same digit as the base's would be cut differently, as happens for one sibling in eight, and
// the ops would deviate from the shape.
func (d *differ) hexRun(i, j int) int {
	t := d.target
	from, to := j, j+1
	for first := max(i-d.pending, j-maxHexRun); from > first && hexValue[t[from-1]] != 0xff; {
		from--
	}
	for to < len(t) && to-from <= maxHexRun && hexValue[t[to]] != 0xff {
		to++
	}
	if to-from < minHexRun || to-from > maxHexRun {
		return 0
	}
	d.before(i, from)
	d.digits(editHex, &hexValue, from, to)
	d.remember(from, to)
	return to
}

// literal emits target[i:j], which is not empty, as literals.
func (d *differ) literal(i, j int) int {
	d.flush()
	d.remember(i, j)
	for i < j {
		kind, values, from, to := d.digitRun(i, j)
		if from > i {
			d.ops = appendEdit(d.ops, editLit, from-i)
			d.edits.add(i, from-i)
			d.lits = append(d.lits, d.target[i:from]...)
		}
		if to > from {
			d.digits(kind, values, from, to)
		}
		i = to
	}
	return j
}

// digitRun returns the first run of digits in target[i:j] that is worth an edit; from == to == j if there is none.
func (d *differ) digitRun(i, j int) (kind byte, values *[256]byte, from, to int) {
	t := d.target
	for from = i; from < j; from = max(to, from+1) {
		num, hex := from, from
		for num < j && numValue[t[num]] != 0xff {
			num++
		}
		for hex < j && hexValue[t[hex]] != 0xff {
			hex++
		}
		kind, values, to = editNum, &numValue, num
		if hex > num {
			kind, values, to = editHex, &hexValue, hex
		}
		if to-from >= minSubRun || from == i && to == j && to-from >= 2 {
			return kind, values, from, to
		}
	}
	return 0, nil, j, j
}

func (d *differ) digits(kind byte, values *[256]byte, from, to int) {
	d.ops = appendEdit(d.ops, kind, to-from)
	d.edits.add(from, to-from)
	t := d.target
	for ; from+1 < to; from += 2 {
		d.lits = append(d.lits, values[t[from]]<<4|values[t[from+1]])
	}
	if from < to {
		d.lits = append(d.lits, values[t[from]]<<4)
	}
}

// remember adds target[i:j] to the output that can be copied. Without a base, edit does that.
func (d *differ) remember(i, j int) {
	if len(d.base) == 0 {
		return
	}
	for ; i < j && i+word <= len(d.target); i++ {
		d.inSelf.put(load64(d.target, i), len(d.ctx)+i)
	}
}
