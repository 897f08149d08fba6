package pack

import "encoding/binary"

// apply runs ops and appends n bytes of output to dst. It returns false if the ops are not ones that the differ makes;
// dst then has at most n more bytes.
func apply(dst []byte, n int, base []byte, ctx string, ops, lits []byte) ([]byte, bool) {
	start := len(dst)
	end := start + n
	shift := -start // cursor into base = len(dst) + shift
	var earlier edits
	var clock times
	for len(ops) > 0 {
		op := ops[0]
		ops = ops[1:]
		if op < editFlag {
			size := int(op) + 1
			if op >= copyTwo {
				if op == copyLong {
					u, w := binary.Uvarint(ops)
					if w <= 0 || u > uint64(n) {
						return dst, false
					}
					size, ops = int(u), ops[w:]
				} else {
					if len(ops) == 0 {
						return dst, false
					}
					size = copyShort + 1 + (int(op-copyTwo)<<8 | int(ops[0]))
					ops = ops[1:]
				}
			}
			at := len(dst) + shift
			if at < 0 || size > len(base)-at || size > end-len(dst) {
				return dst, false
			}
			dst = append(dst, base[at:at+size]...)
			continue
		}
		kind := op >> 4 & 7
		size := int(op&editLong) + 1
		if size > editLong {
			u, w := binary.Uvarint(ops)
			if w <= 0 || u > maxLength {
				return dst, false
			}
			size, ops = int(u)+editLong+1, ops[w:]
		}
		if kind == editSeek {
			shift += unzigzag(uint64(size))
			if at := len(dst) + shift; at < 0 || at > len(base) {
				return dst, false
			}
			continue
		}
		if kind == editMore {
			var ok bool
			switch size {
			case moreRepeat:
				if len(ops) == 0 {
					return dst, false
				}
				dst, ok = earlier.append(dst, end, ops[0])
				ops = ops[1:]
			case moreVarint:
				dst, lits, ok = clock.appendVarint(dst, end, base, len(dst)+shift, lits)
			case moreText:
				dst, lits, ok = clock.appendText(dst, end, base, len(dst)+shift, lits)
			}
			if !ok {
				return dst, false
			}
			continue
		}
		if size > end-len(dst) {
			return dst, false
		}
		if kind <= editCtx {
			earlier.add(len(dst), size)
		}
		address := 0
		if kind >= editCtx {
			u, w := binary.Uvarint(ops)
			if w <= 0 || u > maxLength {
				return dst, false
			}
			address, ops = int(u), ops[w:]
		}
		switch kind {
		case editLit:
			if size > len(lits) {
				return dst, false
			}
			dst = append(dst, lits[:size]...)
			lits = lits[size:]
		case editHex, editNum:
			packed := (size + 1) / 2
			if packed > len(lits) {
				return dst, false
			}
			digits := hexDigits
			if kind == editNum {
				digits = numDigits
			}
			dst = appendDigits(dst, digits, lits[:packed], size)
			lits = lits[packed:]
		case editCtx:
			if size > len(ctx)-address {
				return dst, false
			}
			dst = append(dst, ctx[address:address+size]...)
		case editOut:
			distance := address + 1
			if distance > len(dst)-start {
				return dst, false
			}
			dst = appendOverlapping(dst, distance, size)
		case editFar:
			if size > len(base)-address {
				return dst, false
			}
			dst = append(dst, base[address:address+size]...)
		default:
			return dst, false
		}
	}
	if rest := end - len(dst); rest > 0 {
		at := len(dst) + shift
		if at < 0 || rest > len(base)-at {
			return dst, false
		}
		dst = append(dst, base[at:at+rest]...)
	}
	return dst, len(lits) == 0
}

func appendDigits(dst []byte, digits string, packed []byte, size int) []byte {
	_ = digits[15]
	for _, b := range packed {
		dst = append(dst, digits[b>>4], digits[b&15])
	}
	return dst[:len(dst)-size&1]
}

// appendOverlapping appends size bytes that begin distance bytes before the end. Each round may copy the output of the
// rounds before it.
func appendOverlapping(dst []byte, distance, size int) []byte {
	from := len(dst) - distance
	for size > 0 {
		n := min(size, len(dst)-from)
		dst = append(dst, dst[from:from+n]...)
		size -= n
	}
	return dst
}
