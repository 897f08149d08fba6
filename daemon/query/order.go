package query

import (
	"fmt"
	"strings"
)

// Order says in which order objects are wanted. The zero Order is by cluster, then by key, and that
// decides between equal ones in any order.
//
// Values of one path compare by what they are: false before true, then numbers and quantities
// ("500Mi" before "1Gi"), then times, then other strings, then objects and arrays by their text. A
// string counts as a quantity or a time by itself, whatever the others are, so that the order is the same for
// every set of objects. What is missing or null comes last, ascending and descending.
type Order struct{ terms []orderTerm }

type orderTerm struct {
	path Path
	desc bool
}

// maxOrderTerms is how many paths an order may have.
const maxOrderTerms = 8

// ParseOrder reads paths with commas between them, each with a minus in front for descending.
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

// String gives the order in the form that ParseOrder reads.
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

// Empty reports whether objects are wanted by cluster and key alone.
func (o Order) Empty() bool { return len(o.terms) == 0 }

// appendValues appends what a document is ordered by to dst, one value for each path.
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

// compare compares what two documents are ordered by.
func (o Order) compare(a, b []orderValue) int {
	for i := range o.terms {
		if c := a[i].compare(&b[i], o.terms[i].desc); c != 0 {
			return c
		}
	}
	return 0
}
