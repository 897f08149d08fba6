// Package members finds the members of a fleet in the cluster that the daemon runs in, its home cluster.
//
// InPod gives the configuration of the home cluster, from the files of the pod's service account. Members follows
// objects of one of its namespaces:
//
//   - Secrets with a label, each with the kubeconfig of a cluster. Such a kubeconfig can neither run nor read anything
//     on this machine, because whoever may write Secrets there need not be the daemon's operator.
//   - ClusterProfile objects of multicluster.x-k8s.io/v1alpha1, with an access provider for the credentials. The
//     providers secretreader and kubeconfig-secretreader are built in: they read Secrets of the namespace. Others are
//     credential plugins that the operator names in a file.
//
// A cluster joins when its object appears, and leaves when the object is deleted. Other credentials are used in place:
// the cluster does not leave, and none of its watches ends. If an object cannot be used, or the home cluster cannot be
// reached, the clusters stay as they are.
package members
