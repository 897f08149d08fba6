// Command mirador mirrors a fleet of Kubernetes clusters and answers every read locally,
// through the Kubernetes API.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mirador-k8s/mirador/daemon/cli"
)

// The exit codes of wrong usage, and of a name that does not exist; cli.ExitCode has the others.
const (
	exitUsage    = 2
	exitNotFound = 3
)

// usageError is an error in the usage of a command.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// notFoundError says that what a command names does not exist.
type notFoundError struct{ err error }

func (e notFoundError) Error() string { return e.err.Error() }
func (e notFoundError) Unwrap() error { return e.err }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

// run runs one command and returns its exit code.
func run(ctx context.Context, args []string) int {
	return runRoot(ctx, newRoot(), args)
}

func runRoot(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	unknown := strings.HasPrefix(err.Error(), "unknown command ") // cobra has no error type for it
	if unknown {
		err = fmt.Errorf("%w; see mirador --help", err)
	}
	fmt.Fprintf(root.ErrOrStderr(), "mirador: %v\n", err)
	var usage usageError
	if errors.As(err, &usage) || unknown {
		return exitUsage
	}
	if _, ok := errors.AsType[notFoundError](err); ok {
		return exitNotFound
	}
	return cli.ExitCode(err)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "mirador",
		Short: "Mirror a fleet of Kubernetes clusters and answer every read locally",
		Long: `Mirador keeps a live mirror of one or many Kubernetes clusters and answers every read of
them locally, through the Kubernetes API: kubectl and any client can point at it, and the
clusters' own API servers feel nothing.`,
		Example: `  mirador serve                                    # the current context of your kubeconfig
  mirador get pods -A                              # of all clusters that it mirrors
  kubectl --server http://127.0.0.1:8090/fleet get pods -A`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(wrongFlag)
	root.AddCommand(newServe(), newData(), newVersion(), newMan())
	root.AddCommand(cli.Commands()...)
	// kubectl runs a program of this name for `kubectl mirador`.
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-mirador") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl mirador"}
	}
	return root
}
