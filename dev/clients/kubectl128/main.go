// Command kubectl128 is the kubectl of Kubernetes 1.28: the oldest client that the daemon is tested with. It is a
// module of its own, because its packages are of another version than those of the tests.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
