package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// readCommand is what get, watch and count have in common.
type readCommand struct {
	readFlags
	selectFlags
	outputFlags
}

// flags adds those of the three that a command has.
func (c *readCommand) flags(cmd *cobra.Command) {
	c.readFlags.add(cmd)
	c.selectFlags.add(cmd, &c.readFlags)
	c.outputFlags.add(cmd)
	cmd.ValidArgsFunction = c.completeObjects
}

// begin opens a session and makes the request.
func (c *readCommand) begin(ctx context.Context, args []string, warn io.Writer) (*session, *ask, error) {
	resource, names, err := splitNames(args)
	if err != nil {
		return nil, nil, err
	}
	if err := c.selectFlags.check(names); err != nil {
		return nil, nil, err
	}
	s, err := c.readFlags.open(ctx, need{resource: resource}, warn)
	if err != nil {
		return nil, nil, err
	}
	a, err := c.resolve(ctx, s, resource, names)
	if err != nil {
		s.close()
		return nil, nil, err
	}
	return s, a, nil
}

// resolve finds the resource at the server and makes the request.
func (c *readCommand) resolve(ctx context.Context, s *session, resource string, names []string) (*ask, error) {
	prefix, _, _, err := c.selectFlags.prefix(s)
	if err != nil {
		return nil, err
	}
	cat, err := s.catalog(ctx, prefix)
	if err != nil {
		return nil, err
	}
	m, err := cat.find(ctx, resource)
	if err != nil {
		return nil, err
	}
	return c.selectFlags.ask(s, m, names)
}

// catalog asks what is served below a prefix.
func (s *session) catalog(ctx context.Context, prefix string) (*catalog, error) {
	if prefix != "/fleet" { // a cluster that is not there has a better word than "not found" for it
		var ignored json.RawMessage
		err := s.get(ctx, prefix, nil, acceptJSON, &ignored)
		if apierrors.IsNotFound(err) {
			return nil, notFound(fmt.Errorf("%w; mirador clusters shows what there is", err))
		} else if err != nil {
			return nil, err
		}
	}
	dc, err := s.discover(prefix)
	if err != nil {
		return nil, fmt.Errorf("ask %s what it serves: %w", s.base.Host, err)
	}
	cat, err := readCatalog(ctx, dc)
	if err != nil {
		return nil, fmt.Errorf("ask %s what it serves: %w", s.base.Host, ofDaemon(err))
	}
	return cat, nil
}

func newGet() *cobra.Command {
	c := &readCommand{selectFlags: selectFlags{sortable: true, limitable: true}}
	cmd := &cobra.Command{
		Use:   "get RESOURCE [NAME…]",
		Short: "Show objects of one resource, in one cluster or in all",
		Long: `Show objects of one resource. A resource is named as for kubectl: pods, pod, po,
deployments.apps, or RESOURCE/NAME. Over several clusters, -n web is that namespace in each of them and
-n eu.web in one; a name without a namespace may have its cluster in front, as in eu:node-1.

They come from a daemon: --server, else $MIRADOR_SERVER, else the one of this machine. With
--kubeconfig or --context, and where no daemon answers, this command mirrors that resource itself for
as long as it takes.`,
		Example: `  mirador get pods -A                                     # of all clusters
  mirador get deploy web -n shop --cluster eu -o yaml
  mirador get pods -A --where 'status.phase != "Running"' --sort-by metadata.creationTimestamp
  mirador get nodes --kubeconfig ~/.kube/config --context eu   # no daemon needed
  mirador get pods -n web -o jsonpath='{.items[*].metadata.name}'`,
		Args: takes(1, -1, "a resource and any number of names"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.parse(); err != nil {
				return err
			}
			s, a, err := c.begin(cmd.Context(), args, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer s.close()
			return c.get(cmd.Context(), s, a, cmd.OutOrStdout())
		},
	}
	c.flags(cmd)
	return cmd
}

// get shows a list.
func (c *readCommand) get(ctx context.Context, s *session, a *ask, w io.Writer) error {
	if c.table() && !a.all && len(a.names) == 0 {
		a.params.Set("includeObject", "None") // rows say all that is shown
	}
	found, err := s.list(ctx, a, c.accept(), c.limit)
	if err != nil {
		return fmt.Errorf("get %s: %w", a.gvr.Resource, err)
	}
	metas, err := c.show(w, a, found)
	if err != nil {
		return err
	}
	if found.more {
		fmt.Fprintf(s.warn, "there are more%s; raise --limit to see them\n", leftText(found.left))
	}
	if missing := a.missing(metas); len(missing) > 0 {
		return a.errMissing(missing)
	}
	if found.len() == 0 && c.table() {
		fmt.Fprintln(s.warn, nothingFound(a, c.namespaceOr(s)))
	}
	return nil
}

func leftText(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d)", n)
}

func (f *selectFlags) namespaceOr(s *session) string {
	if f.namespace != "" {
		return f.namespace
	}
	return s.namespace
}

func nothingFound(a *ask, namespace string) string {
	if a.namespaced && !a.all {
		return fmt.Sprintf("no %s found in namespace %s; -A looks in all", a.gvr.Resource, namespace)
	}
	return fmt.Sprintf("no %s found", a.gvr.Resource)
}

// show writes a list in the form that was asked for, and gives back what was in it, where names
// were asked for.
func (c *readCommand) show(w io.Writer, a *ask, found *result) (metas []metadata, err error) {
	if c.table() {
		g := newGrid(w, &c.outputFlags, a)
		g.use(found.Columns)
		rows := make([][]string, len(found.Rows))
		for i := range found.Rows {
			rows[i] = g.cells("", &found.Rows[i])
			metas = append(metas, found.Rows[i].Object.Metadata)
		}
		return metas, g.write(rows)
	}
	objs := make([]any, 0, len(found.Items))
	for _, item := range found.Items {
		var o struct {
			Metadata metadata `json:"metadata"`
		}
		if err := json.Unmarshal(item, &o); err != nil {
			return nil, fmt.Errorf("read an object of the answer: %w", err)
		}
		metas = append(metas, o.Metadata)
		if c.form == asName {
			if _, err := fmt.Fprintf(w, "%s/%s\n", a, clean(o.Metadata.Name)); err != nil {
				return nil, err
			}
			continue
		}
		obj, err := c.restore(a.mapping, item)
		if err != nil {
			return nil, err
		}
		objs = append(objs, obj)
	}
	switch {
	case c.form == asName:
		return metas, nil
	case len(a.names) == 1 && len(objs) == 1:
		return metas, c.document(w, objs[0])
	case len(a.names) == 1 && len(objs) == 0:
		return metas, nil // the error says it
	}
	return metas, c.document(w, listOf(objs))
}
