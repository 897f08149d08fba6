package query

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/google/cel-go/cel"
)

// compileError is the error of an expression that cannot be compiled. It wraps ErrInvalid without its text.
type compileError struct{ text string }

// Error returns where the expression is wrong, why, and what it can use.
func (e *compileError) Error() string { return e.text }

// Unwrap returns ErrInvalid.
func (e *compileError) Unwrap() error { return ErrInvalid }

var noOverload = regexp.MustCompile(`^found no matching overload for '(.+)' applied to '(.+)'$`)

// newCompileError describes the first error of an expression: later ones mostly follow from it.
func newCompileError(text string, issues *cel.Issues) error {
	if strings.TrimSpace(text) == "" {
		return &compileError{"the expression is empty; leave it out, or write one such as status.phase != \"Running\""}
	}
	first := issues.Errors()[0]
	why, _, _ := strings.Cut(first.Message, " expecting ") // followed by some two dozen tokens
	why, _, _ = strings.Cut(why, " (in container")
	why = strings.TrimPrefix(why, "Syntax error: ")
	if m := noOverload.FindStringSubmatch(why); m != nil {
		why = fmt.Sprintf("%s does not take %s", strings.Trim(m[1], "_"), m[2])
	}
	if strings.Contains(why, "<EOF>") {
		why = "something is missing at its end"
	}
	hint := `an expression can use object, metadata, spec, status and cluster, as in object.data.x == "1" or ` +
		`status.phase != "Running"; strings are in quotes`
	if strings.HasPrefix(why, "token recognition error at: '=") {
		why, hint = "a single = is not an operator", "compare with =="
	}
	at := fmt.Sprintf("column %d", first.Location.Column()+1)
	if line := first.Location.Line(); line > 1 {
		at = fmt.Sprintf("line %d, %s", line, at)
	}
	return &compileError{fmt.Sprintf("the expression %q is wrong at %s: %s; %s", text, at, why, hint)}
}
