// Package jsonscan finds the parts of JSON without decoding it. Decoding ten thousand pods to extract their metadata
// would take as long as all other work of listing them.
//
// The input must be JSON that was validated before. On other input every function ends within the bytes, and its
// result is meaningless.
//
//	from, to, ok := jsonscan.Member(pod, "metadata")
//	meta := pod[from:to]
package jsonscan

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"unicode/utf8"
)

// Space returns the end of the white space at i.
func Space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// Plain returns the position of the first byte from i on that is special inside a string: a quote, a backslash or a
// control character. It examines eight bytes at a time, because most of an object is strings.
func Plain(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= 0x20 {
		i++
	}
	return i
}

// special sets the high bit of the first special byte. Higher bits may be set wrongly, by a borrow.
func special(w uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, slash := w^(ones*'"'), w^(ones*'\\')
	return ((w-ones*0x20)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// String returns the end of the string at i, and whether it contains escapes.
func String(b []byte, i int) (end int, escaped bool) {
	for i = Plain(b, i+1); i < len(b) && b[i] != '"'; i = Plain(b, i) {
		if b[i] == '\\' {
			escaped = true
			i++
		}
		i++
	}
	return min(i+1, len(b)), escaped
}

// Value returns the end of the value at i.
func Value(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	switch b[i] {
	case '"':
		end, _ := String(b, i)
		return end
	case '{', '[':
		return nest(b, i)
	}
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	return i
}

func nest(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			i, _ = String(b, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return len(b)
}

// ValueBehind returns the beginning of the value whose name ends at i.
func ValueBehind(b []byte, i int) int {
	return Space(b, Space(b, i)+1) // the colon
}

// Behind returns the position of what follows a value that ends at i: the next member or element, or the closing
// bracket.
func Behind(b []byte, i int) int {
	if i = Space(b, i); i < len(b) && b[i] == ',' {
		i = Space(b, i+1)
	}
	return i
}

// Named is one member of an object.
type Named struct {
	Name     []byte // as in the input, without quotes
	Escaped  bool   // the name contains escapes
	From, To int    // the position of its value
}

// Is reports whether the member has the given name.
func (n *Named) Is(name string) bool {
	if !n.Escaped {
		return string(n.Name) == name
	}
	return Unquote(n.Name, true) == name
}

// Next reads the member of an object at i, which is the position after the opening brace or the one that Next
// returned. ok is false at the end of the object.
func Next(b []byte, i int) (m Named, next int, ok bool) {
	i = Space(b, i)
	if i >= len(b) || b[i] != '"' {
		return m, i, false
	}
	end, escaped := String(b, i)
	from := ValueBehind(b, end)
	if from >= len(b) {
		return m, len(b), false
	}
	m = Named{Name: b[i+1 : max(i+1, end-1)], Escaped: escaped, From: from, To: Value(b, from)}
	return m, Behind(b, m.To), true
}

// NextElement reads the element of an array at i, like Next.
func NextElement(b []byte, i int) (value []byte, next int, ok bool) {
	i = Space(b, i)
	if i >= len(b) || b[i] == ']' {
		return nil, i, false
	}
	end := Value(b, i)
	if end == i {
		return nil, i, false
	}
	return b[i:end], Behind(b, end), true
}

// Open returns the position after the opening brace of the object at the beginning of b.
func Open(b []byte) (i int, ok bool) {
	i = Space(b, 0)
	if i >= len(b) || b[i] != '{' {
		return i, false
	}
	return i + 1, true
}

// Member returns the position of the value of a member of the object at the beginning of b. If several members have
// the name, the last counts, as for decoders. ok is false if there is none.
func Member(b []byte, name string) (from, to int, ok bool) {
	i, more := Open(b)
	for more {
		var m Named
		if m, i, more = Next(b, i); !more || !m.Is(name) {
			continue
		}
		from, to, ok = m.From, m.To, true
		if !mayRepeat(b[i:], name) {
			break
		}
	}
	return from, to, ok
}

// mayRepeat reports whether a name may occur in b. Searching for it takes a fraction of the time of reading the
// members.
func mayRepeat(b []byte, name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return true // it may be escaped
		}
	}
	return bytes.Contains(b, []byte(`"`+name+`"`)) || bytes.Contains(b, []byte(`\u`))
}

// Text returns the string value of a member; "" if there is none or it is not a string.
func Text(b []byte, name string) string {
	from, to, ok := Member(b, name)
	if !ok {
		return ""
	}
	return Unquoted(b[from:to])
}

// Unquoted returns the text of a string with quotes; "" for any other value.
func Unquoted(value []byte) string {
	if len(value) < len(`""`) || value[0] != '"' {
		return ""
	}
	_, escaped := String(value, 0)
	return Unquote(value[1:len(value)-1], escaped)
}

// Unquote returns the text of a string without quotes. Invalid UTF-8 becomes the replacement character, as in
// encoding/json.
func Unquote(raw []byte, escaped bool) string {
	if !escaped && utf8.Valid(raw) {
		return string(raw)
	}
	quoted := make([]byte, 0, len(raw)+2)
	quoted = append(append(append(quoted, '"'), raw...), '"')
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return string(raw) // cannot happen for valid JSON
	}
	return s
}

// Quote returns a text as a JSON string.
func Quote(text string) string {
	if b := []byte(text); Plain(b, 0) == len(b) && utf8.Valid(b) {
		return `"` + text + `"`
	}
	b, err := json.Marshal(text)
	if err != nil {
		return `""` // cannot happen for a string
	}
	return string(b)
}
