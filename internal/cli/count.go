package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mirador-k8s/mirador/server"
)

func newCount() *cobra.Command {
	c := &readCommand{}
	cmd := &cobra.Command{
		Use:   "count RESOURCE [NAME…]",
		Short: "Count objects of one resource",
		Long: `Count objects of one resource. Of one cluster it prints a number; of several, the number of each
and of all together.`,
		Example: `  mirador count pods -A
  mirador count pods -A --cluster eu --field-selector status.phase=Pending
  mirador count deployments -A --where 'spec.replicas == 0' -o json`,
		Args: takes(1, -1, "a resource and any number of names"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.parse(asName, asPath, asWide); err != nil {
				return err
			}
			s, a, err := c.begin(cmd.Context(), args, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer s.close()
			return c.count(cmd.Context(), s, a, cmd.OutOrStdout())
		},
	}
	c.flags(cmd)
	return cmd
}

// counted is what count has found.
type counted struct {
	Total    int64         `json:"total"`
	Clusters []clusterSize `json:"clusters,omitempty"`
}

type clusterSize struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

func (c *readCommand) count(ctx context.Context, s *session, a *ask, w io.Writer) error {
	var out counted
	if !a.fleet {
		n, err := s.count(ctx, a, a.params)
		if err != nil {
			return fmt.Errorf("count %s: %w", a.gvr.Resource, err)
		}
		out.Total = n
		return c.showCount(w, &out, false)
	}
	clusters, err := c.clustersOf(ctx, s)
	if err != nil {
		return fmt.Errorf("count %s: %w", a.gvr.Resource, err)
	}
	for _, name := range clusters {
		params := maps.Clone(a.params)
		params.Set("clusters", name)
		n, err := s.count(ctx, a, params)
		if apierrors.IsNotFound(err) {
			n, err = 0, nil // this cluster has no such resource
		}
		if err != nil {
			return fmt.Errorf("count %s of cluster %q: %w", a.gvr.Resource, name, err)
		}
		out.Clusters = append(out.Clusters, clusterSize{name, n})
		out.Total += n
	}
	return c.showCount(w, &out, len(clusters) > 1)
}

// clustersOf are those that are meant: the named ones, or all.
func (f *selectFlags) clustersOf(ctx context.Context, s *session) ([]string, error) {
	_, _, named, err := f.prefix(s)
	if err != nil {
		return nil, err
	}
	var r server.Report
	if err := s.get(ctx, "/clusters", nil, acceptJSON, &r); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	var all []string
	for _, c := range r.Clusters {
		known[c.Name] = true
		all = append(all, c.Name)
	}
	for _, n := range named {
		if !known[n] {
			return nil, notFound(fmt.Errorf("there is no cluster %q; mirador clusters shows what there is", n))
		}
	}
	if len(named) > 0 {
		return named, nil
	}
	return all, nil
}

// count asks for one object and how many there are besides. Where the server cannot say that without
// looking at all of them, it pages through.
func (s *session) count(ctx context.Context, a *ask, params url.Values) (int64, error) {
	one := maps.Clone(params)
	one.Set("limit", "1")
	var p page
	if err := s.get(ctx, a.path, one, acceptMetadata, &p); err != nil {
		return 0, err
	}
	n := int64(len(p.Items))
	switch {
	case p.Metadata.Continue == "":
		return n, nil
	case p.Metadata.RemainingItemCount != nil:
		return n + *p.Metadata.RemainingItemCount, nil
	}
	for try := 0; ; try++ {
		n, err := s.countPages(ctx, a.path, maps.Clone(params))
		if apierrors.IsResourceExpired(err) && try < restarts {
			continue
		}
		return n, err
	}
}

func (s *session) countPages(ctx context.Context, path string, params url.Values) (n int64, err error) {
	params.Set("limit", strconv.Itoa(pageSize))
	for {
		var p page
		if err := s.get(ctx, path, params, acceptMetadata, &p); err != nil {
			return 0, err
		}
		n += int64(len(p.Items))
		if p.Metadata.Continue == "" {
			return n, nil
		}
		params.Set("continue", p.Metadata.Continue)
	}
}

func (c *readCommand) showCount(w io.Writer, out *counted, several bool) error {
	if !c.table() {
		v, err := plain(out)
		if err != nil {
			return err
		}
		return c.document(w, v)
	}
	if !several {
		_, err := fmt.Fprintln(w, out.Total)
		return err
	}
	var rows [][]string
	for _, cl := range out.Clusters {
		rows = append(rows, []string{cl.Name, strconv.FormatInt(cl.Count, 10)})
	}
	rows = append(rows, []string{"(all)", strconv.FormatInt(out.Total, 10)})
	return writeTable(w, c.noHeaders, []string{"CLUSTER", "COUNT"}, rows)
}
