package kube

import "bytes"

// extent finds the end of a JSON value while its bytes still arrive. It counts brackets
// outside strings and remembers its position between calls. It does not validate the value;
// the scanner or the decoder does.
type extent struct {
	pos      int
	depth    int
	inString bool
}

// end returns the length of the value at the start of b, which is longer at each call. ok is
// false if the end has not arrived yet.
func (e *extent) end(b []byte) (n int, ok bool) {
	i := e.pos
	for i < len(b) {
		if e.inString {
			if i, ok = stringEnd(b, i); !ok {
				break
			}
			e.inString = false
			if e.depth == 0 {
				return i, true
			}
			continue
		}
		switch b[i] {
		case '"':
			if e.depth == 0 && i > 0 {
				return i, true
			}
			e.inString = true
		case '{', '[':
			e.depth++
		case '}', ']':
			if e.depth == 0 {
				return i, true // the bracket that ends a number or a literal
			}
			if e.depth--; e.depth == 0 {
				return i + 1, true
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if e.depth == 0 {
				return i, true
			}
		}
		i++
	}
	e.pos = i
	return 0, false
}

// stringEnd returns the position after the closing quote of the string that i is in. If b
// ends first, it returns the position to continue at, which is len(b)+1 after a backslash.
// It uses bytes.IndexByte, which is faster than a loop for long strings, and examines no byte
// more than twice.
func stringEnd(b []byte, i int) (int, bool) {
	for i < len(b) {
		quote := bytes.IndexByte(b[i:], '"')
		limit := i + quote
		if quote < 0 {
			limit = len(b)
		}
		for i < limit {
			backslash := bytes.IndexByte(b[i:limit], '\\')
			if backslash < 0 {
				i = limit
				break
			}
			i += backslash + 2 // this may skip the quote, if it is escaped
		}
		if i == limit && quote >= 0 {
			return i + 1, true
		}
	}
	return i, false
}
