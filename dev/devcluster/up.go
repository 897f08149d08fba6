package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mirador-k8s/mirador/dev/devcluster/internal/registry"
	"github.com/mirador-k8s/mirador/dev/devcluster/internal/supervisor"
)

// defaultName is the cluster's name when none is given.
const defaultName = "dev"

func newUp() *cobra.Command {
	var (
		o             supervisor.Options
		noControllers bool
		untilStdin    bool
	)
	cmd := &cobra.Command{
		Use:   "up [-- COMMAND ARGS...]",
		Short: "Start a cluster and keep it until Ctrl-C or `devcluster down`",
		Long: `Start a cluster, say when it is ready and how to use it, and keep it in the foreground until
Ctrl-C, SIGTERM or ` + "`devcluster down`" + `. A second Ctrl-C does not wait for an orderly end.
With a COMMAND, that is run with KUBECONFIG set once the cluster is ready, and the cluster ends
with it.`,
		Example: `  devcluster up
  devcluster up --name big --nodes 100
  devcluster up --data ./cluster        keep its state and resume it next time
  devcluster up --no-controllers        only etcd and the API server
  devcluster up --workload -- ./watcher run a program that watches the workload`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return fmt.Errorf("up takes no argument %q: use --name for the cluster's name, and put a command after --", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := registry.CheckName(o.Name); err != nil {
				return err
			}
			if o.Nodes < 0 || o.Nodes > supervisor.MaxNodes {
				return fmt.Errorf("--nodes is %d: use 0 to %d", o.Nodes, supervisor.MaxNodes)
			}
			if cmd.Flags().Changed("data") && o.Data == "" {
				return errors.New("--data is empty: give a folder, or omit the flag for a temporary one")
			}
			if noControllers {
				if cmd.Flags().Changed("nodes") && o.Nodes > 0 {
					return errors.New("--nodes needs the controllers: omit --no-controllers")
				}
				o.Nodes = 0
			}
			if len(args) > 0 {
				path, err := exec.LookPath(args[0])
				if err != nil {
					return fmt.Errorf("cannot run the command after --: %w", err)
				}
				o.Command = append([]string{path}, args[1:]...)
			}
			if o.Workload && noControllers {
				return errors.New("--workload needs the controllers: omit --no-controllers")
			}
			o.Controllers = !noControllers
			o.Out = cmd.OutOrStdout()
			reg, err := registry.Open()
			if err != nil {
				return err
			}
			o.Registry = reg
			return up(cmd.Context(), o, untilStdin)
		},
	}
	cmd.Flags().StringVar(&o.Name, "name", defaultName, "name of the cluster")
	cmd.Flags().IntVar(&o.Nodes, "nodes", 5, "number of fake nodes")
	cmd.Flags().StringVar(&o.Data, "data", "",
		"folder to keep the cluster's state in (default: a temporary one, removed at the end)")
	cmd.Flags().BoolVar(&noControllers, "no-controllers", false, "run only etcd and the API server")
	cmd.Flags().BoolVar(&o.Workload, "workload", false, "run a small changing workload in namespace shop")
	cmd.Flags().BoolVar(&untilStdin, "until-stdin-closes", false, "also stop when standard input ends")
	_ = cmd.Flags().MarkHidden("until-stdin-closes")
	return cmd
}

// up runs the cluster until a signal, or until standard input ends if untilStdin is set.
func up(ctx context.Context, o supervisor.Options, untilStdin bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hurry := make(chan struct{})
	o.Hurry = hurry

	signals := make(chan os.Signal, 8)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // ignored under nohup and in a shell's background job
			signal.Notify(signals, s)
		}
	}
	// The cluster keeps running if the reader of our output ends.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		<-signals
		cancel()
		<-signals
		close(hurry)
	}()
	if untilStdin {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}

	err := supervisor.Run(ctx, o)
	var environment *supervisor.EnvironmentError
	if errors.As(err, &environment) {
		return err
	}
	return failed(err)
}
