package query

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Path is the path of a value in an object. The zero Path has no value.
type Path struct{ steps []step }

type step struct {
	name         string
	index        int
	isIndex      bool
	mayBeInvalid bool // the name may also be written with bytes that are no UTF-8
}

// The limits of a path. Fields of Kubernetes objects need less than a tenth of them.
const (
	maxPathLen = 1024
	maxSteps   = 64
)

// ParsePath parses a path: names separated by dots, [n] for an element, ['a.b/c'] or ["a.b/c"] for a name with other
// characters. As in kubectl, it accepts a leading dot, braces around the path, and a\.b for the name "a.b".
func ParsePath(text string) (Path, error) {
	p := pathParser{text: text, end: len(text)}
	switch {
	case len(text) > maxPathLen:
		return Path{}, fmt.Errorf("parse a path of %d characters: at most %d are allowed: %w", len(text),
			maxPathLen, ErrInvalid)
	case !utf8.ValidString(text):
		return Path{}, fmt.Errorf("parse path %q: it is not valid UTF-8: %w", text, ErrInvalid)
	case strings.HasPrefix(text, "{"):
		if !strings.HasSuffix(text, "}") {
			return Path{}, p.fail(len(text), "the brace at the start is not closed")
		}
		p.at, p.end = 1, len(text)-1
	}
	return p.parse()
}

// String returns the path in the syntax of ParsePath, quoted so that it can be part of an order.
func (p Path) String() string {
	var b strings.Builder
	for i, s := range p.steps {
		switch {
		case s.isIndex:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case isBare(s.name):
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.name)
		default:
			b.WriteString("['" + quoter.Replace(s.name) + "']")
		}
	}
	return b.String()
}

var quoter = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

// isBare reports whether a name needs no quotes.
func isBare(name string) bool {
	if name == "" || name == "*" || name[0] == '-' || strings.Contains(name, ",") {
		return false
	}
	for _, r := range name {
		if !isBareRune(r) {
			return false
		}
	}
	return true
}

// isBareRune reports whether a character is allowed in a name without quotes and escapes.
func isBareRune(r rune) bool {
	return !strings.ContainsRune(`.[]{}\'"`, r) && !unicode.IsSpace(r) && unicode.IsPrint(r)
}

type pathParser struct {
	text    string
	at, end int
	steps   []step
}

func (p *pathParser) fail(at int, format string, args ...any) error {
	return fmt.Errorf("parse path %q: at character %d: %s: %w", p.text, utf8.RuneCountInString(p.text[:at])+1,
		fmt.Sprintf(format, args...), ErrInvalid)
}

func (p *pathParser) parse() (Path, error) {
	if p.at == p.end || p.text[p.at:p.end] == "." {
		return Path{}, p.fail(p.at, "the path is empty; name a field, such as metadata.name")
	}
	for first := true; p.at < p.end; first = false {
		dot := p.text[p.at] == '.'
		if dot {
			p.at++
		}
		var s step
		var err error
		switch {
		case p.at < p.end && p.text[p.at] == '[':
			s, err = p.bracket()
		case dot || first:
			s, err = p.name()
		default:
			err = p.fail(p.at, "expected a dot or a bracket")
		}
		if err == nil && len(p.steps) == maxSteps {
			err = p.fail(p.at, "the path has more than %d steps", maxSteps)
		}
		if err != nil {
			return Path{}, err
		}
		s.mayBeInvalid = strings.ContainsRune(s.name, utf8.RuneError)
		p.steps = append(p.steps, s)
	}
	return Path{p.steps}, nil
}

// name parses a name without quotes.
func (p *pathParser) name() (step, error) {
	var b strings.Builder
	from := p.at
	for p.at < p.end {
		r, n := utf8.DecodeRuneInString(p.text[p.at:p.end])
		if r == '.' || r == '[' {
			break
		}
		if r == '\\' {
			p.at += n
			if p.at == p.end {
				return step{}, p.fail(p.at, "a character is missing after the backslash")
			}
			r, n = utf8.DecodeRuneInString(p.text[p.at:p.end])
		} else if !isBareRune(r) {
			return step{}, p.fail(p.at, "%q is not allowed in a name; write the name in quotes and brackets, as in ['a b']", r)
		}
		b.WriteRune(r)
		p.at += n
	}
	switch {
	case p.at == from:
		return step{}, p.fail(from, "a name is missing")
	case p.text[from:p.at] == "*":
		return step{}, p.fail(from, "wildcards are not supported; name one element, as in [0]")
	}
	return step{name: b.String()}, nil
}

// bracket parses [n], ['name'] or ["name"].
func (p *pathParser) bracket() (step, error) {
	open := p.at
	p.at++
	if p.at < p.end && (p.text[p.at] == '\'' || p.text[p.at] == '"') {
		return p.quoted(open)
	}
	from := p.at
	for p.at < p.end && '0' <= p.text[p.at] && p.text[p.at] <= '9' {
		p.at++
	}
	digits := p.text[from:p.at]
	n, err := strconv.Atoi(digits)
	switch {
	case p.at == p.end:
		return step{}, p.fail(open, "the bracket is not closed")
	case digits == "":
		return step{}, p.fail(from, "expected the number of an element, or a name in quotes")
	case err != nil || len(digits) > 9:
		return step{}, p.fail(from, "the number is too large")
	case p.text[p.at] != ']':
		return step{}, p.fail(p.at, "expected a closing bracket")
	}
	p.at++
	return step{index: n, isIndex: true}, nil
}

func (p *pathParser) quoted(open int) (step, error) {
	quote := p.text[p.at]
	var b strings.Builder
	for p.at++; p.at < p.end; p.at++ {
		c := p.text[p.at]
		if c == quote {
			if p.at++; p.at == p.end || p.text[p.at] != ']' {
				return step{}, p.fail(p.at, "expected a closing bracket")
			}
			p.at++
			return step{name: b.String()}, nil
		}
		if c == '\\' {
			if p.at++; p.at == p.end {
				break
			}
			c = p.text[p.at]
		}
		b.WriteByte(c)
	}
	return step{}, p.fail(open, "the quote is not closed")
}

// Steps iterates over the steps of the path: the name of a member, or, if element is true, an element of an array, with
// the name "".
func (p Path) Steps() iter.Seq2[string, bool] {
	return func(yield func(name string, element bool) bool) {
		for _, s := range p.steps {
			if !yield(s.name, s.isIndex) {
				return
			}
		}
	}
}
