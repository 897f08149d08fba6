// Package testpods makes pods that look like those of a real API server and kubelets, for realistic tests and
// measurements: random UIDs and container ids, distinct times, managedFields of three managers, and the kube-api-access
// volume, which makes the volumes of each pod different.
//
// It guarantees:
//
//   - Pod(i) depends only on the seed, the number of templates and i.
//   - Every call returns a new object: no two of them share a string, a slice or a map, because each is decoded from
//     protobuf.
//   - Pods of one template are as similar as those of a ReplicaSet; templates differ in images, environment,
//     arguments, labels, probes and resources.
//
// For example, the first hundred pods of a cluster with the usual number of workloads, and the next change of each:
//
//	set := testpods.New(1, testpods.DefaultTemplates)
//	for i := range 100 {
//		pod := set.Pod(i)
//		later := set.Changed(pod, i)
//		...
//	}
package testpods
