package table

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var update = flag.Bool("update", false, "record the server's columns and rows again")

// Compares our tables with those of a real server, for every kind that it lists and the objects of testdata/objects.
// The cluster has no controllers, so nothing changes meanwhile.
func TestColumnsAndCellsAreThoseOfARealServer(t *testing.T) {
	s := newServer(t)
	for _, o := range s.objects(t) {
		s.create(t, o)
	}
	recordedColumns := map[string][]metav1.TableColumnDefinition{}
	seen := map[schema.GroupVersionKind]int{}
	for gvk, r := range s.discover(t) {
		t.Run(strings.Trim(gvk.Group+"/"+gvk.Version+"/"+gvk.Kind, "/"), func(t *testing.T) {
			before := time.Now()
			var got serverTable
			s.get(t, r.path()+"?includeObject=Object", asTable, &got)
			after := time.Now()
			p, columns := s.printer(t, gvk)
			if d := cmp.Diff(got.Columns, p.Columns()); d != "" {
				t.Errorf("the columns differ (-server +ours):\n%s", d)
			}
			recordColumns(recordedColumns, gvk, got.Columns)
			file := recording{GVK: gvk, Columns: columns}
			for _, want := range got.Rows {
				now, diff := findNow(p, want, before, after)
				if diff != "" {
					t.Errorf("%s differs (-server +ours):\n%s", nameOf(want.Object), diff)
					continue
				}
				if s.fixture(gvk, want.Object) {
					file.Rows = append(file.Rows, recordedRow{now, withoutNoise(t, want.Object), want.Cells, want.Conditions})
				}
			}
			seen[gvk] = len(got.Rows)
			if *update && len(file.Rows) > 0 {
				file.write(t)
			}
		})
	}
	for gvk := range builtin() {
		if n, served := seen[gvk]; served && n == 0 {
			t.Errorf("the server has no %s, so nothing was compared: add one to testdata/objects", gvk.Kind)
		}
	}
	if len(seen) < 60 {
		t.Errorf("only %d kinds were compared", len(seen))
	}
	if *update && !t.Failed() {
		writeColumns(t, recordedColumns)
	}
}

// findNow returns a time during the request for which our row equals the server's, or how they differ.
func findNow(p Printer, want serverRow, before, after time.Time) (time.Time, string) {
	var first string
	for now := before; ; now = now.Add(5 * time.Millisecond) {
		if now.After(after) {
			now = after
		}
		diff := diffRow(p, want.Object, now, want.Cells, want.Conditions)
		if diff == "" {
			return now, ""
		}
		if first == "" {
			first = diff
		}
		if now.Equal(after) {
			return now, first
		}
	}
}

// diffRow compares rows as encoded in JSON: 1 equals int64(1), but not "1".
func diffRow(p Printer, raw []byte, now time.Time, cells []any, conditions []metav1.TableRowCondition) string {
	row, err := p.Row(raw, now)
	if err != nil {
		return err.Error()
	}
	type wire struct {
		Cells      []any
		Conditions []metav1.TableRowCondition
	}
	return cmp.Diff(wire{throughJSON(cells), conditions}, wire{throughJSON(row.Cells), row.Conditions})
}

func throughJSON(cells []any) (out []any) {
	b, err := json.Marshal(cells)
	if err != nil {
		return []any{err.Error()}
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		return []any{err.Error()}
	}
	return out
}

// serverTable is a Table with undecoded cells.
type serverTable struct {
	Columns []metav1.TableColumnDefinition `json:"columnDefinitions"`
	Rows    []serverRow                    `json:"rows"`
}

type serverRow struct {
	Cells      []any                      `json:"cells"`
	Conditions []metav1.TableRowCondition `json:"conditions"`
	Object     json.RawMessage            `json:"object"`
}

func nameOf(raw []byte) string {
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &o); err != nil {
		return err.Error()
	}
	return o.Name
}

// withoutNoise removes fields that no cell uses and that differ from run to run.
func withoutNoise(t *testing.T, raw []byte) json.RawMessage {
	t.Helper()
	var o map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&o); err != nil {
		t.Fatal(err)
	}
	if meta, ok := o["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
		delete(meta, "uid")
		delete(meta, "resourceVersion")
	}
	return marshal(t, o)
}

// marshal encodes JSON without escaping < and >.
func marshal(t testing.TB, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

// recordColumns records the columns of each kind that has its own, and the default ones once.
func recordColumns(all map[string][]metav1.TableColumnDefinition, gvk schema.GroupVersionKind,
	columns []metav1.TableColumnDefinition) {
	switch {
	case gvk.Group == "table.test":
	case len(columns) == 2 && columns[1].Name == "Created At":
		all[defaultColumns] = columns
	default:
		all[gvk.GroupKind().String()] = columns
	}
}

// writeColumns writes columns.json, one column per line.
func writeColumns(t *testing.T, all map[string][]metav1.TableColumnDefinition) {
	t.Helper()
	if reflect.DeepEqual(all, builtinColumns()) {
		return
	}
	var kinds []string
	for k, columns := range all {
		var lines []string
		for _, c := range columns {
			lines = append(lines, "  "+string(marshal(t, c)))
		}
		kinds = append(kinds, fmt.Sprintf("%q: [\n%s\n]", k, strings.Join(lines, ",\n")))
	}
	slices.Sort(kinds)
	if err := os.WriteFile("columns.json", []byte("{\n"+strings.Join(kinds, ",\n")+"\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}
