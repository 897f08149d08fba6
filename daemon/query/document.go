package query

import (
	"errors"
	"fmt"

	"github.com/mirador-k8s/mirador/internal/jsonscan"
)

// Doc is a JSON object that is read without decoding it. The first access scans the bytes once, checks that they are
// valid, and records the offsets of the members of the two upper levels, so that a Lookup finds its value directly.
//
// A Doc does not own its bytes: they must not change until Reset. It must be used by one goroutine at a time.
type Doc struct {
	raw        []byte
	read       bool
	err        error
	outer      []member // of the object itself
	inner      []member // of the objects in it
	labels     []byte   // of the object's labels, once they were asked for
	labelsRead bool
}

// extent is a range of bytes in a document.
type extent struct{ from, to int }

// member is a member of an object. key is without quotes. Its own members are inner[first:last].
type member struct {
	key, value  extent
	escaped     bool
	first, last int
}

// maxKept is the capacity for members that a Doc keeps on Reset. Few objects have more, such as a large ConfigMap.
const maxKept = 4096

// NewDoc returns a Doc of an object's bytes.
func NewDoc(raw []byte) *Doc { return &Doc{raw: raw} }

// Reset makes the Doc read another object, so that a scan over many objects needs one Doc.
func (d *Doc) Reset(raw []byte) {
	outer, inner := d.outer[:0], d.inner[:0]
	if cap(outer) > maxKept {
		outer = nil
	}
	if cap(inner) > maxKept {
		inner = nil
	}
	*d = Doc{raw: raw, outer: outer, inner: inner}
}

// Err returns an error if the bytes are not a valid JSON object. The error does not contain the bytes.
func (d *Doc) Err() error {
	if !d.read {
		d.read = true
		d.err = d.index()
		if d.err != nil {
			d.outer, d.inner = d.outer[:0], d.inner[:0]
		}
	}
	return d.err
}

var errNotObject = errors.New("read a document: it is not a JSON object")

func (d *Doc) index() error {
	s := scan{b: d.raw}
	s.space()
	if s.at >= len(d.raw) || d.raw[s.at] != '{' {
		return errNotObject
	}
	ok := s.value(0, d)
	if s.space(); !ok || s.at != len(d.raw) {
		return fmt.Errorf("read a document: invalid JSON at byte %d of %d", s.at, len(d.raw))
	}
	return nil
}

// Lookup returns the value at a path: a string, bool, int64, float64, map[string]any, []any, or nil for null. If a
// member appears several times, the last one counts, as in encoding/json. It returns false if there is no value, if the
// bytes are invalid (see Err), and for a number that does not fit a float64.
func (d *Doc) Lookup(p Path) (any, bool) {
	raw, ok := d.find(p)
	if !ok {
		return nil, false
	}
	v, err := decode(raw)
	return v, err == nil
}

// find returns the bytes of the value at a path.
func (d *Doc) find(p Path) ([]byte, bool) {
	if d.Err() != nil || len(p.steps) == 0 {
		return nil, false
	}
	m, ok := d.last(d.outer, &p.steps[0])
	if !ok {
		return nil, false
	}
	rest, v := p.steps[1:], d.cut(m.value)
	if len(rest) > 0 && v[0] == '{' {
		if m, ok = d.last(d.inner[m.first:m.last], &rest[0]); !ok {
			return nil, false
		}
		rest, v = rest[1:], d.cut(m.value)
	}
	for i := range rest {
		if v, ok = within(v, &rest[i]); !ok {
			return nil, false
		}
	}
	return v, true
}

func (d *Doc) cut(e extent) []byte { return d.raw[e.from:e.to] }

// last returns the last member with the name of a step.
func (d *Doc) last(members []member, s *step) (*member, bool) {
	if s.isIndex {
		return nil, false
	}
	for i := len(members) - 1; i >= 0; i-- {
		if m := &members[i]; s.names(d.cut(m.key), m.escaped) {
			return m, true
		}
	}
	return nil, false
}

// within returns the member or element of a valid value that a step leads to.
func within(v []byte, s *step) (found []byte, ok bool) {
	switch {
	case v[0] == '{' && !s.isIndex:
		for i := 1; ; {
			m, next, more := jsonscan.Next(v, i)
			if !more {
				return found, ok
			}
			if s.names(m.Name, m.Escaped) {
				found, ok = v[m.From:m.To], true
			}
			i = next
		}
	case v[0] == '[' && s.isIndex:
		for i, n := 1, 0; ; n++ {
			value, next, more := jsonscan.NextElement(v, i)
			if !more || n == s.index {
				return value, more
			}
			i = next
		}
	}
	return nil, false
}

// names reports whether a key, as written in the document, is the step's name.
func (s *step) names(key []byte, escaped bool) bool {
	if !escaped && !s.mayBeInvalid {
		return string(key) == s.name
	}
	return jsonscan.Unquote(key, escaped) == s.name
}
