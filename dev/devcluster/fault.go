package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mirador-k8s/mirador/dev/devcluster/internal/part"
	"github.com/mirador-k8s/mirador/dev/devcluster/internal/registry"
	"github.com/mirador-k8s/mirador/dev/devcluster/internal/supervisor"
)

// faultTimeout is longer than a restart can take.
const faultTimeout = 3 * time.Minute

func newFault() *cobra.Command {
	return &cobra.Command{
		Use:   "fault NAME pause|resume|restart|kill PART | NAME compact|rotate",
		Short: "Break a running cluster, for tests",
		Long: `Break a running cluster, for tests. The command returns when it is done.

  pause PART     stop the process where it is
  resume PART    let it go on
  kill PART      kill it; it stays dead until it is restarted
  restart PART   end it if it runs, start it again, wait until it is ready
  compact        forget all history, so that a watch which resumes gets 410 Gone
  rotate         give the API server a new serving certificate, of the cluster's other authority

A PART is apiserver, etcd, controller-manager, scheduler or kwok.`,
		Example: `  devcluster fault dev pause apiserver
  devcluster fault dev resume apiserver
  devcluster fault dev compact
  devcluster fault dev rotate`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 || len(args) > 3 {
				return errors.New("fault takes a cluster, an action and a part: see `devcluster fault --help`")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			name, action := args[0], supervisor.Action(args[1])
			var target part.Name
			if len(args) == 3 {
				target = part.Name(args[2])
			}
			if target == "" && action.TakesPart() {
				return fmt.Errorf("fault %s needs a part, for example apiserver", action)
			}
			if err := supervisor.CheckFault(action, target); err != nil {
				return err
			}
			reg, err := registry.Open()
			if err != nil {
				return err
			}
			if _, err := reg.Get(name); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), faultTimeout)
			defer cancel()
			return failed(supervisor.NewClient(reg, name).Fault(ctx, action, target))
		},
	}
}
