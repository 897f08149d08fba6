package table

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func core1(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Version: "v1", Kind: kind}
}

func cellsOf(t *testing.T, p Printer, raw string) []any {
	t.Helper()
	row, err := p.Row([]byte(raw), noon)
	if err != nil {
		t.Fatal(err)
	}
	return row.Cells
}

func TestUnknownKindHasNameAndCreationTime(t *testing.T) {
	for _, gvk := range []schema.GroupVersionKind{
		core1("LimitRange"),
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "example.com", Version: "v1", Kind: "Pod"},
		{Version: "v9", Kind: "Pod"},
	} {
		p := For(gvk)
		if c := p.Columns(); len(c) != 2 || c[0].Name != "Name" || c[1].Name != "Created At" || c[1].Type != "date" {
			t.Errorf("%s has the columns %v", gvk, c)
		}
		got := cellsOf(t, p, `{"metadata":{"name":"a","creationTimestamp":"2026-05-01T13:00:00+02:00"}}`)
		if d := cmp.Diff([]any{"a", "2026-05-01T11:00:00Z"}, got); d != "" {
			t.Errorf("%s: %s", gvk, d)
		}
	}
}

func TestEveryKindHasAsManyCellsAsColumnsEvenForAnEmptyObject(t *testing.T) {
	all := builtin()
	if len(all) < 60 {
		t.Errorf("there are only %d kinds", len(all))
	}
	for gvk, p := range all {
		columns := len(p.Columns())
		if columns < 2 {
			t.Errorf("%s has %d columns", gvk, columns)
		}
		if gvk.Kind == "IPAddress" {
			columns++ // as at the server
		}
		for _, raw := range []string{`{}`, `null`, `{"metadata":null,"spec":null,"status":null}`} {
			if got := cellsOf(t, p, raw); len(got) != columns {
				t.Errorf("%s: %s has %d cells and %d columns", gvk, raw, len(got), columns)
			}
		}
	}
	used := map[string]bool{defaultColumns: true}
	for gvk := range all {
		used[gvk.GroupKind().String()] = true
	}
	for kind := range builtinColumns() {
		if !used[kind] {
			t.Errorf("columns.json has %s, which nothing prints", kind)
		}
	}
}

func TestColumnsBelongToTheCaller(t *testing.T) {
	custom, err := ForCRD(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []Printer{For(core1("Pod")), For(core1("Nothing")), custom} {
		p.Columns()[0].Name = "spoilt"
		if got := p.Columns()[0].Name; got != "Name" {
			t.Errorf("the column is now called %q", got)
		}
	}
}

func TestAgesAreRelativeToTheGivenTime(t *testing.T) {
	for since, want := range map[string]string{
		`"2026-05-01T11:59:57Z"`: "3s", `"2026-05-01T11:57:00Z"`: "3m", `"2026-04-28T08:00:00Z"`: "3d4h",
		`"2024-05-01T12:00:00Z"`:   "2y",
		`"2026-05-01T12:00:00.5Z"`: "0s", `"2026-05-01T12:00:10Z"`: "<invalid>", `null`: "<unknown>",
	} {
		got := cellsOf(t, For(core1("ServiceAccount")),
			fmt.Sprintf(`{"metadata":{"name":"a","creationTimestamp":%s}}`, since))
		if got[1] != want {
			t.Errorf("the age since %s is %q, not %q", since, got[1], want)
		}
	}
}

func TestComponentStatusesShowTheirConditions(t *testing.T) {
	for conditions, want := range map[string][]any{
		`[{"type":"Healthy","status":"True","message":"ok","error":""}]`:   {"c", "Healthy", "ok", ""},
		`[{"type":"Healthy","status":"False","message":"m","error":"no"}]`: {"c", "Unhealthy", "m", "no"},
		`[{"type":"Other","status":"False"}]`:                              {"c", "Unknown", "", ""},
	} {
		got := cellsOf(t, For(core1("ComponentStatus")), `{"metadata":{"name":"c"},"conditions":`+conditions+`}`)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", conditions, d)
		}
	}
}

func TestErrorsForInvalidObjectsDoNotQuoteThem(t *testing.T) {
	custom, err := ForCRD(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []Printer{For(core1("Secret")), For(core1("Nothing")), custom} {
		for _, raw := range []string{`{"data":"hunter2"`, `"hunter2"`, `["hunter2"]`, ``,
			`{"metadata":{"name":"a"},"data":{"a":"hunter2"}} hunter2`} {
			_, err := p.Row([]byte(raw), noon)
			if err == nil {
				t.Errorf("%T made a row of %s", p, raw)
			} else if strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "make a table row of a") {
				t.Errorf("the error is %v", err)
			}
		}
	}
	if _, err := For(core1("Secret")).Row([]byte(`{"data":{"a":"not base64: hunter2"}}`), noon); err == nil ||
		strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error is %v", err)
	}
}

func TestPrintersAreSafeForConcurrentUse(t *testing.T) {
	var wg sync.WaitGroup
	for _, r := range recordings(t) {
		p := r.printer(t)
		for range 4 {
			wg.Go(func() {
				for _, row := range r.Rows {
					if d := diffRow(p, row.Object, row.Now, row.Cells, row.Conditions); d != "" {
						t.Errorf("%s differs: %s", nameOf(row.Object), d)
					}
				}
			})
		}
	}
	wg.Wait()
}

func BenchmarkPodRow(b *testing.B) {
	for _, r := range recordings(b) {
		if r.GVK == core1("Pod") {
			p := r.printer(b)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := p.Row(r.Rows[i%len(r.Rows)].Object, noon); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}
