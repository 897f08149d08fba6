package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/server"
)

func newCount() *cobra.Command {
	c := &readCommand{}
	cmd := &cobra.Command{
		Use:   "count RESOURCE[,RESOURCE…] [NAME…]",
		Short: "Count objects",
		Long: `Count objects of one resource or of several. Of one resource in one cluster it prints a number; of several
clusters, the number of each and of all together, as they were at one moment.`,
		Example: `  mirador count pods -A
  mirador count pods -A --cluster eu --field-selector status.phase=Pending
  mirador count deployments,statefulsets -A --where 'spec.replicas == 0'
  mirador count pods -A -o json`,
		Args: takes(1, -1, "a resource and any number of names"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.parse(); err != nil {
				return err
			}
			s, asks, err := c.begin(cmd.Context(), args, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer s.close()
			return c.count(cmd.Context(), s, asks, cmd.OutOrStdout())
		},
	}
	c.flags(cmd, asName, asWide, asTemplate, asColumns)
	return cmd
}

// counted is the result for one resource.
type counted struct {
	Resource string        `json:"resource"`
	Total    int64         `json:"total"`
	Clusters []clusterSize `json:"clusters,omitempty"`
}

type clusterSize struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

func (c *readCommand) count(ctx context.Context, s *session, asks []*ask, w io.Writer) error {
	var all []*counted
	for _, a := range asks {
		n, err := c.countOne(ctx, s, a)
		if err != nil {
			return fmt.Errorf("count %s: %w", a.gvr.Resource, err)
		}
		all = append(all, n)
	}
	return c.showCount(w, all)
}

func (c *readCommand) countOne(ctx context.Context, s *session, a *ask) (*counted, error) {
	out := &counted{Resource: a.gvr.GroupResource().String()}
	if !a.fleet {
		n, _, err := s.count(ctx, a, a.params)
		out.Total = n
		return out, err
	}
	clusters, err := c.clustersOf(ctx, s, a.gvr)
	if err != nil {
		return nil, err
	}
	sizes, err := s.countEach(ctx, a, clusters)
	if err != nil {
		return nil, err
	}
	for _, name := range clusters {
		out.Clusters = append(out.Clusters, clusterSize{name, sizes[name]})
		out.Total += sizes[name]
	}
	return out, nil
}

// countEach counts in each cluster at one moment. The version of the fleet's lists changes with every change of the
// resource: if it is the same for all counts, nothing changed in between. If the resource changes all the time, one
// whole list is read instead.
func (s *session) countEach(ctx context.Context, a *ask, clusters []string) (map[string]int64, error) {
	for range restarts {
		sizes, same, err := s.countApart(ctx, a, clusters)
		if err != nil || same {
			return sizes, err
		}
	}
	found, err := s.list(ctx, a, acceptMetadata, 0)
	if err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	for _, m := range found.metas() {
		sizes[m.Annotations[clusterMark]]++
	}
	return sizes, nil
}

func (s *session) countApart(ctx context.Context, a *ask, clusters []string) (sizes map[string]int64,
	same bool, err error) {
	sizes = map[string]int64{}
	versions := map[string]bool{}
	// the first again, for the version at the end
	for _, name := range slices.Concat(clusters, clusters[:min(1, len(clusters))]) {
		params := maps.Clone(a.params)
		params.Set("clusters", name)
		n, version, err := s.count(ctx, a, params)
		if apierrors.IsNotFound(err) {
			continue // the cluster does not have this resource
		} else if err != nil {
			return nil, false, fmt.Errorf("of cluster %q: %w", name, err)
		}
		sizes[name] = n
		versions[version] = true
	}
	return sizes, len(versions) <= 1, nil
}

// clustersOf returns the named clusters, or all that the daemon has read. It warns about the others.
func (f *selectFlags) clustersOf(ctx context.Context, s *session, gvr schema.GroupVersionResource) ([]string, error) {
	_, _, named, err := f.prefix(s)
	if err != nil {
		return nil, err
	}
	r, err := s.report(ctx, true)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	var all []string
	var missing []server.ClusterReport
	for _, c := range r.Clusters {
		known[c.Name] = true
		if isRead(&c, gvr) {
			all = append(all, c.Name)
		} else {
			missing = append(missing, c)
		}
	}
	for _, n := range named {
		if !known[n] {
			return nil, notFound(fmt.Errorf("there is no cluster %q; mirador clusters shows what there is", n))
		}
	}
	switch {
	case len(named) > 0:
		return named, nil
	case len(all) == 0: // the daemon's answer to the request has the reason
		for _, c := range missing {
			all = append(all, c.Name)
		}
		return all, nil
	}
	for _, c := range missing {
		s.warning(fmt.Sprintf("cluster %s is not counted: it is %s, and its %s were never read", c.Name,
			c.State, gvr.Resource))
	}
	return all, nil
}

// isRead reports whether the objects of a resource in a cluster are known: they were read, or there is no such
// resource.
func isRead(c *server.ClusterReport, gvr schema.GroupVersionResource) bool {
	i := slices.IndexFunc(c.Resources, func(r server.ResourceReport) bool {
		return r.Group == gvr.Group && r.Version == gvr.Version && r.Resource == gvr.Resource
	})
	if i >= 0 {
		return c.Resources[i].Synced
	}
	return len(c.Resources) > 0
}

// count requests one object and the number of remaining ones. If the server does not return the number, count reads
// all pages.
func (s *session) count(ctx context.Context, a *ask, params url.Values) (n int64, version string, err error) {
	one := maps.Clone(params)
	one.Set("limit", "1")
	var p page
	if err := s.get(ctx, a.path, one, acceptMetadata, &p); err != nil {
		return 0, "", err
	}
	n, version = int64(len(p.Items)), p.Metadata.ResourceVersion
	switch {
	case p.Metadata.Continue == "":
		return n, version, nil
	case p.Metadata.RemainingItemCount != nil:
		return n + *p.Metadata.RemainingItemCount, version, nil
	}
	for try := 0; ; try++ {
		n, version, err = s.countPages(ctx, a.path, maps.Clone(params))
		if apierrors.IsResourceExpired(err) && try < restarts {
			continue
		}
		return n, version, err
	}
}

func (s *session) countPages(ctx context.Context, path string, params url.Values) (n int64,
	version string, err error) {
	params.Set("limit", strconv.Itoa(pageSize))
	for {
		var p page
		if err := s.get(ctx, path, params, acceptMetadata, &p); err != nil {
			return 0, "", err
		}
		n += int64(len(p.Items))
		if p.Metadata.Continue == "" {
			return n, p.Metadata.ResourceVersion, nil
		}
		params.Set("continue", p.Metadata.Continue)
	}
}

func (c *readCommand) showCount(w io.Writer, all []*counted) error {
	if !c.table() {
		var v any = all
		if len(all) == 1 {
			v = all[0]
		}
		v, err := plain(v)
		if err != nil {
			return err
		}
		return c.document(w, v)
	}
	if len(all) == 1 && len(all[0].Clusters) < 2 {
		_, err := fmt.Fprintln(w, all[0].Total)
		return err
	}
	return writeTable(w, c.noHeaders, countHead(all), countRows(all))
}

func countHead(all []*counted) []string {
	switch {
	case len(all) == 1:
		return []string{"CLUSTER", "COUNT"}
	case len(all[0].Clusters) == 0: // of one cluster, so its name is not shown
		return []string{"RESOURCE", "COUNT"}
	}
	return []string{"RESOURCE", "CLUSTER", "COUNT"}
}

func countRows(all []*counted) (rows [][]string) {
	for _, r := range all {
		add := func(cluster string, n int64) {
			var cells []string
			if len(all) > 1 {
				cells = append(cells, r.Resource)
			}
			if len(r.Clusters) > 0 {
				cells = append(cells, cluster)
			}
			rows = append(rows, append(cells, strconv.FormatInt(n, 10)))
		}
		for _, cl := range r.Clusters {
			add(cl.Name, cl.Count)
		}
		add("(all)", r.Total)
	}
	return rows
}
