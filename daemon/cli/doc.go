// Package cli has the commands of mirador besides serve: those that read a fleet, and those that write
// to a cluster.
//
//	root := &cobra.Command{Use: "mirador", SilenceErrors: true, SilenceUsage: true}
//	root.AddCommand(cli.Commands()...)
//	err := root.ExecuteContext(ctx)
//	os.Exit(cli.ExitCode(err))
//
// What it promises:
//
//   - One way to read. get, watch, count and status send the same requests to the same server, whether
//     that is a daemon or runs in this process for the time of the command. The latter opens no port.
//   - A write never goes through a mirror. It goes to the cluster with the user's own kubeconfig, and
//     each object's outcome has a line of its own. One that fails keeps no other from being tried.
//   - Exit codes can be relied on; ExitCode has them.
//   - A command ends soon after its context does, and leaves nothing running.
//   - No credential is printed. One is sent only over TLS, or to this machine.
package cli
