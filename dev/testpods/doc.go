// Package testpods makes pods as a real API server and kubelets would have
// them, for tests and measurements that must not flatter: random uids and
// container ids, distinct times, managedFields of three managers, the
// kube-api-access volume that makes each pod's volumes its own.
//
// What it promises:
//
//   - Pod(i) depends on the seed, the number of templates and i alone.
//   - Every call returns an object of its own: no two of them share a string, a
//     slice or a map, because each comes out of the protobuf decoder.
//   - Pods of one template are alike as those of a ReplicaSet are; templates
//     differ in images, environment, arguments, labels, probes and resources.
//
// For example, the first hundred pods of a cluster with the usual number of
// workloads, and the same pod a change later:
//
//	set := testpods.New(1, testpods.DefaultTemplates)
//	for i := range 100 {
//		pod := set.Pod(i)
//		later := set.Changed(pod, i)
//		...
//	}
package testpods
