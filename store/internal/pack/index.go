package pack

// An index finds similar bases by their features. A feature counts less the more bases have it, because a feature that
// many bases have, such as a field name, says little: the name of an image finds the bases of its template among ten
// thousand that are otherwise alike.
type index map[uint32]holders

// holders are the bases that have a feature: their number, and the latest two, which find returns.
type holders struct {
	n    uint32
	last [2]*base
}

// indexCost is the memory of a feature in the map, with its share of free slots.
const indexCost = 48

// maxNew bounds the features that only this base has. More do not help to find a sibling, and an object that resembles
// no other would add 64.
const maxNew = 8

func (x index) add(b *base, s *sketch) {
	fresh := 0
	for i := range s {
		f, ok := s.feature(i)
		if !ok {
			continue
		}
		h := x[f]
		if h.n == 0 {
			if fresh++; fresh > maxNew {
				continue
			}
		}
		h.n++
		h.last[0], h.last[1] = b, h.last[0]
		x[f] = h
		b.indexed |= 1 << i
	}
}

func (x index) remove(b *base, s *sketch) {
	for i := range s {
		f, ok := s.feature(i)
		if !ok || b.indexed&(1<<i) == 0 {
			continue
		}
		h := x[f]
		if h.n--; h.n == 0 {
			delete(x, f)
			continue
		}
		if h.last[0] == b {
			h.last[0], h.last[1] = h.last[1], nil
		} else if h.last[1] == b {
			h.last[1] = nil
		}
		x[f] = h
	}
	b.indexed = 0
}

// find returns the most similar base and the second most similar one.
func (x index) find(s *sketch) (best, next *base) {
	var votes [16]struct {
		b *base
		n uint32
	}
	found := votes[:0]
	for i := range s {
		f, ok := s.feature(i)
		if !ok {
			continue
		}
		h := x[f]
		for _, b := range h.last {
			if b == nil {
				continue
			}
			k := 0
			for k < len(found) && found[k].b != b {
				k++
			}
			if k == len(found) {
				if k == cap(found) {
					continue
				}
				found = found[:k+1]
				found[k].b = b
			}
			found[k].n += 1 << 16 / h.n
		}
	}
	var most, second uint32
	for _, v := range found {
		switch {
		case v.n > most:
			best, next, most, second = v.b, best, v.n, most
		case v.n > second:
			next, second = v.b, v.n
		}
	}
	return best, next
}
