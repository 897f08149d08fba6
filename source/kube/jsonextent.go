package kube

import "bytes"

// extent finds where a JSON value ends while its bytes still arrive: it counts
// brackets outside strings and remembers how far it came. Whether the value is
// valid inside is for the scanner or the decoder to say.
type extent struct {
	pos      int
	depth    int
	inString bool
}

// end looks at b, which starts at the value and is longer at each call. ok is
// false as long as the end has not arrived.
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
				return i, true // the bracket around a bare number or word
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

// stringEnd goes from inside a string to behind its closing quote, or as far as
// b reaches; that may be one past it, behind a backslash. No byte is looked at
// more than twice, and then by bytes.IndexByte: BenchmarkList/raw, whose strings
// are long, takes 60% of the time of a loop over the bytes.
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
			i += backslash + 2 // perhaps past the quote, which was escaped then
		}
		if i == limit && quote >= 0 {
			return i + 1, true
		}
	}
	return i, false
}
