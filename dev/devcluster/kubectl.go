package main

import (
	"os"

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // so that kubeconfigs of other clusters work too
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func newKubectl() *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl ...",
		Short: "Run kubectl, against the running cluster unless KUBECONFIG says otherwise",
		Long: `Run kubectl. If KUBECONFIG is unset and exactly one cluster is running, it talks to that one.
All of kubectl's commands and flags work.`,
		Example: `  devcluster kubectl get pods -A
  devcluster kubectl create deployment web --image=nginx --replicas=3
  KUBECONFIG=$(devcluster kubeconfig other) devcluster kubectl version`,
		DisableFlagParsing: true,
		Run: func(_ *cobra.Command, args []string) {
			kubectl(args)
		},
	}
}

// kubectl runs kubectl in this process. It parses the program's arguments itself, and takes its name in user agents
// and managedFields from the first of them.
func kubectl(args []string) {
	os.Args = append([]string{"kubectl"}, args...)
	if os.Getenv("KUBECONFIG") == "" {
		if e, err := onlyCluster(); err == nil {
			os.Setenv("KUBECONFIG", e.Kubeconfig)
		}
	}
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
