// Package fleet mirrors many clusters: each joins and leaves at run time, is asked what
// it serves, and has every resource of it that can be listed and watched mirrored here.
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
// Clusters come from a config (Join), from a kubeconfig or a folder of them that is followed
// (FollowKubeconfig, FollowFolder), and from whoever sends a kubeconfig (JoinKubeconfig); the
// last are remembered over a restart. Other credentials for the same cluster are used in
// place: nothing is listed anew and no watch ends.
//
// What it promises:
//
//   - Clusters are isolated. Each has goroutines, connections and a memory of its own;
//     one that is slow, dead or hostile delays nothing of the others. What a server
//     says about itself is bounded in size, time and number, and its names are checked,
//     before it is used. What is held of its objects is bounded by Limits: a list without
//     end, or a watch, costs that resource its mirror and nothing else.
//   - Reading asks nothing of a cluster. Everything that is shown, discovery and OpenAPI
//     included, was fetched before.
//   - Discovery is followed: a custom resource that comes has a Resource soon, one that
//     goes has its Done closed. What a cluster cannot tell about for a while stays as it
//     was. Each resource is mirrored in one version, the one its group prefers.
//   - Nothing waits in vain: Changed is closed at every change of the sets, and
//     Resource.Done when a mirror ends.
//   - What leaves is gone: its informers are stopped, its memory is free, its
//     connections are closed.
//   - Secrets are secret: the core group's secrets are mirrored only when that is asked
//     for, a cluster's credentials appear in no error and no log, and a kubeconfig that
//     somebody sends can neither run nor read anything on this machine. What an address
//     answers that is no Kubernetes API server is shown to nobody: health says in words of
//     its own what kind of failure it is, and the log has the cause.
//   - Nothing remembered is lost: the state file is replaced as a whole, before what it
//     says is true, and one that cannot be read is left alone.
//
// Objects are kept packed, as the JSON that the cluster sent. Bytes gives it.
package fleet
