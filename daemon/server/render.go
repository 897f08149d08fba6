package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server/table"
	"github.com/mirador-k8s/mirador/internal/jsonscan"
	"github.com/mirador-k8s/mirador/object"
)

// renderer encodes objects of one resource in one form. It must be used by one goroutine at a time.
type renderer struct {
	form    form
	fleet   *fleetShape // how /fleet shows the objects; nil for one cluster
	printer table.Printer
	own     bool // the printer was made for this renderer, so its rows must not be shared with others
	include metav1.IncludeObjectPolicy
	now     time.Time

	raw, shown []byte
}

// renderer returns a renderer for a request. A table has one header, so a table of the fleet has the columns of the
// first cluster in which the user may see something.
func (s *Server) renderer(req *request, v *view) *renderer {
	r := &renderer{form: req.form, fleet: v.shape, now: time.Now(), include: req.include}
	if req.isPast() {
		r.now = req.moment // the ages in Tables are those of then
	}
	if req.form == asTable {
		r.printer, r.own = s.printer(v.model)
	}
	return r
}

// clone returns a renderer for another goroutine.
func (r *renderer) clone() *renderer {
	c := *r
	c.raw, c.shown = nil, nil
	return &c
}

// show appends an object as the client sees it.
func (r *renderer) show(dst []byte, cluster string, e *fleet.Entry, version string) []byte {
	if r.fleet == nil {
		return fleet.Bytes(e, dst)
	}
	r.raw = fleet.Bytes(e, r.raw[:0])
	return appendForFleet(dst, r.raw, cluster, e.Key, version, r.fleet)
}

// item appends one object in the form of the request, alone or as an item of a list.
func (r *renderer) item(dst []byte, cluster string, e *fleet.Entry, version string, inList bool) ([]byte, error) {
	if r.form == whole {
		at := len(dst)
		dst = r.show(dst, cluster, e, version)
		if inList {
			dst = dst[:at+cutKind(dst[at:])]
		}
		return dst, nil
	}
	r.shown = r.show(r.shown[:0], cluster, e, version)
	if r.form == metadata {
		return appendPartial(dst, r.shown)
	}
	return r.row(dst, cluster, e.Key, r.shown)
}

const partialHead = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":`

// appendPartial appends an object's metadata as PartialObjectMetadata. The metadata of a built-in object is copied:
// the API server encodes it in the same way. That of a custom resource has another order of members and is encoded
// again.
func appendPartial(dst, obj []byte) ([]byte, error) {
	from, to, ok := jsonscan.Member(obj, "metadata")
	if !ok {
		return nil, fmt.Errorf("an object has no metadata")
	}
	meta := obj[from:to]
	if !bytes.HasPrefix(obj, []byte(`{"kind":`)) {
		// Metadata that cannot be decoded is copied: one malformed object must not break a list of many clusters.
		var typed metav1.ObjectMeta
		if json.Unmarshal(meta, &typed) == nil {
			if ordered, err := json.Marshal(typed); err == nil {
				meta = ordered
			}
		}
	}
	return append(append(append(dst, partialHead...), meta...), '}'), nil
}

// columns returns the columns of a table of these objects.
func (r *renderer) columns() []metav1.TableColumnDefinition {
	columns := r.printer.Columns()
	if r.fleet == nil {
		return columns
	}
	cluster := metav1.TableColumnDefinition{Name: "Cluster", Type: "string",
		Description: "The cluster that the object is in."}
	return append([]metav1.TableColumnDefinition{cluster}, columns...)
}

// plain reports whether the kind has only the default columns.
func (r *renderer) plain() bool {
	columns := r.printer.Columns()
	return len(columns) == 2 && columns[1].Name == "Created At"
}

// row appends one row of a table. If an object cannot be printed, its row has only the name: a malformed object of one
// cluster must not hide those of the others.
func (r *renderer) row(dst []byte, cluster string, key object.Key, obj []byte) ([]byte, error) {
	made, err := r.printer.Row(obj, r.now)
	if err != nil {
		_, name := key.Split()
		made = table.Row{Cells: make([]any, len(r.printer.Columns()))}
		made.Cells[0] = name
	}
	row := metav1.TableRow{Cells: made.Cells, Conditions: made.Conditions}
	if r.fleet != nil {
		row.Cells = append([]any{cluster}, row.Cells...)
	}
	switch r.include {
	case metav1.IncludeNone:
	case metav1.IncludeObject:
		row.Object = runtime.RawExtension{Raw: obj}
	default:
		if row.Object.Raw, err = appendPartial(nil, obj); err != nil {
			return nil, err
		}
	}
	b, err := json.Marshal(row)
	return append(dst, b...), err
}

// tableHead appends the beginning of a table, up to its rows.
func (r *renderer) tableHead(dst []byte, meta metav1.ListMeta, columns bool) ([]byte, error) {
	var defs []metav1.TableColumnDefinition
	if columns {
		defs = r.columns()
	}
	m, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	d, err := json.Marshal(defs)
	if err != nil {
		return nil, err
	}
	dst = append(append(dst, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":`...), m...)
	return append(append(append(dst, `,"columnDefinitions":`...), d...), `,"rows":[`...), nil
}

// cutKind removes kind and apiVersion from the beginning of an object, in place, as in the items of a built-in list,
// and returns the new length. Items of custom resources keep them: they are not at the beginning in this order.
func cutKind(obj []byte) int {
	if !bytes.HasPrefix(obj, []byte(`{"kind":"`)) {
		return len(obj)
	}
	i, _ := jsonscan.String(obj, len(`{"kind":`))
	if !bytes.HasPrefix(obj[i:], []byte(`,"apiVersion":"`)) {
		return len(obj)
	}
	i, _ = jsonscan.String(obj, i+len(`,"apiVersion":`))
	if i >= len(obj) || obj[i] != ',' {
		return len(obj)
	}
	return 1 + copy(obj[1:], obj[i+1:])
}
