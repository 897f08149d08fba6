package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/mirador-k8s/mirador/dev/devcluster/internal/component"
	"github.com/mirador-k8s/mirador/dev/devcluster/internal/part"
)

// Exit statuses.
const (
	exitFailed = 1 // the operation failed
	exitAsked  = 2 // the request is invalid
)

func main() {
	// This does not use cobra: the parts parse their own flags, and a child should do no unneeded work.
	if len(os.Args) > 1 && os.Args[1] == part.Subcommand {
		os.Exit(component.Run(os.Args[2:]))
	}
	os.Exit(run(os.Args[1:]))
}

// run executes one command line and returns its exit status.
func run(args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "devcluster: %v\n", err)
	var failed *runtimeError
	if errors.As(err, &failed) {
		return exitFailed
	}
	return exitAsked
}

// runtimeError marks errors that happened after the request was found to be valid. All other errors, including cobra's
// own, are about the request.
type runtimeError struct{ error }

func (e *runtimeError) Unwrap() error { return e.error }

// failed marks err, if there is one, as a runtimeError.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &runtimeError{err}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "devcluster",
		Short: "A real Kubernetes control plane on this machine, in one command",
		Long: `A real Kubernetes control plane on this machine, in one command: etcd, API server,
controller manager, scheduler and KWOK's fake nodes, without containers.`,
		Example: `  devcluster up
  devcluster kubectl get nodes
  devcluster load --pods 1000
  devcluster down dev`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w: see `%s --help`", err, cmd.CommandPath())
	})
	root.AddCommand(newUp(), newList(), newKubeconfig(), newDown(), newLoad(), newFault(), newKubectl())
	return root
}
