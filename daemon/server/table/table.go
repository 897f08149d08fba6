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
	// Columns returns the columns in their order. The slice is the caller's.
	Columns() []metav1.TableColumnDefinition
	// Row returns the cells of the object with this JSON, with ages counted to now.
	Row(raw []byte, now time.Time) (Row, error)
}

// Row is what a table says of one object.
type Row struct {
	// Cells has strings, int64, float64, bool and nil, as the columns ask. The server gives an IPAddress
	// one cell more than it has columns, and so do we.
	Cells []any
	// Conditions say that the object has run its course: pods that ended have one.
	Conditions []metav1.TableRowCondition
}

// For returns the printer of a kind: with the columns of its own if it has some, else with its
// name and the time of its creation.
func For(gvk schema.GroupVersionKind) Printer {
	all := builtin()
	if p, ok := all[gvk]; ok {
		return p
	}
	return all[schema.GroupVersionKind{}]
}

// builtin has every printer by its kind, and under no kind the one of all others.
// It is made when it is first asked for, so that importing this package costs nothing.
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
	versions    []string // which have the fields that are printed in the same places
	make        func([]metav1.TableColumnDefinition) Printer
}

func (e entry) groupKind() string {
	return schema.GroupKind{Group: e.group, Kind: e.kind}.String()
}

// of says how the kind of the Go type T is printed. Without versions it is v1.
func of[T any](group, kind string, row func(*T, time.Time) Row, versions ...string) entry {
	if len(versions) == 0 {
		versions = []string{"v1"}
	}
	return entry{group, kind, versions, func(columns []metav1.TableColumnDefinition) Printer {
		return printer[T]{kind, columns, row}
	}}
}

// printer decodes an object and has its row made.
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

// unreadable keeps the decoder's words, which may quote the object, out of the text.
type unreadable struct {
	kind string
	err  error
}

// Error implements error.
func (e unreadable) Error() string {
	return fmt.Sprintf("make a table row of a %s: its JSON does not have the form of its kind; get the object itself "+
		"to see it", e.kind)
}

// Unwrap returns what the decoder said, for a caller who knows that it is no secret.
func (e unreadable) Unwrap() error { return e.err }

// cells makes a row without conditions.
func cells(c ...any) Row { return Row{Cells: c} }

func anyObject(o *metav1.PartialObjectMetadata, _ time.Time) Row {
	return cells(o.Name, o.CreationTimestamp.UTC().Format(time.RFC3339))
}

// columns.json was recorded from a server: its names, types and words are not ours to
// choose. The test that compares them with a real server's can record them again.
//
//go:embed columns.json
var columnsJSON []byte

// defaultColumns is the name, in columns.json, of the columns of all kinds that have none.
const defaultColumns = "default"

// builtinColumns has the columns by kind, written as "Kind.group".
func builtinColumns() map[string][]metav1.TableColumnDefinition {
	var all map[string][]metav1.TableColumnDefinition
	if err := json.Unmarshal(columnsJSON, &all); err != nil {
		panic(fmt.Sprintf("columns.json, which is part of this program, is broken: %v", err))
	}
	return all
}
