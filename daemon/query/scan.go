package query

import (
	"bytes"

	"github.com/mirador-k8s/mirador/internal/jsonscan"
)

// maxDepth is how deep objects and arrays may be nested, as in encoding/json. It bounds the stack.
const maxDepth = 10000

// scan reads JSON and checks that it is valid. After a failure, at is its position.
type scan struct {
	b  []byte
	at int
}

// value reads one value. It records members of objects in d, if d is not nil.
func (s *scan) value(depth int, d *Doc) bool {
	if s.at >= len(s.b) {
		return false
	}
	switch c := s.b[s.at]; {
	case c == '"':
		_, ok := s.str()
		return ok
	case c == '{':
		return s.object(depth+1, d)
	case c == '[':
		return s.array(depth + 1)
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	}
	return false
}

func (s *scan) object(depth int, d *Doc) bool {
	if depth > maxDepth {
		return false
	}
	s.at++
	if s.space(); s.eat('}') {
		return true
	}
	for {
		key := s.at + 1
		escaped, ok := s.str()
		if !ok {
			return false
		}
		m := member{key: extent{key, s.at - 1}, escaped: escaped}
		if s.space(); !s.eat(':') {
			return false
		}
		s.space()
		m.value.from = s.at
		if !s.member(depth, d, &m) {
			return false
		}
		if s.space(); s.eat('}') {
			return true
		}
		if !s.eat(',') {
			return false
		}
		s.space()
	}
}

// member reads a member's value, and records the member if it is in one of the two levels that a Doc indexes.
func (s *scan) member(depth int, d *Doc, m *member) bool {
	below := d
	if depth > 1 {
		below = nil // deeper levels are searched when they are needed
	}
	if d != nil {
		m.first = len(d.inner)
	}
	if !s.value(depth, below) {
		return false
	}
	m.value.to = s.at
	switch {
	case d == nil:
	case depth == 1:
		m.last = len(d.inner)
		d.outer = append(d.outer, *m)
	default:
		d.inner = append(d.inner, *m)
	}
	return true
}

func (s *scan) array(depth int) bool {
	if depth > maxDepth {
		return false
	}
	s.at++
	if s.space(); s.eat(']') {
		return true
	}
	for {
		if !s.value(depth, nil) {
			return false
		}
		if s.space(); s.eat(']') {
			return true
		}
		if !s.eat(',') {
			return false
		}
		s.space()
	}
}

// str reads a string and reports whether it has escapes.
func (s *scan) str() (escaped, ok bool) {
	if !s.eat('"') {
		return false, false
	}
	for {
		s.at = jsonscan.Plain(s.b, s.at)
		if s.at >= len(s.b) {
			return escaped, false
		}
		switch s.b[s.at] {
		case '"':
			s.at++
			return escaped, true
		case '\\':
			escaped = true
			if !s.escape() {
				return escaped, false
			}
		default: // a control character
			return escaped, false
		}
	}
}

func (s *scan) escape() bool {
	s.at++
	if s.at >= len(s.b) {
		return false
	}
	switch s.b[s.at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.at++
		return true
	case 'u':
		s.at++
		for range 4 {
			if s.at >= len(s.b) || !isHex(s.b[s.at]) {
				return false
			}
			s.at++
		}
		return true
	}
	return false
}

func (s *scan) number() bool {
	s.eat('-')
	if !s.eat('0') && !s.digits() {
		return false
	}
	if s.eat('.') && !s.digits() {
		return false
	}
	if s.eat('e') || s.eat('E') {
		if !s.eat('+') {
			s.eat('-')
		}
		return s.digits()
	}
	return true
}

func (s *scan) digits() bool {
	from := s.at
	for s.at < len(s.b) && '0' <= s.b[s.at] && s.b[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}

func (s *scan) word(w string) bool {
	if !bytes.HasPrefix(s.b[s.at:], []byte(w)) {
		return false
	}
	s.at += len(w)
	return true
}

func (s *scan) eat(c byte) bool {
	if s.at < len(s.b) && s.b[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scan) space() { s.at = jsonscan.Space(s.b, s.at) }

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
