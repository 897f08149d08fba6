package table

import (
	_ "embed"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// Printer makes the rows of one kind.
type Printer interface {
	// Columns returns the columns. The caller may change the slice.
	Columns() []metav1.TableColumnDefinition
	// Row returns the cells of an object, given as JSON, with ages relative to now.
	Row(raw []byte, now time.Time) (Row, error)
}

// Row is the row of one object.
type Row struct {
	// Cells are strings, int64, float64, bool or nil, according to the columns. As at the server, an IPAddress has one
	// cell more than columns.
	Cells []any
	// Conditions are the row conditions: pods that have ended have one.
	Conditions []metav1.TableRowCondition
}

// For returns the printer of a kind, with its own columns if it has any, and otherwise with name and creation time.
func For(gvk schema.GroupVersionKind) Printer {
	all := builtin()
	if p, ok := all[gvk]; ok {
		return p
	}
	return all[schema.GroupVersionKind{}]
}

// builtin has the printers by kind, and that of all other kinds under the empty kind. It is made on first use, so that
// importing this package costs nothing.
var builtin = sync.OnceValue(func() map[schema.GroupVersionKind]Printer {
	columns := builtinColumns()
	all := map[schema.GroupVersionKind]Printer{
		{}: printer[metav1.PartialObjectMetadata]{kind: "object", columns: columns[defaultColumns], row: anyObject},
	}
	for _, family := range [][]entry{pods, workloads, autoscalers, core, events, network, storage, rbac, policies,
		admission, resources, system} {
		for _, e := range family {
			for _, v := range e.versions {
				all[schema.GroupVersionKind{Group: e.group, Version: v, Kind: e.kind}] = e.make(columns[e.groupKind()])
			}
		}
	}
	return all
})

// An entry is a kind with columns of its own.
type entry struct {
	group, kind string
	versions    []string // that have the printed fields at the same paths
	make        func([]metav1.TableColumnDefinition) Printer
}

func (e entry) groupKind() string {
	return schema.GroupKind{Group: e.group, Kind: e.kind}.String()
}

// of returns the entry for the kind of the Go type T. Without versions it is v1.
func of[T any](group, kind string, row func(*T, time.Time) Row, versions ...string) entry {
	if len(versions) == 0 {
		versions = []string{"v1"}
	}
	return entry{group, kind, versions, func(columns []metav1.TableColumnDefinition) Printer {
		return printer[T]{kind, columns, row}
	}}
}

// printer decodes objects and makes their rows.
type printer[T any] struct {
	kind    string
	columns []metav1.TableColumnDefinition
	row     func(*T, time.Time) Row
}

// Columns implements Printer.
func (p printer[T]) Columns() []metav1.TableColumnDefinition { return slices.Clone(p.columns) }

// Row implements Printer.
func (p printer[T]) Row(raw []byte, now time.Time) (Row, error) {
	var obj T
	if err := json.Unmarshal(raw, &obj); err != nil {
		return Row{}, unreadable{p.kind, err}
	}
	return p.row(&obj, now), nil
}

// unreadable is an error without the decoder's text, which may quote the object.
type unreadable struct {
	kind string
	err  error
}

// Error implements error.
func (e unreadable) Error() string {
	return fmt.Sprintf("make a table row of a %s: its JSON does not have the form of its kind; get the object itself "+
		"to see it", e.kind)
}

// Unwrap returns the decoder's error.
func (e unreadable) Unwrap() error { return e.err }

// cells makes a row without conditions.
func cells(c ...any) Row { return Row{Cells: c} }

func anyObject(o *metav1.PartialObjectMetadata, _ time.Time) Row {
	return cells(o.Name, o.CreationTimestamp.UTC().Format(time.RFC3339))
}

// columns.json was recorded from a real server. The test that compares the columns with a real server's can record it
// again.
//
//go:embed columns.json
var columnsJSON []byte

// defaultColumns is the key in columns.json for kinds without columns of their own.
const defaultColumns = "default"

// builtinColumns has the columns by kind, in the form "Kind.group".
func builtinColumns() map[string][]metav1.TableColumnDefinition {
	var all map[string][]metav1.TableColumnDefinition
	if err := json.Unmarshal(columnsJSON, &all); err != nil {
		panic(fmt.Sprintf("the embedded columns.json is invalid: %v", err))
	}
	return all
}
