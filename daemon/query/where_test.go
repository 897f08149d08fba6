package query

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

const whereObject = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"prod",
	"labels":{"app":"web","app.kubernetes.io/name":"w"},
	"creationTimestamp":"2026-01-02T03:04:05Z","deletionTimestamp":null},
	"spec":{"replicas":3,"ratio":0.5,"paused":false,
	"containers":[{"name":"a","image":"x:latest","ports":[80,443]},{"name":"b","image":"y:1","env":{}}]},
	"huge":1e999,"li\u0073t":[],"data":{"a":"1","a":"2"}}`

func TestExpressionsSeeTheObject(t *testing.T) {
	for _, c := range []struct {
		text string
		want bool
	}{
		{"true", true}, {"false", false}, {"cluster == 'eu'", true}, {"metadata.name == 'web-1'", true},
		{"object.metadata.name == metadata.name", true},
		{"metadata.namespace == 'prod'", true}, {"object.kind == 'Pod'", true}, {"spec.replicas > 2", true},
		{"spec.replicas > 2.5", true}, {"spec.ratio < 1", true}, {"spec.replicas == 3.0", true},
		{"!spec.paused", true}, {"spec.containers.exists(c, c.image.endsWith(':latest'))", true},
		{"spec.containers.all(c, c.image.endsWith(':latest'))", false},
		{"spec.containers[0].ports[1] == 443", true}, {"size(spec.containers) == 2", true},
		{"spec.containers.map(c, c.name) == ['a', 'b']", true},
		{"spec.containers.filter(c, has(c.ports)).size() == 1", true},
		{"'app' in metadata.labels", true}, {"metadata.labels['app.kubernetes.io/name'] == 'w'", true},
		{"metadata.labels.`app.kubernetes.io/name` == 'w'", true},
		{"metadata.labels == {'app': 'web', 'app.kubernetes.io/name': 'w'}", true},
		{"{'app': 'web'} == metadata.labels", false}, {"size(metadata.labels) == 2", true},
		{"metadata.labels.exists(k, k.startsWith('app'))", true},
		{"has(metadata.labels) && !has(metadata.annotations)", true}, {"has(status.phase)", false},
		{"!has(status.phase)", true}, {"status == {}", true}, {"metadata.deletionTimestamp == null", true},
		{"timestamp(metadata.creationTimestamp) < timestamp('2026-02-01T00:00:00Z')", true},
		{"metadata.name.split('-')[1] == '1'", true}, {"metadata.name.upperAscii() == 'WEB-1'", true},
		{"metadata.?annotations.?x.orValue('none') == 'none'", true}, {"metadata.?labels.app.orValue('') == 'web'", true},
		{"object.list == []", true}, {"object.data.a == '2'", true}, {"size(object.data) == 1", true},
		{"metadata.name.matches('^web-[0-9]+$')", true}, {"type(spec) == map", true},
		{"type(spec.containers) == list", true}, {"spec.containers[1].env == {}", true},
		{"dyn(metadata.name) == 'web-1'", true},
		{"'missing' in metadata.labels", false}, {"1 in metadata.labels", false}, {"spec == object.spec", true},
		{"spec != object.metadata", true}, {"object.metadata in [metadata]", true},
		// Missing fields do not match.
		{"status.phase == 'Running'", false}, {"status.phase != 'Running'", false}, {"metadata.annotations.x == 'y'", false},
		{"spec.containers[9].name == 'a'", false}, {"spec.containers[0].ports[7] > 1", false},
		{"metadata.deletionTimestamp.x == 'y'", false}, {"metadata.labels['none'] == 'x'", false},
		{"metadata.name.substring(99) == ''", false}, {"[1][metadata.labels.size()] == 1", false}, {"!status.ready", false},
		{"object.none", false},
		{"status.phase == 'Running' || metadata.name == 'web-1'", true}, {"spec.replicas > 2 && status.ready", false},
	} {
		w, err := CompileWhere(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		got, err := w.Matches(context.Background(), "eu", NewDoc([]byte(whereObject)))
		if err != nil || got != c.want {
			t.Errorf("%s gives %v, %v, want %v", c.text, got, err, c.want)
		}
	}
}

func TestExpressionErrorsHaveThePosition(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"spec.replicas >", "column 16"}, {"spec.replicas == 'a' ||", "column 24"},
		{"nothing == 1", "undeclared reference to 'nothing'"}, {"cluster == 1", "== does not take (string, int)"},
		{"'a'", "it gives string, not bool"}, {"1 + 1", "it gives int, not bool"},
		{"object.x.matches('(')", "error parsing regexp"}, {strings.Repeat("!", maxWhere+1), "at most 4096"},
		{strings.Repeat("(", 1000) + "true" + strings.Repeat(")", 1000), "recursion"},
		{"metadata.name.matches('" + strings.Repeat("a{1000}", 100) + "')", "regex"}, {"", "the expression is empty"},
		{"true; drop", "column 5"},
	} {
		_, err := CompileWhere(c.text)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s gives %v, want %q", c.text, err, c.want)
		}
	}
}

func TestExpressionsThatFailOnAnObject(t *testing.T) {
	for _, c := range []struct {
		text string
		is   error
		want string
	}{
		{"spec.replicas < 'a'", ErrInvalid, "no such overload"},
		{"1 / (spec.replicas - 3) == 1", ErrInvalid, "division by zero"},
		{"spec.replicas", ErrInvalid, "it gives int, not bool"},
		{"timestamp(metadata.name) == timestamp(metadata.name)", ErrInvalid, "a function does not accept"},
		{"object.huge > 1", ErrInvalid, "out of range"}, {nested("0 < 1"), ErrTooMuch, "more than 100000 on one object"},
		{"metadata.name.matches(metadata.name + '(')", ErrInvalid, "a function does not accept"},
		{"int(metadata.name) > 1", ErrInvalid, "a function does not accept"},
	} {
		w, err := CompileWhere(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if _, err = w.Matches(context.Background(), "eu", NewDoc([]byte(whereObject))); !errors.Is(err, c.is) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s gives %v, want %q", c.text, err, c.want)
		}
		if strings.Contains(err.Error(), "web-1") {
			t.Errorf("%.60s shows a value of the object: %v", c.text, err)
		}
	}
}

// nested is an expression with 100^3 iterations.
func nested(inner string) string {
	list := "[" + strings.TrimSuffix(strings.Repeat("0,", 100), ",") + "]"
	return fmt.Sprintf("%s.all(a, %s.all(b, %s.all(c, %s)))", list, list, list, inner)
}

func TestExpressionEndsWithItsContext(t *testing.T) {
	w, err := CompileWhere(nested("true"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := w.Matches(ctx, "eu", NewDoc([]byte(whereObject))); !errors.Is(err, context.Canceled) {
		t.Errorf("it gives %v", err)
	}
}

func TestExpressionOnABrokenDocumentIsAnError(t *testing.T) {
	w, err := CompileWhere("true")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Matches(context.Background(), "eu", NewDoc([]byte("{"))); err == nil || errors.Is(err, ErrInvalid) {
		t.Errorf("it gives %v", err)
	}
}

func TestCompiledExpressionsAreCached(t *testing.T) {
	a, err := CompileWhere("metadata.name == 'again'")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := CompileWhere("metadata.name == 'again'"); err != nil || a != b {
		t.Errorf("the expression was compiled again: %v", err)
	}
	c := newProgramCache(2)
	one, two, three := &Where{text: "1"}, &Where{text: "2"}, &Where{text: "3"}
	c.put(one)
	c.put(two)
	c.get("1")
	c.put(three)
	c.put(&Where{text: "3"})
	if c.get("1") != one || c.get("2") != nil || c.get("3") != three || c.recent.Len() != 2 || len(c.byText) != 2 {
		t.Errorf("the cache has %d expressions, among them %v %v %v", c.recent.Len(), c.get("1"), c.get("2"), c.get("3"))
	}
}

func TestExpressionIsSafeForConcurrentUse(t *testing.T) {
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			w, err := CompileWhere("spec.containers.exists(c, c.name == 'c1' && c.resources.limits.memory == '64Mi') && " +
				"metadata.labels.app == 'web-6'")
			if err != nil {
				t.Error(err)
				return
			}
			var d Doc
			for i := range 200 {
				d.Reset(testPod(i + g))
				if got, err := w.Matches(context.Background(), "eu", &d); err != nil || got != ((i+g)%6 == 0 && (i+g)%7 == 6) {
					t.Errorf("pod %d gives %v, %v", i+g, got, err)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzWhere(f *testing.F) {
	for _, s := range []string{
		"spec.replicas > 2", "object.a.b[0] == 'x'", "metadata.labels.exists(k, k == 'a')", "has(status.x)",
		"spec.?a.orValue(1) == 1", "'%s'.format([object])", "object == spec", "type(object) == map",
		"[object, spec].exists(x, x == status)", "metadata.name.replace('e', 'ee').size() > 1", "string(spec) == ''",
		"size(object) + 1 > 0", "object[1] == 2", "object[null]", "spec.containers.map(c, c)[0] == c",
	} {
		f.Add(s, []byte(whereObject))
	}
	f.Fuzz(func(t *testing.T, text string, raw []byte) {
		w, err := CompileWhere(text)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("%q gives %v, which is no ErrInvalid", text, err)
			}
			return
		}
		d := NewDoc(raw)
		got, err := w.Matches(context.Background(), "eu", d)
		if err != nil && d.Err() == nil && !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTooMuch) {
			t.Fatalf("%q gives %v, %v", text, got, err)
		}
		if err != nil && !strings.Contains(text, "internal error") && strings.Contains(err.Error(), "internal error") {
			t.Fatalf("a panic was recovered: %v", err)
		}
	})
}
