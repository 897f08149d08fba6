package table

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
)

// Column is one of the additionalPrinterColumns of a version of a CustomResourceDefinition, with the same JSON.
type Column struct {
	// Name is the header of the column.
	Name string `json:"name"`
	// Type is integer, number, string, boolean or date.
	Type string `json:"type"`
	// Format is a hint for clients, as in OpenAPI.
	Format string `json:"format,omitempty"`
	// Description explains the column.
	Description string `json:"description,omitempty"`
	// Priority is 0 for columns that are always shown, and higher for wide ones.
	Priority int32 `json:"priority,omitempty"`
	// JSONPath is the path of the value in the object, such as ".spec.size".
	JSONPath string `json:"jsonPath"`
}

// Definitions come from clusters, which are not trusted. These limits bound the work that one can cause.
const (
	maxColumns  = 128
	maxPathSize = 2048
	maxDepth    = 100 // of an object that a path with .. searches
)

// ForCRD returns the printer of a custom resource: its name and the given columns, or its age if there are none. An
// invalid column is an error. API servers refuse most invalid definitions; the others can be printed with ForCRD(nil).
func ForCRD(columns []Column) (Printer, error) {
	if len(columns) > maxColumns {
		return nil, fmt.Errorf("make the columns of a custom resource: there are %d, and at most %d are printed",
			len(columns), maxColumns)
	}
	standard := builtinStandard()
	if len(columns) == 0 {
		columns = []Column{{Name: "Age", Type: "date", Description: standard[1].Description,
			JSONPath: ".metadata.creationTimestamp"}}
	}
	p := &custom{
		columns: []metav1.TableColumnDefinition{standard[0]},
		specs:   slices.Clone(columns),
		deep:    make([]bool, len(columns)),
	}
	for i, c := range p.specs {
		var err error
		if p.deep[i], err = checkColumn(c); err != nil {
			return nil, fmt.Errorf("make column %d of a custom resource: %w", i+1, err)
		}
		p.columns = append(p.columns, metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Format: c.Format,
			Priority:    c.Priority,
			Description: or(c.Description, "Custom resource definition column (in JSONPath format): "+c.JSONPath)})
	}
	return p, nil
}

// builtinStandard has the columns of every object: its name and its creation time.
var builtinStandard = sync.OnceValue(func() []metav1.TableColumnDefinition { return builtinColumns()[defaultColumns] })

// checkColumn returns whether the column's path searches at all depths, or an error if the column is invalid.
func checkColumn(c Column) (deep bool, err error) {
	if !slices.Contains([]string{"integer", "number", "string", "boolean", "date"}, c.Type) {
		return false, fmt.Errorf("its type %.40q is none of integer, number, string, boolean and date", c.Type)
	}
	if len(c.JSONPath) > maxPathSize {
		return false, fmt.Errorf("its JSONPath has %d bytes, and at most %d are followed", len(c.JSONPath), maxPathSize)
	}
	parsed, err := jsonpath.Parse("column", "{"+c.JSONPath+"}")
	if err != nil {
		return false, fmt.Errorf("its JSONPath %.100q cannot be read: %w", c.JSONPath, err)
	}
	n := multipliers(parsed.Root)
	if n > 1 {
		return false, fmt.Errorf("its JSONPath %.100q has %d of .. and [,], which multiply each other; at most one is "+
			"followed", c.JSONPath, n)
	}
	return n == 1, nil
}

// multipliers counts the steps that can yield a value more than once. With two of them, a short path over a small
// object can take very long.
func multipliers(n jsonpath.Node) (count int) {
	switch n := n.(type) {
	case *jsonpath.ListNode:
		for _, c := range n.Nodes {
			count += multipliers(c)
		}
	case *jsonpath.FilterNode:
		count = multipliers(n.Left) + multipliers(n.Right)
	case *jsonpath.UnionNode:
		count = 1
		for _, c := range n.Nodes {
			count += multipliers(c)
		}
	case *jsonpath.RecursiveNode:
		count = 1
	}
	return count
}

// custom prints a custom resource.
type custom struct {
	columns []metav1.TableColumnDefinition
	specs   []Column
	deep    []bool    // whether each path searches at all depths
	idle    sync.Pool // of *search
}

// search has the parsed paths of the columns. A path has state while it is evaluated, so a search serves one row at a
// time.
type search struct{ paths []*jsonpath.JSONPath }

// Columns implements Printer.
func (p *custom) Columns() []metav1.TableColumnDefinition { return slices.Clone(p.columns) }

// Row implements Printer.
func (p *custom) Row(raw []byte, now time.Time) (Row, error) {
	var obj map[string]any
	if err := json.Unmarshal(raw, &obj); err != nil {
		return Row{}, unreadable{"custom resource", err}
	}
	s, err := p.search()
	if err != nil {
		return Row{}, err
	}
	defer p.idle.Put(s)
	meta, _ := obj["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	row := cells(name)
	tooDeep := slices.Contains(p.deep, true) && deeper(obj, maxDepth)
	for i, c := range p.specs {
		var cell any
		if !p.deep[i] || !tooDeep {
			cell = customCell(c.Type, s.paths[i], obj, now)
		}
		row.Cells = append(row.Cells, cell)
	}
	return row, nil
}

// search returns a search that no other goroutine uses.
func (p *custom) search() (*search, error) {
	if s, ok := p.idle.Get().(*search); ok {
		return s, nil
	}
	s := &search{make([]*jsonpath.JSONPath, len(p.specs))}
	for i, c := range p.specs {
		s.paths[i] = jsonpath.New(c.Name).AllowMissingKeys(true)
		if err := s.paths[i].Parse("{" + c.JSONPath + "}"); err != nil {
			return nil, fmt.Errorf("read the JSONPath of column %d again: %w", i+1, err)
		}
	}
	return s, nil
}

// deeper reports whether a value is nested deeper than the limit.
func deeper(v any, limit int) bool {
	if limit < 0 {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for _, c := range v {
			if deeper(c, limit-1) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(c any) bool { return deeper(c, limit-1) })
	}
	return false
}

// customCell returns the first value that the path finds, or nil if it is not of the column's type.
func customCell(kind string, path *jsonpath.JSONPath, obj map[string]any, now time.Time) any {
	found, err := path.FindResults(obj)
	if err != nil || len(found) == 0 || len(found[0]) == 0 || !found[0][0].IsValid() || !found[0][0].CanInterface() {
		return nil
	}
	value := found[0][0].Interface()
	if kind == "string" {
		// Only string columns print values of other types, in the format of JSONPath.
		var text bytes.Buffer
		if path.PrintResults(&text, []reflect.Value{reflect.ValueOf(value)}) != nil {
			return nil
		}
		return text.String()
	}
	switch v := value.(type) {
	case int64:
		switch kind {
		case "integer":
			return v
		case "number":
			return float64(v)
		}
	case float64:
		switch {
		case kind == "number":
			return v
		case kind == "integer" && v >= math.MinInt64 && v < math.MaxInt64:
			return int64(v)
		case kind == "integer":
			return int64(math.MinInt64) // the result of a server on amd64 for a number that does not fit
		}
	case bool:
		if kind == "boolean" {
			return v
		}
	case string:
		if kind == "date" {
			return customDate(v, now)
		}
	}
	return nil
}

func customDate(text string, now time.Time) any {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "<invalid>"
	}
	return age(metav1.NewTime(t), now)
}
