// Package fleet mirrors many clusters. Clusters join and leave at run time, and every
// resource of a cluster that can be listed and watched is mirrored.
//
//	f, err := fleet.New(fleet.Options{Exclude: []string{"events"}, StateFile: "fleet.json"})
//	configs, err := fleet.FromKubeconfig(path)
//	for name, cfg := range configs {
//		err = f.Join(name, cfg, fleet.Origin{Kind: fleet.FromFile, Detail: path})
//	}
//	go f.Run(ctx)
//	eu, ok := f.Cluster("eu")
//	pods, ok := eu.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
//	for pod := range pods.Snapshot().ByIndex(fleet.NamespaceIndex, "web") { … }
//
// Clusters come from a config (Join), from a kubeconfig, a folder of kubeconfigs or a list that is
// followed (FollowKubeconfig, FollowFolder, FollowMembers), and from a kubeconfig that a client sends
// (JoinKubeconfig, RejoinKubeconfig). The last survive a restart. New credentials for the same cluster are
// used in place: nothing is relisted and no watch ends.
//
// What it promises:
//
//   - Clusters are isolated. Each has its own goroutines, connections and limits. A
//     cluster that is slow, dead or hostile does not delay the others. Discovery is
//     bounded in size, time and number, and names are checked before they are used. The
//     memory for objects is bounded by Limits: an endless list or watch costs its
//     resource the mirror, and affects nothing else.
//   - Reading sends no request to a cluster. Everything that can be read, including
//     discovery and OpenAPI, was fetched before.
//   - Discovery is followed: a new custom resource gets a Resource soon, and the Done
//     channel of a removed one is closed. While a group version cannot be discovered, its
//     resources stay as they were. Each resource is mirrored in one version, the preferred
//     one of its group.
//   - Changes can be waited for: Changed is closed at every change of the sets, and
//     Resource.Done when a mirror ends.
//   - A cluster that leaves is released: its informers are stopped, its memory is free,
//     its connections are closed.
//   - Secrets are protected: the core group's secrets are mirrored only if
//     Options.Secrets is set, a cluster's credentials appear in no error and no log, and a
//     kubeconfig that a client sends can neither run nor read anything on this machine.
//     Answers of an address that is not a Kubernetes API server are not shown: health has
//     only the kind of the failure, and the log has the cause.
//   - The state file is always complete: it is replaced as a whole before a join or leave
//     takes effect, and a file that cannot be read is not overwritten.
//
// Objects are kept packed, as the JSON that the cluster sent. Bytes returns that JSON.
package fleet
