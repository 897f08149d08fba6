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

// Before reports whether v is known to be older than other.
func (v Version) Before(other Version) bool {
	order, ok := v.Compare(other)
	return ok && order < 0
}

// Ordered reports whether v is a decimal number and so has an order. "0" has none: it is not a point in history but
// stands for any version.
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
