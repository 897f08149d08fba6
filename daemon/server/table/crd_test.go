package table

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCustomResourceWithoutColumnsHasNameAndAge(t *testing.T) {
	p, err := ForCRD(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := p.Columns()
	if len(c) != 2 || c[0].Name != "Name" || c[0].Format != "name" || c[1].Name != "Age" || c[1].Type != "date" {
		t.Errorf("the columns are %v", c)
	}
	got := cellsOf(t, p, `{"metadata":{"name":"a","creationTimestamp":"2026-05-01T11:00:00Z"}}`)
	if d := cmp.Diff([]any{"a", "60m"}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]any{"", nil}, cellsOf(t, p, `{"metadata":7}`)); d != "" {
		t.Error(d)
	}
}

func TestColumnsAreReadFromADefinition(t *testing.T) {
	var columns []Column
	raw := `[{"name":"Size","type":"integer","format":"int32","description":"How big","priority":1,` +
		`"jsonPath":".spec.size"},{"name":"Other","type":"string","jsonPath":".spec.other"}]`
	if err := json.Unmarshal([]byte(raw), &columns); err != nil {
		t.Fatal(err)
	}
	p, err := ForCRD(columns)
	if err != nil {
		t.Fatal(err)
	}
	c := p.Columns()
	if c[1].Name != "Size" || c[1].Type != "integer" || c[1].Format != "int32" || c[1].Description != "How big" ||
		c[1].Priority != 1 {
		t.Errorf("the column is %+v", c[1])
	}
	if c[2].Description != "Custom resource definition column (in JSONPath format): .spec.other" {
		t.Errorf("a column without a description has %q", c[2].Description)
	}
}

// Cells by the type of the column and the value at its path.
func TestCellsHaveTheTypeOfTheirColumnOrAreEmpty(t *testing.T) {
	values := []string{`1`, `1.5`, `"x"`, `true`, `"2026-05-01T11:00:00Z"`, `null`, `{"a":1}`, `[1,2]`}
	for kind, want := range map[string][]any{
		"integer": {int64(1), int64(1), nil, nil, nil, nil, nil, nil},
		"number":  {1.0, 1.5, nil, nil, nil, nil, nil, nil},
		"boolean": {nil, nil, nil, true, nil, nil, nil, nil},
		"date":    {nil, nil, "<invalid>", nil, "60m", nil, nil, nil},
		"string":  {"1", "1.5", "x", "true", "2026-05-01T11:00:00Z", "<no value>", `{"a":1}`, `[1,2]`},
	} {
		p, err := ForCRD([]Column{{Name: "C", Type: kind, JSONPath: ".v"}})
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			if got := cellsOf(t, p, `{"v":`+v+`}`); !cmp.Equal(got[1], want[i]) {
				t.Errorf("%s in a column of %s is %#v, not %#v", v, kind, got[1], want[i])
			}
		}
	}
}

func TestInvalidColumnsAreRefused(t *testing.T) {
	for name, c := range map[string]Column{
		"type":        {Name: "C", Type: "object", JSONPath: ".a"},
		"no type":     {Name: "C", JSONPath: ".a"},
		"syntax":      {Name: "C", Type: "string", JSONPath: ".a[?("},
		"long":        {Name: "C", Type: "string", JSONPath: strings.Repeat(".a", maxPathSize)},
		"recursion":   {Name: "C", Type: "string", JSONPath: "..a..b"},
		"union":       {Name: "C", Type: "string", JSONPath: ".a" + strings.Repeat("[0,0]", 40)},
		"in a filter": {Name: "C", Type: "string", JSONPath: "..a[?(@..b==1)]"},
	} {
		if _, err := ForCRD([]Column{c}); err == nil ||
			!strings.Contains(err.Error(), "make column 1 of a custom resource") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	if _, err := ForCRD(make([]Column, maxColumns+1)); err == nil {
		t.Error("too many columns are accepted")
	}
	if _, err := ForCRD([]Column{{Name: "C", Type: "string", JSONPath: "..a[0,1]"},
		{Name: "C", Type: "string", JSONPath: ".a"}}); err == nil {
		t.Error("a path with two multiplying steps is accepted")
	}
}

// A search at all depths takes quadratic time, so objects that are nested too deep are not searched.
func TestSearchInObjectsHasADepthLimit(t *testing.T) {
	p, err := ForCRD([]Column{{Name: "All", Type: "integer", JSONPath: "..x"},
		{Name: "One", Type: "integer", JSONPath: ".y"}})
	if err != nil {
		t.Fatal(err)
	}
	nested := func(depth int) string {
		return `{"y":2,"z":` + strings.Repeat(`{"a":[`, depth/2) + `{"x":1}` + strings.Repeat(`]}`, depth/2) + `}`
	}
	for depth, want := range map[int]any{maxDepth - 2: int64(1), maxDepth: nil, 9000: nil} {
		if d := cmp.Diff([]any{"", want, int64(2)}, cellsOf(t, p, nested(depth))); d != "" {
			t.Errorf("at depth %d: %s", depth, d)
		}
	}
}
