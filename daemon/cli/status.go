package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
)

// statusCommand shows the health of all clusters.
type statusCommand struct {
	readFlags
	outputFlags
	clusters []string
	watch    bool
	all      bool
}

func newStatus() *cobra.Command {
	c := &statusCommand{}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the health of every cluster, and what is wrong",
		Long: `Show a line for every cluster: its state and for how long, how many of its resources are synced, how many
objects it has in how much memory. Below, what is wrong, and which resources are not well. With --all, or for the
clusters that --cluster names, every resource is shown: what its pipeline does, how long ago the cluster last said
something about it, its objects and their memory. -o wide adds events, queues and handlers; -o json has everything.
With --watch it goes on: redrawn in place on a terminal, and a line for every change otherwise.`,
		Example: `  mirador status
  mirador status --cluster eu          # with every resource of it
  mirador status --all --watch
  mirador status -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("%s takes no arguments; for some of the clusters write %[1]s --cluster %s", cmd.CommandPath(),
					strings.Join(args, ","))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.parse(); err != nil {
				return err
			}
			if c.watch && !c.table() {
				return usagef("--watch shows a table or lines; leave --output out")
			}
			ctx := cmd.Context()
			s, err := c.open(ctx, need{unsynced: c.watch}, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer s.close()
			if !c.watch {
				return c.once(ctx, s, cmd.OutOrStdout())
			}
			if err = c.follow(ctx, s, c.screen(cmd.OutOrStdout())); ctx.Err() != nil {
				return nil // the user ended the watch
			}
			return err
		},
	}
	c.readFlags.add(cmd)
	c.outputFlags.add(cmd, asName, asTemplate, asColumns)
	cmd.Flags().StringSliceVar(&c.clusters, "cluster", nil, "`cluster` to show, may be repeated (default: all)")
	cmd.Flags().BoolVar(&c.all, "all", false, "show every resource, not only those that are not well")
	cmd.Flags().BoolVarP(&c.watch, "watch", "w", false, "go on until Ctrl-C")
	complete(cmd, "cluster", c.completeClusters)
	return cmd
}

// once shows the report once.
func (c *statusCommand) once(ctx context.Context, s *session, w io.Writer) error {
	r, err := s.report(ctx, true)
	if err != nil {
		return fmt.Errorf("ask how the clusters are doing: %w", err)
	}
	if err := c.narrow(r); err != nil {
		return err
	}
	if c.table() {
		err = c.draw(w, r, isTerminal(w))
	} else {
		var v any
		if v, err = plain(r); err == nil {
			err = c.document(w, v)
		}
	}
	if err != nil {
		return err
	}
	return errUnreachable(r)
}

// errUnreachable returns an error that names the clusters of a report that are unreachable.
func errUnreachable(r *server.Report) error {
	var names []string
	for i := range r.Clusters {
		if r.Clusters[i].State == string(fleet.Unreachable) {
			names = append(names, clean(r.Clusters[i].Name))
		}
	}
	if len(names) == 0 {
		return nil
	}
	more := ""
	if left := len(names) - shownNames; left > 0 {
		names, more = names[:shownNames], fmt.Sprintf(" and %d more", left)
	}
	return unreachable(fmt.Errorf("unreachable: %s%s", strings.Join(names, ", "), more))
}

// narrow keeps only the named clusters.
func (c *statusCommand) narrow(r *server.Report) error {
	if len(c.clusters) == 0 {
		return nil
	}
	for _, name := range c.clusters {
		if !slices.ContainsFunc(r.Clusters, func(cl server.ClusterReport) bool { return cl.Name == name }) {
			return notFound(fmt.Errorf("there is no cluster %q; mirador clusters shows what there is", name))
		}
	}
	r.Clusters = slices.DeleteFunc(r.Clusters,
		func(cl server.ClusterReport) bool { return !slices.Contains(c.clusters, cl.Name) })
	return nil
}

func resourceName(r *server.ResourceReport) string {
	if r.Group == "" {
		return clean(r.Resource)
	}
	return clean(r.Resource + "." + r.Group)
}

// follow shows the report at every change, and reconnects when the stream ends.
func (c *statusCommand) follow(ctx context.Context, s *session, show func(*server.Report) error) error {
	pause := newPause()
	for first := true; ctx.Err() == nil; first = false {
		err := c.stream(ctx, s, func(r *server.Report) error {
			pause.reset()
			return show(r)
		})
		if err != nil && (first && ExitCode(err) == exitUnreachable || !passes(err)) {
			return fmt.Errorf("ask how the clusters are doing: %w", err)
		}
		if err != nil {
			pause.say(s.warn, err)
		}
		pause.wait(ctx)
	}
	return nil
}

func (c *statusCommand) stream(ctx context.Context, s *session, show func(*server.Report) error) error {
	body, err := s.open(ctx, http.MethodGet, "/clusters", url.Values{"watch": {"1"}}, acceptJSON, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	limited := &io.LimitedReader{R: body}
	dec := json.NewDecoder(limited)
	var all server.Report
	for {
		limited.N = maxEvent
		var update server.ReportUpdate
		switch err := dec.Decode(&update); {
		case errors.Is(err, io.EOF) && limited.N > 0:
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w", errBroken, err)
		}
		all.Update(&update)
		r := all
		r.Clusters = slices.Clone(all.Clusters) // a copy: narrow must not remove the others
		if err := c.narrow(&r); err != nil {
			return err
		}
		if err := show(&r); err != nil {
			return err
		}
	}
}

// screen returns the function that shows reports: in place on a terminal, otherwise as lines.
func (c *statusCommand) screen(w io.Writer) func(*server.Report) error {
	if isTerminal(w) {
		return func(r *server.Report) error { return c.redraw(w, r) }
	}
	l := &statusLines{w: w, last: map[string]string{}}
	return l.show
}

// isTerminal reports whether the output is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

const statusTime = time.TimeOnly
