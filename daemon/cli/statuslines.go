package cli

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/mirador-k8s/mirador/daemon/server"
)

// redraw replaces the previous report on the screen. It is written in one piece, so that it does not flicker, and each
// line erases the rest of the previous one.
func (c *statusCommand) redraw(w io.Writer, r *server.Report) error {
	var b bytes.Buffer
	if err := c.draw(&b, r, true); err != nil {
		return err
	}
	const home, eraseLine, eraseRest = "\x1b[H", "\x1b[K\n", "\x1b[J"
	out := append([]byte(home), bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte(eraseLine))...)
	_, err := w.Write(append(out, eraseRest...))
	return err
}

// statusLines shows reports as lines, one for every cluster and resource that has changed. A new age is not a change.
type statusLines struct {
	w    io.Writer
	last map[string]string
}

func (l *statusLines) show(r *server.Report) error {
	now := map[string]string{}
	var order []string
	note := func(key, text string) {
		now[key] = text
		order = append(order, key)
	}
	for i := range r.Clusters {
		c := &r.Clusters[i]
		note(c.Name, fmt.Sprintf("%s synced=%d/%d%s", c.State, c.Totals.Synced, c.Totals.Mirrored, because(c.Error)))
		for j := range c.Resources {
			p := &c.Resources[j]
			note(c.Name+" "+resourceName(p),
				fmt.Sprintf("%s synced=%t objects=%d events=%d queue=%d%s", p.State, p.Synced, p.Objects, p.Events,
					p.Queue, because(p.Error)))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(l.last)) {
		if _, ok := now[key]; !ok {
			note(key, "gone")
		}
	}
	for _, key := range order {
		if l.last[key] == now[key] {
			continue
		}
		if _, err := fmt.Fprintf(l.w, "%s %s %s\n", r.Now.Format(statusTime), key, now[key]); err != nil {
			return err
		}
	}
	maps.DeleteFunc(now, func(_, text string) bool { return text == "gone" })
	l.last = now
	return nil
}

func because(err string) string {
	if err == "" {
		return ""
	}
	return " error=" + fmt.Sprintf("%q", clean(err))
}
