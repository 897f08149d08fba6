package query

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Each of these would take gigabytes or years if it were charged only afterwards.
func TestExpressionsCannotMakeLargeValues(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	doc := fmt.Sprintf(`{"metadata":{"name":"a","annotations":{"long":%q}}}`, long)
	const a = "metadata.annotations.long"
	twice := strings.Repeat(".map(a, [a, a])", 60)
	for _, text := range []string{
		a + ".replace('', " + a + ") == ''",
		a + ".replace('x', " + a + ", -1) == ''",
		"[" + strings.Repeat(a+",", 100) + "''].join() == ''",
		"['','','','','','','','','','','','','','','','','','','',''].join(" + a + ") == ''",
		"'" + strings.Repeat("%s", 100) + "'.format([" + strings.Repeat("object,", 99) + "object]) == ''",
		"[0]" + twice + " == [1]" + twice,
		"[0]" + twice + " != [0]" + twice,
		"[0]" + twice + " in [[0]" + twice + "]",
		"optional.of([0]" + twice + ") == optional.of([0]" + twice + ")",
		"{'a': [0]" + twice + "} == {'a': [0]" + twice + "}",
		"'%s'.format([[0]" + twice + "]) == ''",
		manyTimes("size(" + a + ") > 0"), // cheap in the units of CEL, but reads 100 KiB each time
		manyTimes("size(metadata) > 0"),
		manyTimes("has(object.metadata.annotations.x.y) || true"),
	} {
		w, err := CompileWhere(text)
		if err != nil {
			t.Errorf("%.80s: %v", text, err)
			continue
		}
		if _, err := w.Matches(context.Background(), "eu", NewDoc([]byte(doc))); !errors.Is(err, ErrTooMuch) {
			t.Errorf("%.80s gives %v", text, err)
		}
	}
}

// manyTimes returns an expression that evaluates another one 10,000 times.
func manyTimes(inner string) string {
	list := "[" + strings.TrimSuffix(strings.Repeat("0,", 100), ",") + "]"
	return fmt.Sprintf("%s.all(a, %s.all(b, %s))", list, list, inner)
}

func TestGuardedFunctionsWorkAsBefore(t *testing.T) {
	for _, text := range []string{
		"'hello'.replace('l', 'L') == 'heLLo'", "'hello'.replace('l', 'L', 1) == 'heLlo'",
		"'ab'.replace('', '-') == '-a-b-'", "['a', 'b'].join() == 'ab'", "['a', 'b'].join(', ') == 'a, b'",
		"'%s is %d'.format(['a', 1]) == 'a is 1'", "'%s'.format([[1, 2]]) == '[1, 2]'", "1 in [1, 2]", "!(3 in [1, 2])",
		"'a' in {'a': 1}", "metadata.name in ['web-1', metadata.namespace]", "[1, [2, 3]] == [1, [2, 3]]",
		"{'a': [1]} != {'a': [2]}", "dyn(1) == 1.0", "null == null", "optional.of(1) == optional.of(1)", "b'a' == b'a'",
	} {
		w, err := CompileWhere(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if ok, err := w.Matches(context.Background(), "eu", NewDoc([]byte(whereObject))); err != nil || !ok {
			t.Errorf("%s gives %v, %v", text, ok, err)
		}
	}
}
