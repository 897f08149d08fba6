// Package registry records which clusters of this user are running.
//
// It is a private folder with, per cluster, a lock file, a JSON file that describes it and its sockets. A cluster is
// running as long as its supervisor holds the lock: the kernel releases it however the supervisor ends, so there are
// no stale process ids. What a killed supervisor left behind is removed by the next call of [Registry.List],
// [Registry.Get] or [Registry.Claim].
package registry
