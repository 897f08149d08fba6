package query

import (
	"fmt"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/mirador-k8s/mirador/internal/jsonscan"
	"github.com/mirador-k8s/mirador/object"
)

// Fields is a field selector on any path of an object. The zero value matches everything.
type Fields struct {
	terms []fieldTerm
	text  string
}

type fieldTerm struct {
	label string // as written in the request, for errors
	field Field
	value string
	not   bool
	part  keyPart
}

// Field defines the value of an object for a label of a field selector.
type Field struct {
	// Paths are tried in order; the first value other than "" and null counts. Without a path, every object has the
	// Default.
	Paths []Path
	// Default is the value if no path has one.
	Default string
}

// FieldAt returns the Field whose value is at a path.
func FieldAt(p Path) Field { return Field{Paths: []Path{p}} }

// keyPart is the part of an object's key that has the value of a path.
type keyPart uint8

const (
	notInKey keyPart = iota
	namespaceInKey
	nameInKey
)

// maxSelector is the maximal length of a selector. A longer one would not fit into a request either.
const maxSelector = 16 << 10

// parseFields is ParseFieldsWith for labels that are paths. It accepts every path that ParsePath accepts.
func parseFields(text string) (Fields, error) {
	return ParseFieldsWith(text, func(label string) (Field, error) {
		path, err := ParsePath(label)
		if err != nil {
			return Field{}, fmt.Errorf("parse field selector %q: %w", text, err)
		}
		return FieldAt(path), nil
	})
}

// ParseFieldsWith parses a field selector in the syntax of Kubernetes: label=value, label==value and label!=value,
// separated by commas, and a backslash before a comma, an equals sign or a backslash in a value. It calls meaning for
// the Field of each label and returns errors of meaning unchanged.
func ParseFieldsWith(text string, meaning func(label string) (Field, error)) (Fields, error) {
	if len(text) > maxSelector {
		return Fields{}, fmt.Errorf("parse a field selector of %d bytes: at most %d are allowed: %w", len(text),
			maxSelector, ErrInvalid)
	}
	parsed, err := fields.ParseSelector(text)
	if err != nil {
		return Fields{}, fmt.Errorf("parse field selector %q: %w: %w", text, err, ErrInvalid)
	}
	f := Fields{text: parsed.String()}
	for _, r := range parsed.Requirements() {
		field, err := meaning(r.Field)
		if err != nil {
			return Fields{}, err
		}
		f.terms = append(f.terms, fieldTerm{label: r.Field, field: field, value: r.Value,
			not: r.Operator == selection.NotEquals, part: partOf(field)})
	}
	return f, nil
}

func partOf(f Field) keyPart {
	if len(f.Paths) != 1 {
		return notInKey
	}
	switch f.Paths[0].String() {
	case "metadata.namespace":
		return namespaceInKey
	case "metadata.name":
		return nameInKey
	}
	return notInKey
}

// String returns the selector in the syntax of ParseFieldsWith.
func (f Fields) String() string { return f.text }

// exact returns the value that a part of the key must have.
func (f Fields) exact(part keyPart) (value string, ok bool) {
	for i := range f.terms {
		if t := &f.terms[i]; t.part == part && !t.not {
			return t.value, true
		}
	}
	return "", false
}

// matchKey evaluates the terms that need only the key.
func (f Fields) matchKey(key object.Key) bool {
	for i := range f.terms {
		t := &f.terms[i]
		switch t.part {
		case namespaceInKey:
			if (key.Namespace() == t.value) == t.not {
				return false
			}
		case nameInKey:
			if (key.Name() == t.value) == t.not {
				return false
			}
		}
	}
	return true
}

// needObject reports whether there is a term that needs the object.
func (f Fields) needObject() bool {
	for i := range f.terms {
		if f.terms[i].part == notInKey {
			return true
		}
	}
	return false
}

// matchObject evaluates the terms that need the object.
func (f Fields) matchObject(d *Doc) (bool, error) {
	for i := range f.terms {
		t := &f.terms[i]
		if t.part != notInKey {
			continue
		}
		same, err := t.equals(d)
		if err != nil || same == t.not {
			return false, err
		}
	}
	return true, nil
}

// equals compares the value in the document without allocating.
func (t *fieldTerm) equals(d *Doc) (bool, error) {
	for i := range t.field.Paths {
		v, ok := d.find(t.field.Paths[i])
		if !ok {
			if err := d.Err(); err != nil {
				return false, err
			}
			continue
		}
		switch v[0] {
		case '"':
			inside := v[1 : len(v)-1]
			switch {
			case len(inside) == 0:
				continue
			case isPlain(inside):
				return string(inside) == t.value, nil
			}
			return decodeString(v) == t.value, nil
		case '{':
			return false, t.fail("an object; name a field inside it")
		case '[':
			return false, t.fail("an array; name one element, as in [0]")
		case 'n':
			continue
		}
		return string(v) == t.value, nil
	}
	return t.field.Default == t.value, nil
}

func (t *fieldTerm) fail(what string) error {
	return fmt.Errorf("select by field %s: it is %s: %w", t.label, what, ErrInvalid)
}

// isPlain reports whether a string has neither escapes nor invalid UTF-8.
func isPlain(inside []byte) bool {
	return jsonscan.Plain(inside, 0) == len(inside) && utf8.Valid(inside)
}
