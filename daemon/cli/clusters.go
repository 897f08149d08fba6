package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mirador-k8s/mirador/daemon/server"
)

func newClusters() *cobra.Command {
	var (
		d daemonFlags
		o outputFlags
	)
	cmd := &cobra.Command{
		Use:   "clusters",
		Short: "Show the clusters of a daemon; have one join or leave",
		Long:  `Show the clusters that a daemon mirrors. Its commands join and leave change which these are.`,
		Example: `  mirador clusters
  mirador clusters -o json
  mirador clusters join eu --kubeconfig eu.yaml
  mirador clusters leave eu`,
		Args: takes(0, 0, "no arguments, or join or leave"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.parse(); err != nil {
				return err
			}
			s, err := d.need(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer s.close()
			return showClusters(cmd.Context(), s, &o, cmd.OutOrStdout())
		},
	}
	d.add(cmd.Flags())
	o.add(cmd, asTemplate, asColumns)
	cmd.AddCommand(newJoin(), newLeave())
	return cmd
}

func showClusters(ctx context.Context, s *session, o *outputFlags, w io.Writer) error {
	detailed := !o.table() && o.form != asName
	r, err := s.report(ctx, detailed)
	if err != nil {
		return fmt.Errorf("ask for the clusters: %w", err)
	}
	switch {
	case o.form == asName:
		for _, c := range r.Clusters {
			fmt.Fprintf(w, "cluster/%s\n", c.Name)
		}
		return nil
	case !o.table():
		v, err := plain(r.Clusters)
		if err != nil {
			return err
		}
		return o.document(w, v)
	}
	if len(r.Clusters) == 0 {
		fmt.Fprintln(s.warn, "there are no clusters; have one join with mirador clusters join NAME --kubeconfig FILE")
		return nil
	}
	return writeClusters(w, o, r)
}

// writeClusters writes a line for each cluster.
func writeClusters(w io.Writer, o *outputFlags, r *server.Report) error {
	head := []string{"NAME", "STATE", "VERSION", "SYNCED", "OBJECTS", "HEARD"}
	if o.form == asWide {
		head = append(head, "ORIGIN", "SINCE", "ERROR")
	}
	var rows [][]string
	for i := range r.Clusters {
		c := &r.Clusters[i]
		sum := c.Totals
		cells := []string{c.Name, c.State, orDash(clean(c.Version)), fmt.Sprintf("%d/%d", sum.Synced, sum.Mirrored),
			strconv.Itoa(sum.Objects), seconds(c.LastHeardSeconds)}
		if o.form == asWide {
			cells = append(cells, orDash(c.Origin), since(r.Now, c.Since), orDash(clean(c.Error)))
		}
		rows = append(rows, cells)
	}
	return writeTable(w, o.noHeaders, head, rows)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// seconds formats an age.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

func since(now, then time.Time) string { return seconds(now.Sub(then).Seconds()) }

func newJoin() *cobra.Command {
	var (
		d                   daemonFlags
		kubeconfig, context string
	)
	cmd := &cobra.Command{
		Use:   "join NAME --kubeconfig FILE",
		Short: "Have a daemon mirror another cluster",
		Long: `Have a daemon mirror another cluster. Of the kubeconfig, only what the context uses is sent.
Certificates, keys and tokens that it names by file are put into it. A kubeconfig that
runs a program to log in cannot be sent: the daemon would have to run that.`,
		Example: `  mirador clusters join eu --kubeconfig eu.yaml
  mirador clusters join us --kubeconfig ~/.kube/config --context us-east`,
		Args: takes(1, 1, "one name for the cluster"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if kubeconfig == "" {
				return usagef("--kubeconfig is missing; name the file that leads to the cluster")
			}
			sent, err := inlined(kubeconfig, context)
			if err != nil {
				return err
			}
			s, err := d.need(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer s.close()
			return join(cmd.Context(), s, args[0], sent, cmd.OutOrStdout())
		},
	}
	d.add(cmd.Flags())
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig `file` of the cluster that joins")
	cmd.Flags().StringVar(&context, "context", "", "`context` of the kubeconfig (default: the current one)")
	return cmd
}

// join sends a kubeconfig to a daemon.
func join(ctx context.Context, s *session, name string, kubeconfig []byte, w io.Writer) error {
	if !s.private() {
		return usagef("the kubeconfig has credentials, which would be readable on their way to %s; use https", s.base.Host)
	}
	body, err := json.Marshal(map[string]string{"name": name, "kubeconfig": string(kubeconfig)})
	if err != nil {
		return fmt.Errorf("join cluster %q: %w", name, err)
	}
	answer, err := s.open(ctx, http.MethodPost, "/clusters", nil, acceptJSON, bytes.NewReader(body))
	switch {
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("join cluster %q: %w; choose another name, or have it leave first with mirador clusters leave %s",
			name, err, name)
	case apierrors.IsBadRequest(err):
		return &coded{exitUsage, err} // the daemon's error says what was attempted
	case err != nil:
		return fmt.Errorf("join cluster %q: %w", name, err)
	}
	answer.Close()
	if _, err = fmt.Fprintf(w, "cluster/%s joined\n", name); err == nil {
		_, err = fmt.Fprintf(s.warn, "it is read now; mirador status --cluster %s shows how far\n", name)
	}
	return err
}

func newLeave() *cobra.Command {
	var r readFlags
	cmd := &cobra.Command{
		Use:     "leave NAME",
		Short:   "Have a daemon forget a cluster",
		Long:    `Have a daemon forget a cluster, its mirror and its credentials. Nothing happens to the cluster itself.`,
		Example: `  mirador clusters leave eu`,
		Args:    takes(1, 1, "one name of a cluster"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := r.need(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := s.open(cmd.Context(), http.MethodDelete, "/clusters/"+url.PathEscape(args[0]), nil, acceptJSON, nil)
			if apierrors.IsNotFound(err) {
				return notFound(fmt.Errorf("%w; mirador clusters shows what there is", err))
			} else if err != nil {
				return fmt.Errorf("leave cluster %q: %w", args[0], err)
			}
			answer.Close()
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "cluster/%s left\n", args[0])
			return err
		},
	}
	r.daemonFlags.add(cmd.Flags())
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return r.completeClusters(cmd, args, prefix)
	}
	return cmd
}
