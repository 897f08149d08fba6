package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// gap is the space between two columns.
const gap = 3

// aligned writes rows of cells in columns. It keeps the widths, so that later rows are aligned with earlier ones.
type aligned struct {
	w      io.Writer
	widths []int
}

// write writes rows together.
func (a *aligned) write(rows [][]string) error {
	for _, cells := range rows {
		for i, c := range cells {
			if i == len(a.widths) {
				a.widths = append(a.widths, 0)
			}
			a.widths[i] = max(a.widths[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	for _, cells := range rows {
		for i, c := range cells {
			b.WriteString(c)
			if i < len(cells)-1 {
				b.WriteString(strings.Repeat(" ", a.widths[i]-utf8.RuneCountInString(c)+gap))
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(a.w, b.String())
	return err
}

// clean removes control characters and line breaks, so that a text of a cluster cannot control the terminal.
func clean(s string) string {
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		s = s[:i] + "..."
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return '?'
		}
		return r
	}, s)
}

// cellText formats a cell of a Table.
func cellText(v any) string {
	switch v := v.(type) {
	case nil:
		return "<none>"
	case string:
		return clean(v)
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return clean(string(b))
}

// grid shows the rows of Tables.
type grid struct {
	out          aligned
	wide         bool
	heads        bool     // not written yet
	namespace    bool     // a column of namespaces
	event        bool     // a column of event types
	prefix       string   // before names
	labels       bool     // a column of all labels
	labelColumns []string // columns of one label each
	columns      []metav1.TableColumnDefinition
}

// newGrid returns a grid for a form.
func newGrid(w io.Writer, o *outputFlags, a *ask) *grid {
	return &grid{out: aligned{w: w}, wide: o.form == asWide, heads: !o.noHeaders, namespace: a.all && a.namespaced}
}

// use sets the columns, if there are any.
func (g *grid) use(columns []metav1.TableColumnDefinition) {
	if len(columns) > 0 {
		g.columns = columns
	}
}

func (g *grid) shows(i int) bool {
	return i < len(g.columns) && (g.wide || g.columns[i].Priority == 0)
}

// first is the number of columns before the namespace: the one of clusters.
func (g *grid) first() int {
	if len(g.columns) > 0 && g.columns[0].Name == "Cluster" {
		return 1
	}
	return 0
}

func (g *grid) head() []string {
	var cells []string
	if g.event {
		cells = append(cells, "EVENT")
	}
	for i, c := range g.columns {
		if g.namespace && i == g.first() {
			cells = append(cells, "NAMESPACE")
		}
		if g.shows(i) {
			cells = append(cells, strings.ToUpper(clean(c.Name)))
		}
	}
	for _, l := range g.labelColumns {
		_, name, ok := strings.Cut(l, "/")
		if !ok {
			name = l
		}
		cells = append(cells, strings.ToUpper(clean(name)))
	}
	if g.labels {
		cells = append(cells, "LABELS")
	}
	return cells
}

// cells returns the cells of a row.
func (g *grid) cells(event string, r *row) []string {
	var cells []string
	if g.event {
		cells = append(cells, event)
	}
	for i, c := range r.Cells {
		if g.namespace && i == g.first() {
			cells = append(cells, clean(r.Object.Metadata.ownNamespace()))
		}
		if text := cellText(c); g.shows(i) && i == g.first() {
			cells = append(cells, g.prefix+text)
		} else if g.shows(i) {
			cells = append(cells, text)
		}
	}
	for _, l := range g.labelColumns {
		cells = append(cells, clean(r.Object.Metadata.Labels[l]))
	}
	if g.labels {
		cells = append(cells, labelsText(r.Object.Metadata.Labels))
	}
	return cells
}

// labelsText formats labels for one cell.
func labelsText(set map[string]string) string {
	if len(set) == 0 {
		return "<none>"
	}
	return clean(labels.FormatLabels(set))
}

// write writes rows, and the heads before the first row.
func (g *grid) write(rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	if g.heads {
		g.heads = false
		rows = append([][]string{g.head()}, rows...)
	}
	return g.out.write(rows)
}

// writeTable writes a table that does not come from the server.
func writeTable(w io.Writer, noHeaders bool, head []string, rows [][]string) error {
	if !noHeaders {
		rows = append([][]string{head}, rows...)
	}
	out := aligned{w: w}
	return out.write(rows)
}

// size formats a number of bytes.
func size(n uint64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}
