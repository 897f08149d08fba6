package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/internal/jsondiff"
)

// diffCommand is diff.
type diffCommand struct {
	readCommand
	since, until string
	sinceGiven   bool
}

func newDiff() *cobra.Command {
	c := &diffCommand{}
	cmd := &cobra.Command{
		Use:   "diff [RESOURCE[,RESOURCE…] [NAME…]]",
		Short: "Show what is different between two moments",
		Long: `Show which objects were added (+), deleted (-) and changed (~) between two moments, and which of their fields
have other values. Without a resource, all resources are compared that have a history: in the namespace, or with -A
everywhere. Without --since it is the last hour, or as much of it as there is history of. The daemon must keep
history (serve --data DIR).`,
		Example: `  mirador diff -n shop --since 1h
  mirador diff deployments,configmaps -A --since 2026-11-17T10:00:00Z --until 2026-11-17T11:00:00Z
  mirador diff pods -n shop -l app=web --cluster eu --since 15m
  mirador diff -n shop --since 1d -o json`,
		Args: takes(0, -1, "a resource and any number of names, or nothing"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.parse(); err != nil {
				return err
			}
			c.sinceGiven = cmd.Flags().Changed("since")
			return c.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.flags(cmd, asName, asTemplate, asColumns)
	addSpan(cmd, &c.since, &c.until, "1h")
	return cmd
}

// differences is the output of diff.
type differences struct {
	Since string       `json:"since"`
	Until string       `json:"until"`
	Items []difference `json:"items"`
}

// difference is an object that is not the same at two moments.
type difference struct {
	Type      string            `json:"type"` // Added, Deleted or Changed
	Resource  string            `json:"resource"`
	Cluster   string            `json:"cluster,omitempty"`
	Namespace string            `json:"namespace,omitempty"`
	Name      string            `json:"name"`
	Changes   []jsondiff.Change `json:"changes,omitempty"`
}

func (c *diffCommand) run(ctx context.Context, args []string, w, warn io.Writer) error {
	now := time.Now()
	since, err := moment("since", c.since, now)
	until := ""
	if err == nil && c.until != "" {
		until, err = moment("until", c.until, now)
	}
	if err != nil {
		return err
	}
	if until != "" && !laterThan(until, since) {
		return usagef("--until %s is not after --since %s; swap them", c.until, c.since)
	}
	s, asks, err := c.beginDiff(ctx, args, warn)
	if err != nil {
		return err
	}
	defer s.close()
	defer s.holdWarnings()()
	out := &differences{Until: cmp.Or(until, now.UTC().Format(time.RFC3339Nano)), Items: []difference{}}
	var skipped error
	var gone []*ask
	forbidden := 0
	for _, a := range asks {
		some, from, err := c.compareFrom(ctx, s, a, since, until)
		switch {
		case err == nil:
			if out.Since == "" || laterThan(out.Since, from) {
				out.Since = from
			}
			out.Items = append(out.Items, some...)
			continue
		case len(args) == 0 && apierrors.IsForbidden(err):
			forbidden++
		case len(args) == 0 && apierrors.IsGone(err):
			gone = append(gone, a)
			s.warning(err.Error())
		case len(args) == 0 && hasNoHistory(err):
		default:
			return fmt.Errorf("compare %s: %w", a.gvr.Resource, err)
		}
		skipped = cmp.Or(skipped, err)
	}
	if out.Since == "" && skipped != nil {
		return c.nothingCompared(ctx, s, gone, skipped)
	}
	out.Since = cmp.Or(out.Since, since)
	if forbidden > 0 {
		s.warning(fmt.Sprintf("%d resources are left out, because this user may not list them", forbidden))
	}
	return c.showDifferences(w, s, out)
}

// compareFrom is compare, and returns the moment from which it has compared. Without --since that is the beginning of
// the history, if it is later.
func (c *diffCommand) compareFrom(ctx context.Context, s *session, a *ask, since,
	until string) (out []difference, from string, err error) {
	out, err = c.compare(ctx, s, a, since, until)
	if c.sinceGiven || !apierrors.IsGone(err) {
		return out, since, err
	}
	begin, unknown := s.historyBegin(ctx, a)
	if unknown != nil || until != "" && !laterThan(until, begin) {
		return nil, since, err
	}
	if out, err = c.compare(ctx, s, a, begin, until); err == nil {
		s.warning(fmt.Sprintf("the history of %s begins at %s; it is compared from then on", a.gvr.GroupResource(),
			timeText(begin)))
	}
	return out, begin, err
}

// nothingCompared returns the error if no resource could be compared. The warnings about each would say the same.
func (c *diffCommand) nothingCompared(ctx context.Context, s *session, gone []*ask, skipped error) error {
	latest := ""
	for _, a := range gone {
		if begin, err := s.historyBegin(ctx, a); err == nil && (latest == "" || laterThan(begin, latest)) {
			latest = begin
		}
	}
	if latest == "" {
		return skipped
	}
	s.dropWarnings()
	return fmt.Errorf("the history begins at %s; try --since %[1]s", timeText(latest))
}

// historyBegin returns when the history of a resource begins, of several clusters the latest.
func (s *session) historyBegin(ctx context.Context, a *ask) (string, error) {
	params := url.Values{"history": {"gaps"}}
	if clusters := a.params.Get("clusters"); clusters != "" {
		params.Set("clusters", clusters)
	}
	var list server.ChangeList
	err := s.get(ctx, a.path, params, acceptJSON, &list)
	return list.Begin, err
}

// beginDiff is begin; without arguments all resources are asked for.
func (c *diffCommand) beginDiff(ctx context.Context, args []string, warn io.Writer) (*session, []*ask, error) {
	if len(args) > 0 {
		return c.begin(ctx, args, warn)
	}
	if err := c.selectFlags.check(nil); err != nil {
		return nil, nil, err
	}
	s, err := c.readFlags.open(ctx, need{}, warn)
	if err != nil {
		return nil, nil, err
	}
	asks, err := c.everything(ctx, s)
	if err != nil {
		s.close()
		return nil, nil, err
	}
	return s, asks, nil
}

func (c *diffCommand) everything(ctx context.Context, s *session) (asks []*ask, err error) {
	prefix, _, _, err := c.selectFlags.prefix(s)
	if err != nil {
		return nil, err
	}
	cat, err := s.catalog(ctx, prefix)
	if err != nil {
		return nil, err
	}
	for _, r := range cat.resources() {
		gv, err := schema.ParseGroupVersion(r.APIVersion)
		if err != nil || !r.Namespaced && !c.all {
			continue
		}
		m, err := cat.describe(gv.WithResource(r.Name))
		if err != nil {
			return nil, err
		}
		a, err := c.selectFlags.ask(s, m, nil)
		if err != nil {
			return nil, err
		}
		asks = append(asks, a)
	}
	return asks, nil
}

// hasNoHistory reports whether no history is kept of a resource.
func hasNoHistory(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, c := range status.Status().Details.Causes {
		if c.Type == "NoHistory" {
			return true
		}
	}
	return false
}

// objectName is the name of an object in a list.
type objectName struct{ namespace, name string }

// compare finds the differences of a resource. It lists the metadata at both moments, and reads only the objects that
// have changed.
func (c *diffCommand) compare(ctx context.Context, s *session, a *ask, since,
	until string) (out []difference, err error) {
	before, err := s.metasAt(ctx, a, since)
	if err != nil {
		return nil, err
	}
	after, err := s.metasAt(ctx, a, until)
	if err != nil {
		return nil, err
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(after))
	slices.SortFunc(names, func(x, y objectName) int {
		return cmp.Or(strings.Compare(x.namespace, y.namespace), strings.Compare(x.name, y.name))
	})
	prefix, _, _, err := c.selectFlags.prefix(s)
	if err != nil {
		return nil, err
	}
	for _, n := range slices.Compact(names) {
		old, was := before[n]
		now, is := after[n]
		if was && (!is || old.UID != now.UID) {
			out = append(out, c.difference(s, a, "Deleted", &old))
		}
		if is && (!was || old.UID != now.UID) {
			out = append(out, c.difference(s, a, "Added", &now))
		}
		if !was || !is || old.UID != now.UID || old.ownVersion() == now.ownVersion() {
			continue
		}
		d := c.difference(s, a, "Changed", &now)
		path := resourcePath(prefix, a.mapping, n.namespace) + "/" + n.name
		if d.Changes, err = s.fieldsBetween(ctx, path, since, until); err != nil {
			return nil, err
		}
		if len(d.Changes) > 0 {
			out = append(out, d)
		}
	}
	return out, nil
}

func (c *diffCommand) difference(s *session, a *ask, what string, m *metadata) difference {
	cluster := m.Annotations[clusterMark]
	if cluster == "" && !a.fleet {
		if _, _, clusters, err := c.selectFlags.prefix(s); err == nil {
			cluster = clusters[0]
		}
	}
	return difference{Type: what, Resource: a.gvr.GroupResource().String(), Cluster: cluster, Namespace: m.ownNamespace(),
		Name: m.ownName()}
}

// metasAt lists the metadata of a resource at a moment; "" means now.
func (s *session) metasAt(ctx context.Context, a *ask, at string) (map[objectName]metadata, error) {
	moved := *a
	moved.params = maps.Clone(a.params)
	moved.set("at", at)
	found, err := s.list(ctx, &moved, acceptMetadata, 0)
	if err != nil {
		return nil, err
	}
	out := map[objectName]metadata{}
	for _, m := range found.metas() {
		out[objectName{m.Namespace, m.Name}] = m
	}
	return out, nil
}

// fieldsBetween returns the differences of an object between two moments. It has none if it is gone by now.
func (s *session) fieldsBetween(ctx context.Context, path, since, until string) ([]jsondiff.Change, error) {
	var states [2]json.RawMessage
	for i, at := range []string{since, until} {
		params := url.Values{}
		if at != "" {
			params.Set("at", at)
		}
		err := s.get(ctx, path, params, acceptJSON, &states[i])
		if apierrors.IsNotFound(err) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	changes, err := jsondiff.Objects(states[0], states[1])
	return slices.DeleteFunc(changes, func(c jsondiff.Change) bool {
		return strings.HasPrefix(c.Path, "/metadata/annotations/mirador.dev~1") // of /fleet
	}), err
}

func (c *diffCommand) showDifferences(w io.Writer, s *session, all *differences) error {
	if !c.table() {
		v, err := plain(all)
		if err != nil {
			return err
		}
		return c.document(w, v)
	}
	limit := maxFields
	if c.form == asWide {
		limit = 0
	}
	var b strings.Builder
	for i := range all.Items {
		d := &all.Items[i]
		mark := map[string]string{"Added": "+", "Deleted": "-", "Changed": "~"}[d.Type]
		name := d.Name
		if d.Namespace != "" {
			name = d.Namespace + "/" + name
		}
		fmt.Fprintf(&b, "%s %s %s %s\n", mark, clean(d.Resource), clean(d.Cluster), clean(name))
		for _, line := range fieldLines(d.Changes, limit) {
			fmt.Fprintf(&b, "    %s\n", line)
		}
	}
	if len(all.Items) == 0 {
		since := c.since
		if !c.sinceGiven {
			since = timeText(all.Since)
		}
		fmt.Fprintf(s.warn, "nothing is different since %s\n", since)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
