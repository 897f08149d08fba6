package query

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

func TestLabelSelectorsMatchAsOnMaps(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	names, values := []string{"a", "b", "app.kubernetes.io/name"}, []string{"1", "2", "x", ""}
	selectors := []string{
		"a", "!a", "a=1", "a==1,b!=2", "a in (1,x)", "a notin (1,2)", "app.kubernetes.io/name=x", "a>1", "a<2,b", "!a,!b",
		"a=", "a!=", "a in (,1)",
	}
	matched := 0
	for range 2000 {
		set := map[string]string{}
		for _, n := range names {
			if rng.IntN(3) > 0 {
				set[n] = values[rng.IntN(len(values))]
			}
		}
		raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": "x", "labels": set}})
		if err != nil {
			t.Fatal(err)
		}
		d := NewDoc(raw)
		if !maps.Equal(d.Labels(), set) {
			t.Fatalf("%s has the labels %v", raw, d.Labels())
		}
		text := selectors[rng.IntN(len(selectors))]
		sel, err := ParseSelection(text, "", "")
		if err != nil {
			t.Fatal(err)
		}
		want := sel.Labels.Matches(labels.Set(set))
		got, err := sel.Matches(context.Background(), "c", "ns/x", d)
		if err != nil || got != want {
			t.Fatalf("%s on %s gives %v, %v, want %v", text, raw, got, err, want)
		}
		if got {
			matched++
		}
	}
	if matched == 0 || matched == 2000 {
		t.Errorf("%d of 2000 matched: the test needs both results", matched)
	}
}

func TestLabelsThatAreNotStringsAreIgnored(t *testing.T) {
	for raw, want := range map[string]map[string]string{
		`{"metadata":{"labels":{"a":1,"b":"2","c":null,"b\u0062":"e"}}}`: {"b": "2", "bb": "e"},
		`{"metadata":{"labels":{"a":"1","a":2}}}`:                        {},
		`{"metadata":{"labels":{"a":"1","a":"\u0032"}}}`:                 {"a": "2"},
		`{"metadata":{"labels":[]}}`:                                     nil,
		`{"metadata":null}`:                                              nil,
		`{}`:                                                             nil,
	} {
		d := NewDoc([]byte(raw))
		if got := d.Labels(); !maps.Equal(got, want) {
			t.Errorf("%s has the labels %v, want %v", raw, got, want)
		}
		seen := (*scannedLabels)(d)
		for _, k := range []string{"a", "b", "bb", "c"} {
			v, ok := want[k]
			if seen.Has(k) != ok || seen.Get(k) != v {
				t.Errorf("%s: label %s is %q, %v", raw, k, seen.Get(k), seen.Has(k))
			}
		}
	}
}

func TestMatchingLabelsBuildsNoMap(t *testing.T) {
	raw := testPod(1)
	sel, err := ParseSelection("app=web-1,tier in (front,back),!gone", "spec.nodeName=node-1,spec.priority!=3", "")
	if err != nil {
		t.Fatal(err)
	}
	d := NewDoc(raw)
	n := testing.AllocsPerRun(100, func() {
		d.Reset(raw)
		if ok, err := sel.Matches(context.Background(), "c", "ns-1/web-1", d); err != nil || !ok {
			t.Fatal(ok, err)
		}
	})
	if n > 2 { // the values of the two labels
		t.Errorf("a match allocates %v times", n)
	}
}
