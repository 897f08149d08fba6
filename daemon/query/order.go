package query

import (
	"fmt"
	"strings"
)

// Order is an order of objects. The zero value is by cluster, then by key. Objects with equal values are always in that
// order.
//
// Values of a path are ordered by type: false before true, then numbers and quantities ("500Mi" before "1Gi"), then
// times, then other strings, then objects and arrays by their text. Whether a string is a quantity or a time does not
// depend on other values, so that the order is the same for every set of objects. Missing and null values come last,
// ascending and descending.
type Order struct{ terms []orderTerm }

type orderTerm struct {
	path Path
	desc bool
}

// maxOrderTerms is how many paths an order may have.
const maxOrderTerms = 8

// ParseOrder parses paths separated by commas; a minus before a path means descending.
func ParseOrder(text string) (Order, error) {
	var o Order
	if text == "" {
		return o, nil
	}
	if len(text) > maxSelector {
		return o, fmt.Errorf("parse an order of %d bytes: at most %d are allowed: %w", len(text), maxSelector, ErrInvalid)
	}
	for _, part := range splitPaths(text) {
		rest, desc := strings.CutPrefix(part, "-")
		path, err := ParsePath(rest)
		if err != nil {
			return Order{}, fmt.Errorf("parse order %q: %w", text, err)
		}
		o.terms = append(o.terms, orderTerm{path: path, desc: desc})
	}
	if len(o.terms) > maxOrderTerms {
		return Order{}, fmt.Errorf("parse order %q: it has %d paths, at most %d are allowed: %w", text, len(o.terms),
			maxOrderTerms, ErrInvalid)
	}
	return o, nil
}

// splitPaths splits at commas that are neither quoted nor escaped.
func splitPaths(text string) (parts []string) {
	var quote byte
	from := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == ',':
			parts = append(parts, text[from:i])
			from = i + 1
		}
	}
	return append(parts, text[from:])
}

// String returns the order in the syntax of ParseOrder.
func (o Order) String() string {
	parts := make([]string, len(o.terms))
	for i, t := range o.terms {
		parts[i] = t.path.String()
		if t.desc {
			parts[i] = "-" + parts[i]
		}
	}
	return strings.Join(parts, ",")
}

// Empty reports whether the order is only by cluster and key.
func (o Order) Empty() bool { return len(o.terms) == 0 }

// appendValues appends the values that a document is ordered by to dst, one for each path.
func (o Order) appendValues(dst []orderValue, d *Doc) []orderValue {
	for i := range o.terms {
		var v orderValue
		if raw, ok := d.find(o.terms[i].path); ok {
			v = orderValueOf(raw)
		}
		dst = append(dst, v)
	}
	return dst
}

// compare compares the values of two documents.
func (o Order) compare(a, b []orderValue) int {
	for i := range o.terms {
		if c := a[i].compare(&b[i], o.terms[i].desc); c != 0 {
			return c
		}
	}
	return 0
}
