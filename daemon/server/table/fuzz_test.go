package table

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FuzzRow passes any bytes to the printer of any kind.
func FuzzRow(f *testing.F) {
	var kinds []schema.GroupVersionKind
	for gvk := range builtin() {
		kinds = append(kinds, gvk)
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	for _, r := range recordings(f) {
		for _, row := range r.Rows {
			f.Add(byte(max(0, slices.Index(kinds, r.GVK))), []byte(row.Object))
		}
	}
	custom, err := ForCRD([]Column{{Name: "A", Type: "string", JSONPath: "..a"},
		{Name: "B", Type: "date", JSONPath: `.spec[?(@.b=="c")].d`}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, kind byte, raw []byte) {
		for _, p := range []Printer{For(kinds[int(kind)%len(kinds)]), custom} {
			row, err := p.Row(raw, noon)
			if err == nil && len(row.Cells) < len(p.Columns()) {
				t.Errorf("%d cells for %d columns", len(row.Cells), len(p.Columns()))
			}
			if _, err := json.Marshal(row.Cells); err != nil {
				t.Errorf("the cells cannot be sent: %v", err)
			}
		}
	})
}

// FuzzColumn evaluates any path on any object.
func FuzzColumn(f *testing.F) {
	for _, r := range recordings(f) {
		for _, c := range r.Columns {
			f.Add(c.Type, c.JSONPath, []byte(r.Rows[0].Object))
		}
	}
	f.Add("string", `.a}{range .b[*]}{.c}{end`, []byte(`{"a":1,"b":[{"c":2}]}`))
	f.Add("string", `.a[-1:0:-1]`, []byte(`{"a":[1,2,3]}`))
	f.Fuzz(func(t *testing.T, kind, path string, raw []byte) {
		p, err := ForCRD([]Column{{Name: "C", Type: kind, JSONPath: path}})
		if err != nil {
			return
		}
		if row, err := p.Row(raw, noon); err == nil && len(row.Cells) != 2 {
			t.Errorf("there are %d cells", len(row.Cells))
		}
	})
}

// If a part of a real object is missing or has another type, the result is a row or an error.
func TestNoMissingPartMakesRowPanic(t *testing.T) {
	for _, r := range recordings(t) {
		p := r.printer(t)
		for _, row := range r.Rows {
			for _, instead := range []any{gone{}, nil, "", json.Number("-1"), []any{}, []any{nil}, map[string]any{}} {
				broken(t, row.Object, instead, func(raw []byte) {
					defer func() {
						if e := recover(); e != nil {
							t.Fatalf("%s: %v\n%s", r.GVK, e, raw)
						}
					}()
					_, _ = p.Row(raw, noon)
				})
			}
		}
	}
}

// gone stands for a field that is left out.
type gone struct{}

// broken calls do with copies of an object, each with one part replaced or removed.
func broken(t *testing.T, raw []byte, instead any, do func([]byte)) {
	t.Helper()
	var root any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&root); err != nil {
		t.Fatal(err)
	}
	var visit func(node any)
	visit = func(node any) {
		switch n := node.(type) {
		case map[string]any:
			for k, v := range n {
				if n[k] = instead; instead == (gone{}) {
					delete(n, k)
				}
				do(marshal(t, root))
				n[k] = v
				visit(v)
			}
		case []any:
			for i, v := range n {
				if instead != (gone{}) {
					n[i] = instead
					do(marshal(t, root))
					n[i] = v
				}
				visit(v)
			}
		}
	}
	visit(root)
}
