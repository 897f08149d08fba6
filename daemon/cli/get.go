package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mirador-k8s/mirador/daemon/server"
)

// readCommand is the common part of get, watch and count.
type readCommand struct {
	readFlags
	selectFlags
	outputFlags
	showLabels   bool
	labelColumns []string
}

// labelled reports whether the tables have columns of labels, which the server does not provide.
func (c *readCommand) labelled() bool { return c.showLabels || len(c.labelColumns) > 0 }

// flags adds the flags of the command, which shows objects in all forms but those that are refused.
func (c *readCommand) flags(cmd *cobra.Command, refused ...form) {
	c.readFlags.add(cmd)
	c.selectFlags.add(cmd, &c.readFlags)
	c.outputFlags.add(cmd, refused...)
	if c.sortable { // the command shows objects
		cmd.Flags().BoolVar(&c.showLabels, "show-labels", false, "add a column of all labels to tables")
		cmd.Flags().StringSliceVarP(&c.labelColumns, "label-columns", "L", nil,
			"add a column of this `label` to tables, may be repeated")
	}
	cmd.ValidArgsFunction = c.completeObjects
}

// begin opens a session and returns the requests, one for each resource.
func (c *readCommand) begin(ctx context.Context, args []string, warn io.Writer) (*session, []*ask, error) {
	all, err := splitNames(args)
	if err != nil {
		return nil, nil, err
	}
	if err := c.selectFlags.check(all); err != nil {
		return nil, nil, err
	}
	var n need
	for _, w := range all {
		n.resources = append(n.resources, w.resource)
	}
	s, err := c.readFlags.open(ctx, n, warn)
	if err != nil {
		return nil, nil, err
	}
	asks, err := c.resolve(ctx, s, all)
	if err != nil {
		s.close()
		return nil, nil, err
	}
	return s, asks, nil
}

// beginOne is begin for a command with exactly one resource.
func (c *readCommand) beginOne(ctx context.Context, args []string, warn io.Writer) (*session, *ask, error) {
	s, asks, err := c.begin(ctx, args, warn)
	if err == nil && len(asks) > 1 {
		s.close()
		return nil, nil, usagef("%q are several resources; watch one at a time", args[0])
	} else if err != nil {
		return nil, nil, err
	}
	return s, asks[0], nil
}

// resolve finds the resources at the server and returns the requests.
func (c *readCommand) resolve(ctx context.Context, s *session, all []wanted) (asks []*ask, err error) {
	prefix, _, _, err := c.selectFlags.prefix(s)
	if err != nil {
		return nil, err
	}
	cat, err := s.catalog(ctx, prefix)
	if err != nil {
		return nil, err
	}
	for _, w := range all {
		found, err := cat.findAll(ctx, w.resource)
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			a, err := c.selectFlags.ask(s, m, w.names)
			if err != nil {
				return nil, err
			}
			asks = append(asks, a)
		}
	}
	return asks, nil
}

// catalog returns the resources that are served below a prefix.
func (s *session) catalog(ctx context.Context, prefix string) (*catalog, error) {
	if name, one := strings.CutPrefix(prefix, "/clusters/"); one {
		if err := s.checkCluster(ctx, name); err != nil {
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

// checkCluster returns the error for a cluster without resources: it does not exist, or was never reached.
func (s *session) checkCluster(ctx context.Context, name string) error {
	var c server.ClusterReport
	err := s.get(ctx, "/clusters/"+name, nil, acceptJSON, &c)
	switch {
	case apierrors.IsNotFound(err):
		return notFound(fmt.Errorf("there is no cluster %q; mirador clusters shows what there is", name))
	case err != nil:
		return err
	case len(c.Resources) > 0 || c.Error == "":
		return nil
	}
	return unreachable(fmt.Errorf("cluster %q is %s: %s", name, c.State, clean(c.Error)))
}

// getCommand is get. With --watch it runs watch.
type getCommand struct {
	watchCommand
	watching, absentOK bool
	at                 string
}

func newGet() *cobra.Command {
	c := &getCommand{}
	c.sortable, c.limitable = true, true
	cmd := &cobra.Command{
		Use:   "get RESOURCE[,RESOURCE…] [NAME…]",
		Short: "Show objects, of one cluster or of all",
		Long: `Show objects of one resource or of several. A resource is named as for kubectl: pods, pod, po,
deployments.apps, pods,services, all, or RESOURCE/NAME. Over several clusters, -n web is that namespace in
each of them and -n eu.web in one; a name without a namespace may have its cluster in front, as in eu:node-1.

They come from a daemon: --server, else $MIRADOR_SERVER, else the one of this machine. With
--kubeconfig or --context, and where no daemon runs, this command mirrors what is asked for itself, for
as long as it takes.`,
		Example: `  mirador get pods -A                                     # of all clusters
  mirador get deploy web -n shop --cluster eu -o yaml
  mirador get pods,services -n shop -l app=web
  mirador get pods -A --where 'status.phase != "Running"' --sort-by metadata.creationTimestamp
  mirador get pods -n shop -w                             # and every change of them
  mirador get pods -n shop --at -15m                      # as they were then
  mirador get nodes --kubeconfig ~/.kube/config --context eu   # no daemon needed
  mirador get pods -n web -o jsonpath='{.items[*].metadata.name}'
  mirador get pods -A -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName`,
		Args: takes(1, -1, "a resource and any number of names"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.watching && c.at != "" {
				return usagef("--watch shows what changes from now on; leave --at out")
			}
			if c.watching && c.limit != 0 {
				return usagef("--watch shows all there is; leave --limit out")
			}
			if c.watching {
				return c.run(cmd, args)
			}
			if err := c.parse(); err != nil {
				return err
			}
			at := ""
			if c.at != "" {
				var err error
				if at, err = moment("at", c.at, time.Now()); err != nil {
					return err
				}
			}
			s, asks, err := c.begin(cmd.Context(), args, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer s.close()
			for _, a := range asks {
				a.set("at", at)
			}
			return c.get(cmd.Context(), s, asks, cmd.OutOrStdout())
		},
	}
	c.flags(cmd)
	cmd.Flags().BoolVarP(&c.watching, "watch", "w", false, "go on with every change until Ctrl-C, as mirador watch does")
	cmd.Flags().StringVar(&c.at, "at", "",
		"show the objects of this `time`: "+momentHelp+"-15m or -2d; the daemon must keep history (serve --data)")
	cmd.Flags().BoolVar(&c.events, "output-watch-events", false,
		"with --watch, show what happened: ADDED, MODIFIED or DELETED")
	cmd.Flags().BoolVar(&c.absentOK, "ignore-not-found", false, "do not fail if a name does not exist")
	return cmd
}

// found is the result of one of several requests.
type found struct {
	*ask
	*result
}

// get reads and shows the objects.
func (c *getCommand) get(ctx context.Context, s *session, asks []*ask, w io.Writer) error {
	var all []found
	for _, a := range asks {
		if c.table() && !a.all && len(a.names) == 0 && !c.labelled() {
			a.params.Set("includeObject", "None") // the rows have everything that is shown
		}
		r, err := s.list(ctx, a, c.accept(), c.limit)
		if err != nil {
			return fmt.Errorf("get %s: %w", a.gvr.Resource, err)
		}
		all = append(all, found{a, r})
	}
	if err := c.show(w, all); err != nil {
		return err
	}
	return c.remark(s, all)
}

// remark tells the user what is not shown.
func (c *getCommand) remark(s *session, all []found) error {
	var failed []error
	shown := int64(0)
	for _, f := range all {
		shown += f.len()
		if f.more {
			fmt.Fprintf(s.warn, "there are more%s %s; raise --limit to see them\n", leftText(f.left), f.gvr.Resource)
		}
		if missing := f.missing(f.metas()); len(missing) > 0 && !c.absentOK {
			failed = append(failed, f.errMissing(missing))
		}
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	if shown == 0 && c.table() && !c.absentOK {
		fmt.Fprintln(s.warn, nothingFound(all, c.namespaceOr(s)))
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

func nothingFound(all []found, namespace string) string {
	var names []string
	within := false
	for _, f := range all {
		names = append(names, f.gvr.Resource)
		within = within || f.namespaced && !f.all
	}
	if within {
		return fmt.Sprintf("no %s found in namespace %s; -A looks in all", strings.Join(names, ", "), namespace)
	}
	return fmt.Sprintf("no %s found", strings.Join(names, ", "))
}

// show writes the results in the selected form.
func (c *readCommand) show(w io.Writer, all []found) error {
	if c.table() {
		return c.showTables(w, all)
	}
	var objs []*unstructured.Unstructured
	names := 0
	for _, f := range all {
		names += len(f.names)
		for _, item := range f.Items {
			obj, err := restore(f.mapping, item)
			if err != nil {
				return err
			}
			objs = append(objs, obj)
		}
	}
	switch {
	case c.form == asColumns:
		rows := make([][]string, len(objs))
		for i, obj := range objs {
			rows[i] = cellsOf(c.columns, obj)
		}
		return writeTable(w, c.noHeaders, heads(c.columns), rows)
	case names == 1 && len(objs) == 1 && c.form != asName:
		return c.object(w, objs[0])
	case names == 1 && len(objs) == 0:
		return nil // the error reports it
	}
	return c.object(w, listOf(objs))
}

// showTables writes a table for each resource. If there are several, empty ones are omitted, and names are prefixed
// with their resource.
func (c *readCommand) showTables(w io.Writer, all []found) error {
	first := true
	for _, f := range all {
		if len(f.Rows) == 0 {
			continue
		}
		g := newGrid(w, &c.outputFlags, f.ask)
		g.labels, g.labelColumns = c.showLabels, c.labelColumns
		if len(all) > 1 {
			g.prefix = f.String() + "/"
		}
		g.use(f.Columns)
		rows := make([][]string, len(f.Rows))
		for i := range f.Rows {
			rows[i] = g.cells("", &f.Rows[i])
		}
		if !first {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		first = false
		if err := g.write(rows); err != nil {
			return err
		}
	}
	return nil
}
