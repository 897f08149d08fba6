package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// view shows the events of a watch. It keeps every object, so that after a relist it can show what was changed and
// deleted.
type view struct {
	c     *watchCommand
	a     *ask
	w     io.Writer
	grid  *grid    // of tables
	lines *aligned // of custom columns
	known map[string]*seen
}

// seen is the last shown state of an object.
type seen struct {
	meta metadata
	row  *row            // of a table
	raw  json.RawMessage // of another form
}

func (c *watchCommand) view(w io.Writer, a *ask) *view {
	v := &view{c: c, a: a, w: w, known: map[string]*seen{}}
	if c.table() {
		v.grid = newGrid(w, &c.outputFlags, a)
		v.grid.event, v.grid.labels, v.grid.labelColumns = c.events, c.showLabels, c.labelColumns
	}
	return v
}

// key identifies an object.
func (s *seen) key() string { return s.meta.Namespace + "/" + s.meta.Name }

// happened is one change to show.
type happened struct {
	what string
	*seen
}

// reconcile shows the differences between a list and what was shown before.
func (v *view) reconcile(found *result) error {
	if v.grid != nil {
		v.grid.use(found.Columns)
	}
	all, err := v.read(&found.page)
	if err != nil {
		return err
	}
	var out []happened
	still := make(map[string]*seen, len(all))
	for _, s := range all {
		still[s.key()] = s
		switch old := v.known[s.key()]; {
		case old == nil:
			out = append(out, happened{"ADDED", s})
		case old.meta.UID != s.meta.UID:
			out = append(out, happened{"DELETED", old}, happened{"ADDED", s})
		case old.meta.ownVersion() != s.meta.ownVersion():
			out = append(out, happened{"MODIFIED", s})
		}
	}
	var gone []happened
	for key, old := range v.known {
		if still[key] == nil {
			gone = append(gone, happened{"DELETED", old})
		}
	}
	slices.SortFunc(gone, func(a, b happened) int { return strings.Compare(a.key(), b.key()) })
	v.known = still
	return v.show(append(out, gone...))
}

// event shows one event and returns its version.
func (v *view) event(what string, object json.RawMessage) (version string, err error) {
	var p page
	if v.grid == nil {
		p.Items = []json.RawMessage{object}
	} else if err := json.Unmarshal(object, &p); err != nil {
		return "", fmt.Errorf("read an event: %w", err)
	}
	all, err := v.read(&p)
	if err != nil {
		return "", err
	}
	version = p.Metadata.ResourceVersion
	if v.grid != nil && what != "BOOKMARK" {
		v.grid.use(p.Columns)
	}
	var out []happened
	for _, s := range all {
		version = s.meta.ResourceVersion
		switch what {
		case "BOOKMARK":
			continue
		case "DELETED":
			delete(v.known, s.key())
		default:
			v.known[s.key()] = s
		}
		out = append(out, happened{what, s})
	}
	return version, v.show(out)
}

// read returns the objects of a page.
func (v *view) read(p *page) (all []*seen, err error) {
	for i := range p.Rows {
		all = append(all, &seen{meta: p.Rows[i].Object.Metadata, row: &p.Rows[i]})
	}
	for _, item := range p.Items {
		var o struct {
			Metadata metadata `json:"metadata"`
		}
		if err := json.Unmarshal(item, &o); err != nil {
			return nil, fmt.Errorf("read an object of the answer: %w", err)
		}
		all = append(all, &seen{meta: o.Metadata, raw: item})
	}
	return all, nil
}

// show writes changes in the selected form.
func (v *view) show(changes []happened) error {
	if v.grid != nil {
		rows := make([][]string, len(changes))
		for i, h := range changes {
			rows[i] = v.grid.cells(h.what, h.row)
		}
		return v.grid.write(rows)
	}
	if v.c.form == asColumns {
		return v.columns(changes)
	}
	for _, h := range changes {
		if err := v.document(h); err != nil {
			return err
		}
	}
	return nil
}

// columns writes changes as rows of custom columns.
func (v *view) columns(changes []happened) error {
	var rows [][]string
	add := func(event string, cells []string) {
		if v.c.events {
			cells = append([]string{event}, cells...)
		}
		rows = append(rows, cells)
	}
	if v.lines == nil && len(changes) > 0 {
		v.lines = &aligned{w: v.w}
		if !v.c.noHeaders {
			add("EVENT", heads(v.c.columns))
		}
	}
	for _, h := range changes {
		obj, err := restore(v.a.mapping, h.raw)
		if err != nil {
			return err
		}
		add(h.what, cellsOf(v.c.columns, obj))
	}
	if len(rows) == 0 {
		return nil
	}
	return v.lines.write(rows)
}

func (v *view) document(h happened) error {
	obj, err := restore(v.a.mapping, h.raw)
	if err != nil {
		return err
	}
	if v.c.events && v.c.form == asName {
		if _, err := fmt.Fprintf(v.w, "%s ", h.what); err != nil {
			return err
		}
	} else if v.c.events {
		if !v.c.managedFields {
			obj.SetManagedFields(nil)
		}
		event := map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "WatchEvent", "type": h.what, "object": obj.Object}
		obj = &unstructured.Unstructured{Object: event}
	}
	if err := v.c.object(v.w, obj); err != nil {
		return err
	}
	if v.c.form == asPath || v.c.form == asTemplate {
		_, err = io.WriteString(v.w, "\n")
	}
	return err
}
