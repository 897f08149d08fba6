package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mirador-k8s/mirador/daemon/server"
)

const (
	// statusWidth is the width of the status on a terminal.
	statusWidth = 100
	// shownNames is how many resources with the same error are listed.
	shownNames = 10
)

// draw writes the report: a line for each cluster, then what is wrong, then the resources if requested. On a terminal
// it fits statusWidth columns.
func (c *statusCommand) draw(w io.Writer, r *server.Report, terminal bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "memory: %s resident, %s of heap\n", size(r.Memory.RSSBytes), size(r.Memory.HeapBytes))
	if d := r.Disk; d != nil {
		b.WriteString(diskLine(r))
	}
	b.WriteString("\n")
	if len(r.Clusters) == 0 {
		b.WriteString("there are no clusters; have one join with mirador clusters join NAME --kubeconfig FILE\n")
	} else if err := c.drawSummary(&b, r, terminal); err != nil {
		return err
	}
	for i := range r.Clusters {
		if lines := troubles(&r.Clusters[i]); len(lines) > 0 {
			fmt.Fprintf(&b, "\n%s\n", strings.Join(lines, "\n"))
		}
	}
	if c.all || c.form == asWide || len(c.clusters) > 0 {
		for i := range r.Clusters {
			if err := c.drawResources(&b, &r.Clusters[i], terminal); err != nil {
				return err
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// diskLine describes the data folder.
func diskLine(r *server.Report) string {
	d := r.Disk
	line := "disk: " + size(uint64(max(d.Bytes, 0)))
	if d.MaxBytes > 0 {
		line += " of " + size(uint64(d.MaxBytes))
	}
	if d.HistoryPaused {
		line += ", no room for history"
	}
	if d.Error != "" {
		line += fmt.Sprintf("\nnothing is written to disk since %s: %s", since(r.Now, d.Since), clean(d.Error))
	}
	return line + "\n"
}

// drawSummary writes a line for each cluster.
func (c *statusCommand) drawSummary(w io.Writer, r *server.Report, terminal bool) error {
	rows := [][]string{{"CLUSTER", "STATE", "FOR", "SYNCED", "OBJECTS", "MEMORY", "VERSION"}}
	for i := range r.Clusters {
		cl := &r.Clusters[i]
		s := cl.Totals
		rows = append(rows, []string{cl.Name, cl.State, since(r.Now, cl.Since),
			fmt.Sprintf("%d/%d", s.Synced, s.Mirrored),
			strconv.Itoa(s.Objects), size(uint64(max(s.Bytes, 0))), orDash(clean(cl.Version))})
	}
	return c.fitted(w, rows, terminal)
}

// drawResources writes a line for each resource of a cluster.
func (c *statusCommand) drawResources(w io.Writer, cl *server.ClusterReport, terminal bool) error {
	if len(cl.Resources) == 0 {
		return nil
	}
	head := []string{"RESOURCE OF " + strings.ToUpper(cl.Name), "STATE", "HEARD", "OBJECTS", "MEMORY"}
	wide := c.form == asWide
	if wide {
		head = append(head, "EVENTS", "QUEUE", "HANDLERS", "ERROR")
	}
	rows := [][]string{head}
	for i := range cl.Resources {
		p := &cl.Resources[i]
		cells := []string{resourceName(p), stateOf(p), seconds(p.LastHeardSeconds), strconv.Itoa(p.Objects),
			size(uint64(max(p.Bytes, 0)))}
		if wide {
			cells = append(cells, strconv.FormatUint(p.Events, 10), strconv.Itoa(p.Queue), strconv.Itoa(p.Handlers),
				orDash(clean(p.Error)))
		}
		rows = append(rows, cells)
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return c.fitted(w, rows, terminal && !wide)
}

// fitted writes a table, and shortens the names in its first column if the table is too wide for a terminal.
func (c *statusCommand) fitted(w io.Writer, rows [][]string, terminal bool) error {
	widths := make([]int, len(rows[0]))
	for _, cells := range rows {
		for i, cell := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	rest := 0
	for _, n := range widths[1:] {
		rest += n + gap
	}
	if most := statusWidth - rest; terminal && widths[0] > most {
		for _, cells := range rows {
			cells[0] = shorten(cells[0], max(most, 12))
		}
	}
	return writeTable(w, c.noHeaders, rows[0], rows[1:])
}

// shorten omits the middle of a name, because names differ at the beginning or the end.
func shorten(name string, most int) string {
	r := []rune(name)
	if len(r) <= most {
		return name
	}
	end := (most - 1) / 2
	return string(r[:most-1-end]) + "…" + string(r[len(r)-end:])
}

// stateOf returns the state of a resource.
func stateOf(p *server.ResourceReport) string {
	if p.Synced {
		return p.State
	}
	return p.State + ", not synced"
}

// troubles returns what is wrong with a cluster, in lines that fit: the error of its health, and the failing
// resources, grouped by their error.
func troubles(cl *server.ClusterReport) (lines []string) {
	if cl.Error != "" {
		lines = wrap(fmt.Sprintf("%s is %s: %s", cl.Name, cl.State, clean(cl.Error)), "  ")
	}
	type trouble struct{ state, why string }
	found := map[trouble][]string{}
	var order []trouble
	for i := range cl.Resources {
		p := &cl.Resources[i]
		if p.Synced && p.Error == "" {
			continue
		}
		t := trouble{stateOf(p), clean(p.Error)}
		if found[t] == nil {
			order = append(order, t)
		}
		found[t] = append(found[t], resourceName(p))
	}
	slices.SortStableFunc(order, func(a, b trouble) int { return cmp.Compare(len(found[b]), len(found[a])) })
	if len(order) > 0 && len(lines) == 0 {
		lines = append(lines, fmt.Sprintf("%s is %s:", cl.Name, cl.State))
	}
	for _, t := range order {
		names := found[t]
		text := fmt.Sprintf("%d %s", len(names), t.state)
		if t.why != "" {
			text += ": " + t.why
		}
		lines = append(lines, wrap("  "+text, "    ")...)
		more := ""
		if left := len(names) - shownNames; left > 0 {
			names, more = names[:shownNames], fmt.Sprintf(" and %d more; mirador status --cluster %s shows all", left, cl.Name)
		}
		lines = append(lines, wrap("    "+strings.Join(names, ", ")+more, "    ")...)
	}
	return lines
}

// wrap breaks a text between words so that it fits. Every line except the first is indented.
func wrap(text, indent string) (lines []string) {
	line := text[:len(text)-len(strings.TrimLeft(text, " "))]
	begun := false
	for _, word := range strings.Fields(text) {
		if begun && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > statusWidth {
			lines, line, begun = append(lines, line), indent, false
		}
		if begun {
			line += " "
		}
		line, begun = line+word, true
	}
	return append(lines, line)
}
