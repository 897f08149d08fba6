package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mirador-k8s/mirador/dev/devcluster/internal/load"
	"github.com/mirador-k8s/mirador/dev/devcluster/internal/registry"
)

func newLoad() *cobra.Command {
	var (
		o    load.Options
		name string
	)
	cmd := &cobra.Command{
		Use:   "load",
		Short: "Fill a cluster with realistic pods and, if asked to, keep changing them",
		Long: `Fill a cluster with realistic pods: two containers, probes, environment, volumes, owners, a running
status. Running it again tops up what is missing. With --churn it then keeps changing them until
--duration is over or Ctrl-C.`,
		Example: `  devcluster load --pods 1000
  devcluster load --pods 50000 --templates 200 --namespaces 20
  devcluster load --pods 1000 --churn 50/s --duration 1m`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("templates") {
				o.Templates = min(o.Templates, max(1, o.Pods))
			}
			if !cmd.Flags().Changed("namespaces") {
				o.Namespaces = min(o.Namespaces, max(1, o.Templates))
			}
			if err := o.Validate(); err != nil {
				return err
			}
			entry, err := loadTarget(name, cmd.Flags().Changed("name"))
			if err != nil {
				return err
			}
			o.Controllers = entry.Controllers
			o.Out = cmd.OutOrStdout()
			o.Terminal = term.IsTerminal(int(os.Stdout.Fd()))
			config, err := clientcmd.BuildConfigFromFlags("", entry.Kubeconfig)
			if err != nil {
				return failed(fmt.Errorf("read the kubeconfig of cluster %q: %w", entry.Name, err))
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return failed(load.Run(ctx, config, o))
		},
	}
	cmd.Flags().StringVar(&name, "name", defaultName, "name of the cluster; may be omitted if only one is running")
	cmd.Flags().IntVar(&o.Pods, "pods", 1000, "number of pods")
	cmd.Flags().IntVar(&o.Templates, "templates", 20, "number of different workloads")
	cmd.Flags().IntVar(&o.Namespaces, "namespaces", 5, "number of namespaces")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 1, "the same seed gives the same workloads and names")
	cmd.Flags().Var((*perSecond)(&o.Churn), "churn", "changes per second to keep making, for example 50/s")
	cmd.Flags().DurationVar(&o.Duration, "duration", 0, "how long to keep changing pods (default: until Ctrl-C)")
	return cmd
}

// loadTarget returns the cluster to load: the named one or, if no name was given and the default one is not running,
// the only running one.
func loadTarget(name string, given bool) (registry.Entry, error) {
	entry, err := runningCluster(name)
	if err == nil || given {
		return entry, err
	}
	return onlyCluster()
}

// perSecond is a rate on the command line: "50" or "50/s".
type perSecond float64

func (p *perSecond) Set(s string) error {
	f, err := strconv.ParseFloat(strings.TrimSuffix(s, "/s"), 64)
	if err != nil || f != f {
		return fmt.Errorf("%q is not a rate such as 50/s", s)
	}
	*p = perSecond(f)
	return nil
}

func (p *perSecond) String() string { return strconv.FormatFloat(float64(*p), 'g', -1, 64) + "/s" }

func (p *perSecond) Type() string { return "rate" }
