package object

// Version is the point in a source's history at which a state was current: a
// Kubernetes resourceVersion. "" means that it is not known.
type Version string

// Compare orders two versions: negative when v is older than other, zero when
// they are the same point, positive when v is newer. Only decimal numbers
// without sign or leading zeros have an order; where either side is anything
// else, ok is false unless both are the same text.
func (v Version) Compare(other Version) (order int, ok bool) {
	switch {
	case v == other:
		return 0, v != ""
	case len(v) != len(other):
		if !v.Ordered() || !other.Ordered() {
			return 0, false
		}
		return len(v) - len(other), true
	case v[0] == '0' || other[0] == '0':
		return 0, false
	}
	switch n := len(v); {
	case n > 16 || n < 4:
		return v.compareEach(other)
	case n >= 8:
		return compareWords(word8(v), word8(other), word8(v[n-8:]), word8(other[n-8:]))
	default:
		return compareWords(word4(v), word4(other), word4(v[n-4:]), word4(other[n-4:]))
	}
}

// compareEach compares versions of one length, which neither are the same nor begin with a zero, digit by digit.
func (v Version) compareEach(other Version) (order int, ok bool) {
	for i := range len(v) {
		a, b := v[i], other[i]
		if a-'0' > 9 || b-'0' > 9 {
			return 0, false
		}
		if order == 0 {
			order = int(a) - int(b)
		}
	}
	return order, true
}

// compareWords is compareEach for versions that a word at their beginning and one at their end cover, which may
// overlap. An event is compared with four others on its way; digit by digit that was a twentieth of its time.
func compareWords(a, b, aEnd, bEnd uint64) (order int, ok bool) {
	if !digits(a) || !digits(b) || !digits(aEnd) || !digits(bEnd) {
		return 0, false
	}
	if a == b {
		a, b = aEnd, bEnd
	}
	if a < b {
		return -1, true
	}
	return 1, true
}

// word8 and word4 give the first bytes of a version as one number, of which the first is the highest.
func word8(v Version) uint64 {
	_ = v[7]
	return uint64(v[0])<<56 | uint64(v[1])<<48 | uint64(v[2])<<40 | uint64(v[3])<<32 |
		uint64(v[4])<<24 | uint64(v[5])<<16 | uint64(v[6])<<8 | uint64(v[7])
}

func word4(v Version) uint64 {
	_ = v[3]
	four := uint64(v[0])<<24 | uint64(v[1])<<16 | uint64(v[2])<<8 | uint64(v[3])
	return four<<32 | four // a whole word, as digits wants it
}

// digits reports whether all eight bytes are decimal digits: those below '0' have their highest bit set after the
// subtraction, those above '9' after the addition, and those that have it from the start keep it in one of them.
func digits(word uint64) bool {
	const each = 0x0101010101010101
	return ((word-'0'*each)|(word+(0x7f-'9')*each))&(0x80*each) == 0
}

// Before reports whether v is known to be older than other.
func (v Version) Before(other Version) bool {
	order, ok := v.Compare(other)
	return ok && order < 0
}

// Ordered reports whether v is a decimal number and so has a place in the
// order of versions. "0" is not a point in history but the wish for any, and
// has none.
func (v Version) Ordered() bool {
	if v == "" || v[0] == '0' {
		return false
	}
	for i := range len(v) {
		if v[i] < '0' || v[i] > '9' {
			return false
		}
	}
	return true
}
