package query

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func mustPath(t testing.TB, text string) Path {
	t.Helper()
	p, err := ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPathsOfKubectlAreParsed(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"spec.nodeName", "spec.nodeName"},
		{".spec.nodeName", "spec.nodeName"},
		{"{.spec.nodeName}", "spec.nodeName"},
		{"{spec.nodeName}", "spec.nodeName"},
		{".spec.containers[0].image", "spec.containers[0].image"},
		{"metadata.labels['app.kubernetes.io/name']", "metadata.labels['app.kubernetes.io/name']"},
		{`metadata.annotations["a.b/c"]`, "metadata.annotations['a.b/c']"},
		{`metadata.labels.app\.kubernetes\.io/name`, "metadata.labels['app.kubernetes.io/name']"},
		{`a['it\'s']`, `a['it\'s']`},
		{`a["b\\c"]`, `a['b\\c']`},
		{"a.['b c']", "a['b c']"},
		{"['metadata'].name", "metadata.name"},
		{"a[0][1]", "a[0][1]"},
		{"a['']", "a['']"},
		{`data.\*`, "data['*']"},
		{"a.größe", "a.größe"},
	} {
		if got := mustPath(t, c.text).String(); got != c.want {
			t.Errorf("%s is read as %s, want %s", c.text, got, c.want)
		}
	}
}

func TestPathErrorsHaveThePosition(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "at character 1: the path is empty"},
		{".", "at character 1: the path is empty"},
		{"{}", "at character 2: the path is empty"},
		{"{.a", "at character 4: the brace"},
		{"a..b", "at character 3: a name is missing"},
		{"a.", "at character 3: a name is missing"},
		{"a[", "at character 2: the bracket is not closed"},
		{"a[]", "at character 3: expected the number"},
		{"a[-1]", "at character 3: expected the number"},
		{"a[*]", "at character 3: expected the number"},
		{"a[1", "at character 2: the bracket is not closed"},
		{"a[1x]", "at character 4: expected a closing bracket"},
		{"a[9999999999]", "at character 3: the number is too large"},
		{"a['b", "at character 2: the quote is not closed"},
		{"a['b'", "at character 6: expected a closing bracket"},
		{`a['b\`, "at character 2: the quote is not closed"},
		{"a['b']c", "at character 7: expected a dot"},
		{"a b", "at character 2: ' ' is not allowed"},
		{"ä b", "at character 2: ' ' is not allowed"},
		{"a]b", "at character 2: ']' is not allowed"},
		{"a.*", "at character 3: wildcards"},
		{`a\`, "at character 3: a character is missing"},
		{"a\xff", "not valid UTF-8"},
		{strings.Repeat("a", 2000), "at most 1024"},
		{strings.Repeat("a.", 64) + "a", "more than 64 steps"},
	} {
		_, err := ParsePath(c.text)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q gives %v, want %q", c.text, err, c.want)
		}
	}
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"a.b[0]['c']", `{.a\.b}`, `a["\"'"]`, "-a,b", "\ufffd", "[0]", `\ `} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePath(text)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("%q gives %v, which is no ErrInvalid", text, err)
			}
			return
		}
		if len(p.String()) > maxPathLen {
			return // quotes made it longer than the limit
		}
		again, err := ParsePath(p.String())
		if err != nil || !reflect.DeepEqual(p, again) {
			t.Fatalf("%q is %q, which is read as %q, %v", text, p, again, err)
		}
		o := Order{terms: []orderTerm{{path: p, desc: true}, {path: p}}}
		if back, err := ParseOrder(o.String()); err != nil || !reflect.DeepEqual(o, back) {
			t.Fatalf("%q in an order is %q, which is read as %q, %v", text, o, back, err)
		}
	})
}
