package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mirador-k8s/mirador/daemon/server"
)

// historyCommand is history.
type historyCommand struct {
	readCommand
	since, until string
}

func newHistory() *cobra.Command {
	c := &historyCommand{}
	cmd := &cobra.Command{
		Use:   "history RESOURCE/NAME | RESOURCE",
		Short: "Show what changed, when, and by whom",
		Long: `Show the changes of an object, or of all objects that are selected, oldest first: when the daemon saw each of
them, who made it as far as the managed fields of the object say, and which fields changed. A line across
marks a time in which the cluster was not watched. The daemon must keep history (serve --data DIR).

Of one object everything is shown that is kept, of several objects the last hour; --since and --until change that.`,
		Example: `  mirador history deploy/web -n shop --cluster eu
  mirador history pods -n shop --since 15m
  mirador history pods -A -l app=web --since 2026-11-17T10:00:00Z --until 2026-11-17T11:00:00Z
  mirador history cm settings -n shop --cluster eu -o yaml`,
		Args: takes(1, 2, "a resource and at most one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.parse(); err != nil {
				return err
			}
			if c.where != "" {
				return usagef("history has no --where; select with -l, --field-selector metadata.name=NAME or a name")
			}
			since, until, err := c.moments(time.Now())
			if err != nil {
				return err
			}
			s, a, err := c.beginOne(cmd.Context(), args, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer s.close()
			list, err := s.changes(cmd.Context(), a, since, until)
			if apierrors.IsNotFound(err) {
				return notFound(fmt.Errorf("%w, now or as far back as the history goes; look elsewhere with -n", err))
			} else if err != nil {
				return fmt.Errorf("read the history of %s: %w", a.gvr.Resource, err)
			}
			return c.showChanges(cmd.OutOrStdout(), s, a, list)
		},
	}
	c.flags(cmd, asName, asTemplate, asColumns)
	cobra.CheckErr(cmd.Flags().MarkHidden("where")) // it is refused with a hint
	addSpan(cmd, &c.since, &c.until, "")
	return cmd
}

// addSpan adds the flags of a time.
func addSpan(cmd *cobra.Command, since, until *string, otherwise string) {
	cmd.Flags().StringVar(since, "since", otherwise, "begin at this `time`: "+momentHelp+"1h or 2d")
	cmd.Flags().StringVar(until, "until", "", "end at this `time` (default: now)")
}

func (c *historyCommand) moments(now time.Time) (since, until string, err error) {
	if c.since != "" {
		since, err = moment("since", c.since, now)
	}
	if c.until != "" && err == nil {
		until, err = moment("until", c.until, now)
	}
	return since, until, err
}

// allTime is a moment before every history.
const allTime = "1970-01-01T00:00:00Z"

// changes reads the history of an object or of a selection.
func (s *session) changes(ctx context.Context, a *ask, since, until string) (*server.ChangeList, error) {
	switch {
	case len(a.names) > 1:
		return nil, usagef("history shows one name at a time, or all objects of a selection")
	case len(a.names) == 0:
		params := maps.Clone(a.params)
		params.Set("history", "true")
		return s.changePages(ctx, a.path, params, since, until)
	case a.fleet:
		return s.changesOfName(ctx, a, cmp.Or(since, allTime), until)
	}
	return s.changePages(ctx, a.path+"/"+a.names[0]+"/history", url.Values{}, cmp.Or(since, allTime), until)
}

// changesOfName reads the history of the objects of a name in several clusters. It first finds the clusters that have
// or had one: the changes of a list do not begin with what was there when the history began.
func (s *session) changesOfName(ctx context.Context, a *ask, since, until string) (*server.ChangeList, error) {
	type place struct{ cluster, namespace, name string }
	places := map[place]bool{}
	now, err := s.list(ctx, a, acceptMetadata, 0)
	if err != nil {
		return nil, err
	}
	for _, m := range now.metas() {
		places[place{m.Annotations[clusterMark], m.ownNamespace(), m.ownName()}] = true
	}
	if !a.params.Has("where") { // a name that no field selector can have
		params := maps.Clone(a.params)
		params.Set("history", "true")
		ever, err := s.changePages(ctx, a.path, params, allTime, "")
		if err != nil {
			return nil, err
		}
		for i := range ever.Items {
			places[place{ever.Items[i].Cluster, ever.Items[i].Namespace, ever.Items[i].Name}] = true
		}
	}
	var all *server.ChangeList
	for p := range places {
		path := resourcePath("/clusters/"+p.cluster, a.mapping, p.namespace) + "/" + p.name + "/history"
		one, err := s.changePages(ctx, path, url.Values{}, since, until)
		switch {
		case apierrors.IsNotFound(err): // its history has just ended
		case err != nil:
			return nil, err
		case all == nil:
			all = one
		default:
			all.Items, all.Gaps = append(all.Items, one.Items...), append(all.Gaps, one.Gaps...)
			maps.Copy(all.Begins, one.Begins)
			if laterThan(one.Begin, all.Begin) {
				all.Begin = one.Begin
			}
		}
	}
	if all == nil {
		return nil, apierrors.NewNotFound(a.gvr.GroupResource(), a.names[0])
	}
	slices.SortFunc(all.Items, func(x, y server.Change) int {
		switch {
		case laterThan(x.Time, y.Time):
			return 1
		case laterThan(y.Time, x.Time):
			return -1
		}
		return strings.Compare(x.Cluster, y.Cluster)
	})
	return all, nil
}

// changePages reads all pages of a history.
func (s *session) changePages(ctx context.Context, path string, params url.Values, since,
	until string) (*server.ChangeList, error) {
	if since != "" {
		params.Set("from", since)
	}
	if until != "" {
		params.Set("to", until)
	}
	all := &server.ChangeList{}
	for {
		var page server.ChangeList
		if err := s.get(ctx, path, params, acceptJSON, &page); err != nil {
			return nil, err
		}
		page.Items = append(all.Items, page.Items...)
		if len(all.Gaps) > 0 { // of the whole time, on the first page
			page.Gaps = all.Gaps
		}
		all = &page
		if page.Metadata.Continue == "" {
			return all, nil
		}
		params.Set("continue", page.Metadata.Continue)
	}
}

// maxFields is how many changed fields of a change are shown, without -o wide.
const maxFields = 12

func (c *historyCommand) showChanges(w io.Writer, s *session, a *ask, list *server.ChangeList) error {
	if !c.table() {
		v, err := plain(list)
		if err != nil {
			return err
		}
		return c.document(w, v)
	}
	limit := maxFields
	if c.form == asWide {
		limit = 0
	}
	one := len(a.names) == 1 && !a.fleet
	gaps := slices.Clone(list.Gaps)
	slices.SortFunc(gaps, func(x, y server.ChangeGap) int { return strings.Compare(x.From, y.From) })
	var rows [][]string // one with a single cell is a line across
	if !c.noHeaders {
		rows = append(rows, timelineRow(one, "TIME", "TYPE", "CLUSTER", "OBJECT", "BY", "CHANGE"))
	}
	for i := range list.Items {
		item := &list.Items[i]
		for len(gaps) > 0 && laterThan(item.Time, gaps[0].From) {
			rows, gaps = append(rows, []string{gapLine(&gaps[0], one)}), gaps[1:]
		}
		lines := fieldLines(item.Changes, limit)
		name := item.Name
		if item.Namespace != "" {
			name = item.Namespace + "/" + name
		}
		row := timelineRow(one, timeText(item.Time), item.Type, clean(item.Cluster), clean(name), byText(item.By), "")
		for n := 0; n == 0 || n < len(lines); n++ {
			if n > 0 {
				row = timelineRow(one, "", "", "", "", "", "")
			}
			if n < len(lines) {
				row[len(row)-1] = lines[n]
			}
			rows = append(rows, row)
		}
	}
	for i := range gaps {
		rows = append(rows, []string{gapLine(&gaps[i], one)})
	}
	if len(list.Items) == 0 {
		fmt.Fprintf(s.warn, "nothing changed%s; the history begins at %s\n", c.sinceText(a), list.Begin)
		if len(gaps) == 0 {
			return nil
		}
	}
	return writeTimeline(w, rows)
}

func (c *historyCommand) sinceText(a *ask) string {
	switch {
	case c.since != "":
		return " since " + c.since
	case len(a.names) > 0:
		return "" // in all the time that there is history of
	}
	return " since an hour ago"
}

// timelineRow leaves out what is the same in all rows for one object.
func timelineRow(one bool, when, what, cluster, name, by, change string) []string {
	if one {
		return []string{when, what, by, change}
	}
	return []string{when, what, cluster, name, by, change}
}

// writeTimeline writes rows in columns, and lines across as they are.
func writeTimeline(w io.Writer, rows [][]string) error {
	measured := aligned{w: io.Discard}
	cells := slices.DeleteFunc(slices.Clone(rows), func(r []string) bool { return len(r) == 1 })
	if err := measured.write(cells); err != nil {
		return err
	}
	out := aligned{w: w, widths: measured.widths}
	for _, row := range rows {
		if len(row) == 1 {
			if _, err := io.WriteString(w, row[0]+"\n"); err != nil {
				return err
			}
			continue
		}
		for len(row) > 1 && row[len(row)-1] == "" {
			row = row[:len(row)-1] // no spaces at the end of a line
		}
		if err := out.write([][]string{row}); err != nil {
			return err
		}
	}
	return nil
}

func gapLine(g *server.ChangeGap, one bool) string {
	of := ""
	if !one {
		of = " " + clean(g.Cluster)
	}
	if g.To == "" {
		return fmt.Sprintf("-----%s was not watched from %s on -----", of, timeText(g.From))
	}
	return fmt.Sprintf("-----%s was not watched from %s to %s -----", of, timeText(g.From), timeText(g.To))
}

// laterThan compares two times of an answer.
func laterThan(a, b string) bool {
	x, errX := time.Parse(time.RFC3339Nano, a)
	y, errY := time.Parse(time.RFC3339Nano, b)
	return errX == nil && errY == nil && x.After(y)
}

// timeText shortens a time of an answer to milliseconds, rounded up, so that --at with it shows the change.
func timeText(text string) string {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return clean(text)
	}
	if up := t.Truncate(time.Millisecond); up.Before(t) {
		t = up.Add(time.Millisecond)
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

func byText(by []server.ChangedBy) string {
	var names []string
	for _, b := range by {
		name := clean(b.Manager)
		if b.Subresource != "" {
			name += " (" + clean(b.Subresource) + ")"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
