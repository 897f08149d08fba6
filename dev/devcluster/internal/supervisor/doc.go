// Package supervisor runs one cluster: it prepares its folder, starts etcd, the
// API server, the controller manager, the scheduler and KWOK as child
// processes, waits until all of it really works, injects faults on request and
// takes everything down again.
//
// What it promises:
//
//   - Ready means ready: the API server says so, the default service account
//     exists and every node is Ready.
//   - Nothing outlives it. Children end with the supervisor even if it is
//     killed: by the kernel's parent-death signal where there is one, and by a
//     pipe that closes with the supervisor everywhere.
//   - A child that ends without being told to ends the cluster. The error names
//     the child, quotes the end of its log and says where the log is; the data
//     folder is kept then, so that the log is there to be read.
//   - All it listens on are the loopback address and unix sockets in a private
//     folder.
package supervisor
