package query

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/mirador-k8s/mirador/object"
)

func TestFieldSelectorsAcceptAnyPath(t *testing.T) {
	const raw = `{"metadata":{"name":"in-the-object","labels":{"a.b/c":"v"}},
		"spec":{"nodeName":"n1","replicas":3,"ratio":1.50,"paused":true,
		"empty":"","null":null,"esc":"a\u0062","c":[{"image":"x,y=z\\"}],"uni":"ä"}}`
	const key = object.Key("ns/x")
	for _, c := range []struct {
		text string
		want bool
	}{
		{"", true}, {"spec.nodeName=n1", true}, {"spec.nodeName==n1", true}, {"spec.nodeName!=n1", false},
		{"spec.nodeName=n2", false},
		{"spec.replicas=3", true}, {"spec.replicas=3.0", false}, {"spec.ratio=1.50", true}, {"spec.ratio=1.5", false},
		{"spec.paused=true", true},
		{"spec.empty=", true}, {"spec.null=", true}, {"spec.absent=", true}, {"spec.absent!=", false},
		{"spec.absent!=x", true}, {"spec.nodeName.x=", true},
		{"spec.esc=ab", true}, {`spec.esc=a\\u0062`, false}, {"spec.uni=ä", true}, {`spec.c[0].image=x\,y\=z\\`, true},
		{`metadata.labels.a\.b/c=v`, true},
		{"metadata.labels['a.b/c']=v", true}, {"metadata.name=x", true}, {"metadata.name=in-the-object", false},
		{"metadata.namespace=ns", true},
		{"metadata.namespace!=ns", false}, {".metadata.name=x", true},
		{"metadata.name=x,spec.nodeName=n1,spec.replicas!=4", true}, {"metadata.name=x,metadata.name=y", false},
	} {
		sel, err := ParseSelection("", c.text, "")
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got, err := sel.Matches(context.Background(), "c", key, NewDoc([]byte(raw))); err != nil || got != c.want {
			t.Errorf("%s gives %v, %v, want %v", c.text, got, err, c.want)
		}
	}
}

func TestErrorsOfFieldSelectorsNameTheMistake(t *testing.T) {
	doc := NewDoc([]byte(`{"spec":{"a":{},"b":[]}}`))
	for text, want := range map[string]string{
		"spec.a=x": "select by field spec.a: it is an object", "spec.b!=": "select by field spec.b: it is an array",
	} {
		f, err := parseFields(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.matchObject(doc); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"spec": "can't understand", `a=\x`: "escape", "a..b=c": "at character 3", "=x": "the path is empty",
		"a =b": "at character 2", strings.Repeat("a", maxSelector+1): "at most",
	} {
		if _, err := parseFields(text); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.50s gives %v, want %q", text, err, want)
		}
	}
	if _, err := ParseSelection("a in", "", ""); !errors.Is(err, ErrInvalid) {
		t.Errorf("an incomplete label selector gives %v", err)
	}
	if _, err := ParseSelection(strings.Repeat("a", maxSelector+1), "", ""); !errors.Is(err, ErrInvalid) {
		t.Errorf("a label selector that is too long gives %v", err)
	}
}

func TestSelectionReturnsRequiredNamespaceAndName(t *testing.T) {
	for _, c := range []struct {
		text, namespace, name string
		needs                 bool
	}{
		{"metadata.name=a", "", "a", false}, {"metadata.namespace=n,metadata.name==a", "n", "a", false},
		{"metadata.name!=a", "", "", false}, {"spec.x=1,metadata.namespace=n", "n", "", true},
	} {
		sel, err := ParseSelection("", c.text, "")
		if err != nil {
			t.Fatal(err)
		}
		ns, hasNS := sel.namespace()
		name, hasName := sel.name()
		if ns != c.namespace || hasNS != (c.namespace != "") || name != c.name || hasName != (c.name != "") ||
			sel.NeedsObject() != c.needs || sel.Empty() {
			t.Errorf("%s requires %q %q, and the object %v", c.text, ns, name, sel.NeedsObject())
		}
	}
	if (Selection{}).NeedsObject() || !(Selection{}).Empty() {
		t.Error("the empty selection needs the object")
	}
}

func TestFieldSelectorsMatchAsKubernetesDoesOnMaps(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	for range 3000 {
		checkFields(t, randomFieldSelector(rng), rng)
	}
}

func FuzzFields(f *testing.F) {
	for _, s := range []string{"a=1,b!=2", `a==x\,y`, "a", ",,", `c=\\`, "b=ä", "a!==x"} {
		f.Add(s, uint64(1))
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) { checkFields(t, text, rand.New(rand.NewPCG(seed, 1))) })
}

func randomFieldSelector(rng *rand.Rand) string {
	var terms []string
	for range rng.IntN(4) {
		terms = append(terms, []string{"a", "b", "c", "d"}[rng.IntN(4)]+[]string{"=", "==", "!="}[rng.IntN(3)]+
			fields.EscapeValue(fieldValues[rng.IntN(len(fieldValues))]))
	}
	return strings.Join(terms, ",")
}

var fieldValues = []string{"", "1", "x", "x,y=z", `back\slash`, "ä\"<>&", "long enough to be more than one word"}

// checkFields compares the result with that of Kubernetes' selector on flat objects of strings.
func checkFields(t *testing.T, text string, rng *rand.Rand) {
	theirs, err := fields.ParseSelector(text)
	ours, ourErr := parseFields(text)
	if err != nil {
		if ourErr == nil {
			t.Fatalf("%q is accepted, but Kubernetes returns %v", text, err)
		}
		return
	}
	if ourErr != nil {
		if !errors.Is(ourErr, ErrInvalid) {
			t.Fatal(ourErr)
		}
		return // not every field name of Kubernetes is a path
	}
	set := fields.Set{}
	for _, name := range []string{"a", "b", "c"} {
		if rng.IntN(3) > 0 {
			set[name] = fieldValues[rng.IntN(len(fieldValues))]
		}
	}
	raw, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range theirs.Requirements() {
		if p := mustPath(t, r.Field); len(p.steps) != 1 || p.steps[0].name != r.Field {
			return // a path into nested objects
		}
	}
	got, err := ours.matchObject(NewDoc(raw))
	if want := theirs.Matches(set); err != nil || got != want {
		t.Fatalf("%q on %s gives %v, %v, want %v", text, raw, got, err, want)
	}
}

func TestLabelMayHaveSeveralPathsAndADefault(t *testing.T) {
	meaning := func(label string) (Field, error) {
		switch label {
		case "source":
			return Field{Paths: []Path{mustPath(t, "source.component"), mustPath(t, "reporter")}}, nil
		case "off":
			return Field{Paths: []Path{mustPath(t, "spec.off")}, Default: "false"}, nil
		case "none":
			return Field{}, nil
		}
		return Field{}, errors.New("no such label: " + label)
	}
	for _, c := range []struct {
		selector, object string
		want             bool
	}{
		{"source=a", `{"source":{"component":"a"},"reporter":"b"}`, true},
		{"source=b", `{"source":{"component":"a"},"reporter":"b"}`, false},
		{"source=b", `{"source":{"component":""},"reporter":"b"}`, true},
		{"source=b", `{"source":{"component":null},"reporter":"b"}`, true},
		{"source=b", `{"reporter":"b"}`, true},
		{"source=", `{}`, true},
		{"source!=", `{}`, false},
		{"off=false", `{"spec":{}}`, true},
		{"off=", `{"spec":{}}`, false},
		{"off=false", `{"spec":{"off":true}}`, false},
		{"off=true", `{"spec":{"off":true}}`, true},
		{"off!=true", `{"spec":{"off":null}}`, true},
		{"none=", `{"none":"x"}`, true},
		{"none=x", `{"none":"x"}`, false},
		{"none!=x", `{"none":"x"}`, true},
	} {
		f, err := ParseFieldsWith(c.selector, meaning)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.matchObject(NewDoc([]byte(c.object))); err != nil || got != c.want {
			t.Errorf("%s of %s: %v, %v", c.selector, c.object, got, err)
		}
	}
	if _, err := ParseFieldsWith("off=true,on=true", meaning); err == nil || err.Error() != "no such label: on" {
		t.Errorf("%v", err)
	}
}
