package pack

// Steps of a shaped ops stream: the limits of their fields.
const (
	stepSame = 15
	stepSkip = 3
	stepOwn  = 3
)

// appendShaped appends the steps that make ops from shape. Siblings mostly deviate by a byte or two (a length, an
// offset), so a small window is searched for the position at which both agree again.
func appendShaped(dst []byte, shape string, ops []byte) []byte {
	i, j := 0, 0 // into shape, into ops
	for j < len(ops) || i < len(shape) {
		same := 0
		for i < len(shape) && j < len(ops) && shape[i] == ops[j] && same < stepSame {
			i++
			j++
			same++
		}
		if i == len(shape) && j == len(ops) {
			return dst // the rest of the shape is implied
		}
		if same == stepSame && i < len(shape) && j < len(ops) && shape[i] == ops[j] {
			dst = append(dst, stepSame<<4)
			continue
		}
		skip, own := deviation(shape[i:], ops[j:])
		for {
			s, o := min(skip, stepSkip), min(own, stepOwn)
			dst = append(dst, byte(same<<4|s<<2|o))
			dst = append(dst, ops[j:j+o]...)
			i, j, skip, own, same = i+s, j+o, skip-s, own-o, 0
			if skip+own == 0 {
				break
			}
		}
	}
	return dst
}

// deviation returns how many bytes of shape to skip and of ops to take until both agree again for resync bytes or to
// the end. It returns the smallest sum, and of those the nearest to a plain substitution.
func deviation(shape string, ops []byte) (skip, own int) {
	for sum := 1; sum <= maxDeviation; sum++ {
		for k := range sum + 1 {
			skip = (sum + 1) / 2 // then one less, one more, two less, ...
			if k&1 != 0 {
				skip -= (k + 1) / 2
			} else {
				skip += k / 2
			}
			own = sum - skip
			if skip < 0 || own < 0 || skip > len(shape) || own > len(ops) {
				continue
			}
			a, b := shape[skip:], ops[own:]
			same := 0
			for same < resync && same < len(a) && same < len(b) && a[same] == b[same] {
				same++
			}
			if same == resync || same == len(a) && same == len(b) {
				return skip, own
			}
		}
	}
	return min(stepSkip, len(shape)), min(stepOwn, len(ops))
}

const (
	resync       = 3  // number of equal bytes that is no coincidence
	maxDeviation = 24 // ops that are farther apart have little in common
)

// appendUnshaped appends the ops that steps make from shape.
func appendUnshaped(dst []byte, shape string, steps []byte) ([]byte, bool) {
	for len(steps) > 0 {
		step := int(steps[0])
		same, skip, own := step>>4, step>>2&stepSkip, step&stepOwn
		if same+skip > len(shape) || 1+own > len(steps) {
			return dst, false
		}
		dst = append(dst, shape[:same]...)
		dst = append(dst, steps[1:1+own]...)
		shape, steps = shape[same+skip:], steps[1+own:]
	}
	return append(dst, shape...), true
}
