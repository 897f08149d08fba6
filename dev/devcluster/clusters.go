package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mirador-k8s/mirador/dev/devcluster/internal/registry"
	"github.com/mirador-k8s/mirador/dev/devcluster/internal/supervisor"
)

func newList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the running clusters",
		Example: "  devcluster list",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reg, err := registry.Open()
			if err != nil {
				return err
			}
			all, err := reg.List()
			if err != nil {
				return failed(err)
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
			fmt.Fprintln(w, "NAME\tPID\tAGE\tNODES\tAPI-SERVER\tKUBECONFIG")
			for _, e := range all {
				server := e.Server
				if !e.Ready {
					server = "(starting)"
				}
				fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%s\t%s\n", e.Name, e.PID,
					duration.HumanDuration(time.Since(e.Started)), e.Nodes, server, e.Kubeconfig)
			}
			return failed(w.Flush())
		},
	}
}

func newKubeconfig() *cobra.Command {
	var raw bool
	cmd := &cobra.Command{
		Use:   "kubeconfig NAME",
		Short: "Print the path of a cluster's kubeconfig",
		Example: `  export KUBECONFIG=$(devcluster kubeconfig dev)
  devcluster kubeconfig dev --raw > copy.yaml`,
		Args: clusterName,
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := runningCluster(args[0])
			if err != nil {
				return err
			}
			if !raw {
				fmt.Fprintln(cmd.OutOrStdout(), e.Kubeconfig)
				return nil
			}
			b, err := os.ReadFile(e.Kubeconfig)
			if err != nil {
				return failed(fmt.Errorf("read the kubeconfig of cluster %q: %w", e.Name, err))
			}
			_, err = cmd.OutOrStdout().Write(b)
			return failed(err)
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "print the kubeconfig itself")
	return cmd
}

// downTimeout is longer than an orderly shutdown takes.
const downTimeout = 30 * time.Second

func newDown() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "down NAME",
		Short: "Stop a cluster and wait until it is gone",
		Example: `  devcluster down dev
  devcluster down --all`,
		Args: func(cmd *cobra.Command, args []string) error {
			if all && len(args) == 0 {
				return nil
			}
			if all {
				return errors.New("down takes a name or --all, not both")
			}
			return clusterName(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			reg, err := registry.Open()
			if err != nil {
				return err
			}
			names := args
			if all {
				entries, err := reg.List()
				if err != nil {
					return failed(err)
				}
				for _, e := range entries {
					names = append(names, e.Name)
				}
			} else if _, err := reg.Get(args[0]); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), downTimeout)
			defer cancel()
			var errs []error
			for _, name := range names {
				errs = append(errs, supervisor.NewClient(reg, name).Down(ctx))
			}
			return failed(errors.Join(errs...))
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "stop every cluster")
	return cmd
}

// clusterName checks that the one argument is there.
func clusterName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s takes the name of one cluster: see `devcluster list`", cmd.Name())
	}
	return nil
}

// runningCluster returns the named cluster once its kubeconfig exists.
func runningCluster(name string) (registry.Entry, error) {
	reg, err := registry.Open()
	if err != nil {
		return registry.Entry{}, err
	}
	e, err := reg.Get(name)
	if err == nil && e.Kubeconfig == "" {
		return e, fmt.Errorf("cluster %q is still starting: try again in a moment", name)
	}
	return e, err
}

// onlyCluster returns the running cluster if there is exactly one.
func onlyCluster() (registry.Entry, error) {
	reg, err := registry.Open()
	if err != nil {
		return registry.Entry{}, err
	}
	all, err := reg.List()
	switch {
	case err != nil:
		return registry.Entry{}, err
	case len(all) == 0:
		return registry.Entry{}, errors.New("no cluster is running: start one with `devcluster up`")
	case len(all) > 1:
		names := make([]string, len(all))
		for i, e := range all {
			names[i] = e.Name
		}
		return registry.Entry{}, fmt.Errorf("several clusters are running (%s): name one of them", strings.Join(names, ", "))
	}
	return runningCluster(all[0].Name)
}
