package kube

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mirador-k8s/mirador/internal/jsonscan"
)

var errSyntax = errors.New("not valid JSON")

// maxDepth is the limit of encoding/json too.
const maxDepth = 10000

// scanner validates JSON in memory and extracts values in the same pass. It is hand-written because a list of raw
// objects spends much of its time here, and json.Valid followed by a search takes half as long again.
type scanner struct {
	b []byte
	i int
}

func (s *scanner) space() { s.i = jsonscan.Space(s.b, s.i) }

func (s *scanner) fail() error {
	if s.i >= len(s.b) {
		return fmt.Errorf("%w: it ends too early", errSyntax)
	}
	return fmt.Errorf("%w: %q at byte %d", errSyntax, s.b[s.i], s.i)
}

// take consumes c, and reports whether it was there.
func (s *scanner) take(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// document checks that b is one object with nothing after it, and visits its members.
func (s *scanner) document(member func(key []byte) error) error {
	s.space()
	if err := s.object(0, member); err != nil {
		return err
	}
	if s.space(); s.i < len(s.b) {
		return s.fail()
	}
	return nil
}

// object reads an object. It calls member before each value, which member has to consume. If member is nil, the values
// are skipped.
func (s *scanner) object(depth int, member func(key []byte) error) error {
	if !s.take('{') {
		return s.fail()
	}
	if s.space(); s.take('}') {
		return nil
	}
	for {
		s.space()
		key, err := s.text()
		if err != nil {
			return err
		}
		if s.space(); !s.take(':') {
			return s.fail()
		}
		s.space()
		if member != nil {
			err = member(key)
		} else {
			err = s.value(depth + 1)
		}
		if err != nil {
			return err
		}
		if s.space(); s.take('}') {
			return nil
		}
		if !s.take(',') {
			return s.fail()
		}
	}
}

func (s *scanner) array(depth int) error {
	s.i++
	if s.space(); s.take(']') {
		return nil
	}
	for {
		s.space()
		if err := s.value(depth + 1); err != nil {
			return err
		}
		if s.space(); s.take(']') {
			return nil
		}
		if !s.take(',') {
			return s.fail()
		}
	}
}

// value skips a value of any kind.
func (s *scanner) value(depth int) error {
	if depth >= maxDepth {
		return fmt.Errorf("%w: nested more than %d deep", errSyntax, maxDepth)
	}
	if s.i >= len(s.b) {
		return s.fail()
	}
	switch c := s.b[s.i]; {
	case c == '{':
		return s.object(depth, nil)
	case c == '[':
		return s.array(depth)
	case c == '"':
		_, _, err := s.quoted()
		return err
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	}
	return s.number()
}

func (s *scanner) word(w string) error {
	for j := range len(w) {
		if !s.take(w[j]) {
			return s.fail()
		}
	}
	return nil
}

func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}

func (s *scanner) number() error {
	s.take('-')
	if !s.take('0') && !s.digits() {
		return s.fail()
	}
	if s.take('.') && !s.digits() {
		return s.fail()
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		if !s.digits() {
			return s.fail()
		}
	}
	return nil
}

// quoted reads a string and returns the bytes between its quotes, and whether they contain escapes.
func (s *scanner) quoted() (inside []byte, escaped bool, err error) {
	if !s.take('"') {
		return nil, false, s.fail()
	}
	start := s.i
	for s.i = jsonscan.Plain(s.b, s.i); s.i < len(s.b); s.i = jsonscan.Plain(s.b, s.i) {
		switch s.b[s.i] {
		case '"':
			s.i++
			return s.b[start : s.i-1], escaped, nil
		case '\\':
			escaped = true
			if err := s.escape(); err != nil {
				return nil, false, err
			}
		default: // a control character
			return nil, false, s.fail()
		}
	}
	return nil, false, s.fail()
}

func (s *scanner) escape() error {
	s.i++
	if s.i >= len(s.b) {
		return s.fail()
	}
	switch s.b[s.i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.i++
		return nil
	case 'u':
		s.i++
		for range 4 {
			if s.i >= len(s.b) {
				return s.fail()
			}
			switch c := s.b[s.i]; {
			case c >= '0' && c <= '9', c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
				s.i++
			default:
				return s.fail()
			}
		}
		return nil
	}
	return s.fail()
}

// text reads a string. It is a part of the input unless it has escapes.
func (s *scanner) text() ([]byte, error) {
	start := s.i
	inside, escaped, err := s.quoted()
	if err != nil || !escaped {
		return inside, err
	}
	var plain string
	if err := json.Unmarshal(s.b[start:s.i], &plain); err != nil {
		return nil, err
	}
	return []byte(plain), nil
}

// textOr reads a string. It skips any other value and returns nil.
func (s *scanner) textOr(depth int) ([]byte, error) {
	if s.i < len(s.b) && s.b[s.i] == '"' {
		return s.text()
	}
	return nil, s.value(depth)
}

// jsonHeader is the result of scanHeader. The slices are parts of the scanned object.
type jsonHeader struct {
	namespace, name, uid, version []byte
	hasAPIVersion, hasKind        bool
}

// scanHeader checks that b is one valid JSON object and extracts its header in the same pass. It returns what it found
// also with an error.
func scanHeader(b []byte) (h jsonHeader, err error) {
	s := scanner{b: b}
	err = s.document(func(key []byte) error {
		switch string(key) {
		case "apiVersion":
			h.hasAPIVersion = true
		case "kind":
			h.hasKind = true
		case "metadata":
			if s.i < len(s.b) && s.b[s.i] == '{' {
				return s.object(1, func(key []byte) (err error) {
					switch string(key) {
					case "namespace":
						h.namespace, err = s.textOr(2)
					case "name":
						h.name, err = s.textOr(2)
					case "uid":
						h.uid, err = s.textOr(2)
					case "resourceVersion":
						h.version, err = s.textOr(2)
					default:
						err = s.value(2)
					}
					return err
				})
			}
		}
		return s.value(1)
	})
	return h, err
}
