package query

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// The limits of an expression: its length, its nodes after macro expansion, its depth, the size of one compiled regular
// expression, and its cost on one object, in the units of CEL: about one for each field, call and iteration, and more
// for long strings.
const (
	maxWhere      = 4 << 10
	maxWhereNodes = 10000
	maxWhereDepth = 100
	maxRegexSize  = 1000
	maxWhereCost  = 100_000
	// checkEvery is after how many iterations of a loop in an expression the context is checked.
	checkEvery = 100
)

// Where is a compiled expression. It is safe for concurrent use.
type Where struct {
	text    string
	program cel.Program
}

// environment is shared by all expressions.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	options, err := environmentOptions()
	if err != nil {
		return nil, err
	}
	return cel.NewEnv(append(options,
		cel.Variable("object", cel.DynType),
		cel.Variable("metadata", cel.DynType),
		cel.Variable("spec", cel.DynType),
		cel.Variable("status", cel.DynType),
		cel.Variable("cluster", cel.StringType))...)
})

// CompileWhere compiles an expression in CEL. The expression can use object, its members metadata, spec and status (an
// empty map if the object has none), and cluster, the name of the cluster; the standard functions and macros, optional
// values, and the string functions of cel-go. Its result must be a bool. Recently compiled expressions are cached.
func CompileWhere(text string) (*Where, error) {
	if len(text) > maxWhere {
		return nil, fmt.Errorf("compile an expression of %d bytes: at most %d are allowed: %w", len(text),
			maxWhere, ErrInvalid)
	}
	if w := programs.get(text); w != nil {
		return w, nil
	}
	w, err := compile(text)
	if err != nil {
		return nil, err
	}
	programs.put(w)
	return w, nil
}

func compile(text string) (w *Where, err error) {
	// The text is untrusted and the compiler is large: a panic in it must fail only this request.
	defer func() {
		if p := recover(); p != nil {
			w, err = nil, fmt.Errorf("compile the expression %q: the compiler failed: %v: %w", text, p, ErrInvalid)
		}
	}()
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("prepare expressions: %w", err)
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, newCompileError(text, issues)
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("compile the expression %q: it gives %s, not bool; compare it with something: %w", text,
			cel.FormatCELType(t), ErrInvalid)
	}
	program, err := env.Program(ast,
		cel.EvalOptions(cel.OptOptimize),
		cel.CustomDecoratorV2(guardComparisons),
		cel.CostTrackerOptions(compareCosts()...),
		cel.CostLimit(maxWhereCost),
		cel.InterruptCheckFrequency(checkEvery))
	if err != nil {
		return nil, fmt.Errorf("compile the expression %q: %w: %w", text, err, ErrInvalid)
	}
	return &Where{text: text, program: program}, nil
}

// String returns the text of the expression.
func (w *Where) String() string { return w.text }

// Matches evaluates the expression on an object. If the expression depends on a field that the object does not have,
// the object does not match. Any other failure, such as comparing a string with a number, is an error.
func (w *Where) Matches(ctx context.Context, cluster string, d *Doc) (matches bool, err error) {
	if err := d.Err(); err != nil {
		return false, err
	}
	defer func() {
		if p := recover(); p != nil {
			matches, err = false, fmt.Errorf("evaluate %q: internal error: %w", w.text, ErrInvalid)
		}
	}()
	vars := &variables{doc: d, cluster: cluster}
	out, _, err := w.program.ContextEval(ctx, vars)
	if vars.meter.over() {
		err = errTooLarge
	}
	if err != nil {
		return false, w.failed(ctx, err)
	}
	if b, ok := out.(types.Bool); ok {
		return bool(b), nil
	}
	return false, fmt.Errorf("evaluate %q: it gives %s, not bool: %w", w.text, typeName(out), ErrInvalid)
}

func typeName(v ref.Val) string {
	if v == nil {
		return "nothing"
	}
	return v.Type().TypeName()
}

// failed returns the error for a failed evaluation, nil if it only means that the object does not match.
func (w *Where) failed(ctx context.Context, err error) error {
	var cancelled interpreter.EvalCancelledError
	switch {
	case isMissing(err):
		return nil
	case errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded:
		return fmt.Errorf("evaluate %q: it costs more than %d on one object: %w; make it simpler", w.text,
			maxWhereCost, ErrTooMuch)
	case strings.HasPrefix(err.Error(), errTooLarge.Error()):
		return fmt.Errorf("evaluate %q: %s: %w; make it simpler", w.text, errTooLarge, ErrTooMuch)
	case ctx.Err() != nil:
		return fmt.Errorf("evaluate %q: %w", w.text, context.Cause(ctx))
	}
	return fmt.Errorf("evaluate %q: %s: %w", w.text, reason(err), ErrInvalid)
}

// reasons are error texts of cel-go that contain nothing of the object. Others may quote a value, and values must not
// be in errors, which may be logged.
var reasons = []string{"no such overload", "division by zero", "modulus by zero", "integer overflow",
	"unsigned integer overflow", "range error", "internal error", errRange.Error()}

func reason(err error) string {
	for _, r := range reasons {
		if strings.HasPrefix(err.Error(), r) {
			return r
		}
	}
	return "a function does not accept a value of the object"
}

// missing are the beginnings of cel-go's errors for a missing field, element or variable. cel-go does not export the
// error types, so the text has to be compared; a test fails if it changes.
var missing = []string{"no such key", "no such attribute", "index out of bounds", "index out of range", "index '"}

func isMissing(err error) bool {
	text := err.Error()
	for _, m := range missing {
		if strings.HasPrefix(text, m) {
			return true
		}
	}
	return false
}
