// Package cli implements the commands of mirador except serve: those that read a fleet, and those that write to a
// cluster.
//
//	root := &cobra.Command{Use: "mirador", SilenceErrors: true, SilenceUsage: true}
//	root.AddCommand(cli.Commands()...)
//	err := root.ExecuteContext(ctx)
//	os.Exit(cli.ExitCode(err))
//
// What it promises:
//
//   - get, watch, count and status send the same requests to the same server, whether that is a daemon or runs
//     in this process during the command. The latter opens no port.
//   - A write never uses a mirror. It goes to the cluster with the user's own kubeconfig. The outcome of each
//     object has its own line, and a failure does not prevent the others.
//   - Exit codes are stable; see ExitCode.
//   - A command ends soon after its context does, and leaves nothing running.
//   - No credential is printed. One is sent only over TLS, or to this machine.
package cli
