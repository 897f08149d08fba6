package query

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
)

// CEL charges for a call after it has returned. That is too late for some calls: one replace can turn kilobytes into
// gigabytes, and comparing a list whose elements are twice the same list, and so on, takes exponential time. The costs
// of such calls are checked before they are made.

// maxValue is how many bytes the arguments of one such call may have when written out, and how many its result.
const maxValue = 4 << 20

var errTooLarge = errors.New("it reads or makes too much on one object")

// sizeOf returns about how many bytes a value has when written out. It stops counting above maxValue.
func sizeOf(v ref.Val) int {
	n := 0
	addSize(v, &n)
	return n
}

func addSize(v ref.Val, n *int) {
	*n += 16
	if *n > maxValue {
		return
	}
	switch v := v.(type) {
	case types.String:
		*n += len(v)
	case types.Bytes:
		*n += len(v)
	case *lazyMap:
		*n += len(v.raw)
	case *types.Optional:
		if v.HasValue() {
			addSize(v.GetValue(), n)
		}
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True && *n <= maxValue; {
			key := it.Next()
			addSize(key, n)
			addSize(v.Get(key), n)
		}
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True && *n <= maxValue; {
			addSize(it.Next(), n)
		}
	}
}

// comparison replaces ==, != and in.
type comparison struct {
	interpreter.InterpretableCall
	compare func(left, right ref.Val) ref.Val
}

// Exec compares the arguments, or returns an error if they are too large.
func (c *comparison) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args := c.Args()
	left := args[0].Exec(frame)
	if types.IsUnknownOrError(left) {
		return left
	}
	right := args[1].Exec(frame)
	if types.IsUnknownOrError(right) {
		return right
	}
	if sizeOf(left) > maxValue || sizeOf(right) > maxValue {
		return types.WrapErr(errTooLarge)
	}
	return c.compare(left, right)
}

// Eval is Exec for an older interface.
func (c *comparison) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// guardComparisons replaces the comparisons of a program.
func guardComparisons(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || len(call.Args()) != 2 {
		return i, nil
	}
	switch call.Function() {
	case operators.Equals:
		return &comparison{call, types.Equal}, nil
	case operators.NotEquals:
		return &comparison{call, func(l, r ref.Val) ref.Val { return types.Bool(types.Equal(l, r) != types.True) }}, nil
	case operators.In:
		return &comparison{call, isIn}, nil
	}
	return i, nil
}

func isIn(element, in ref.Val) ref.Val {
	if c, ok := in.(traits.Container); ok {
		return c.Contains(element)
	}
	return types.MaybeNoSuchOverloadErr(in)
}

// compareCosts charges a comparison by the size of its arguments: one for each 64 bytes.
func compareCosts() (options []interpreter.CostTrackerOption) {
	charge := func(args []ref.Val, _ ref.Val) *uint64 {
		cost := uint64(1)
		for _, a := range args {
			cost += uint64(sizeOf(a) / 64)
		}
		return &cost
	}
	for _, id := range []string{overloads.Equals, overloads.NotEquals, overloads.InList, overloads.InMap} {
		options = append(options, interpreter.OverloadCostTracker(id, charge))
	}
	return options
}

// guardedStrings returns the string functions of cel-go. Those whose result can be much larger than their arguments
// check its size first.
func guardedStrings() ([]cel.EnvOption, error) {
	base, err := cel.NewCustomEnv(ext.Strings())
	if err != nil {
		return nil, err
	}
	options := []cel.EnvOption{ext.Strings()}
	for name, size := range map[string]func([]ref.Val) int{"replace": replaceSize, "join": joinSize,
		"format": formatSize} {
		fn := base.Functions()[name]
		bindings, err := fn.Bindings()
		if err != nil {
			return nil, err
		}
		for _, o := range fn.OverloadDecls() {
			for _, b := range bindings {
				if b.Operator == o.ID() {
					options = append(options, cel.Function(name, guardedOverload(o, b, size)))
				}
			}
		}
	}
	return options, nil
}

func guardedOverload(o *decls.OverloadDecl, b *functions.Overload, size func([]ref.Val) int) cel.FunctionOpt {
	refuse := func(args ...ref.Val) ref.Val {
		if size(args) > maxValue {
			return types.WrapErr(errTooLarge)
		}
		return nil
	}
	var binding cel.OverloadOpt
	switch {
	case b.Unary != nil:
		binding = cel.UnaryBinding(func(v ref.Val) ref.Val {
			if err := refuse(v); err != nil {
				return err
			}
			return b.Unary(v)
		})
	case b.Binary != nil:
		binding = cel.BinaryBinding(func(v, w ref.Val) ref.Val {
			if err := refuse(v, w); err != nil {
				return err
			}
			return b.Binary(v, w)
		})
	default:
		binding = cel.FunctionBinding(func(args ...ref.Val) ref.Val {
			if err := refuse(args...); err != nil {
				return err
			}
			return b.Function(args...)
		})
	}
	return cel.MemberOverload(o.ID(), o.ArgTypes(), o.ResultType(), binding)
}

// replaceSize returns how large the result of s.replace(old, new) can be.
func replaceSize(args []ref.Val) int {
	s, _ := args[0].(types.String)
	old, _ := args[1].(types.String)
	with, _ := args[2].(types.String)
	times := strings.Count(string(s), string(old))
	if len(with) > 0 && times > maxValue/len(with) {
		return maxValue + 1
	}
	return len(s) + times*len(with)
}

// joinSize returns how large the result of list.join(separator) is.
func joinSize(args []ref.Val) int {
	n := sizeOf(args[0])
	if len(args) < 2 {
		return n
	}
	list, ok := args[0].(traits.Lister)
	sep, _ := args[1].(types.String)
	if !ok || n > maxValue {
		return n
	}
	elements, _ := list.Size().(types.Int)
	if len(sep) > 0 && int(elements) > maxValue/len(sep) {
		return maxValue + 1
	}
	return n + int(elements)*len(sep)
}

// formatSize returns about how large the result of text.format(list) is.
func formatSize(args []ref.Val) int { return sizeOf(args[0]) + sizeOf(args[1]) }

// environmentOptions returns the options of the CEL environment, except its variables.
func environmentOptions() ([]cel.EnvOption, error) {
	options, err := guardedStrings()
	if err != nil {
		return nil, fmt.Errorf("prepare the string functions: %w", err)
	}
	return append(options,
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.EnableIdentifierEscapeSyntax(),
		cel.OptionalTypes(),
		cel.ParserRecursionLimit(maxWhereDepth),
		cel.ParserExpressionSizeLimit(maxWhere),
		cel.ExpressionNodeLimit(maxWhereNodes),
		cel.RegexProgramSizeLimit(maxRegexSize)), nil
}
