// Package testcluster gives Go tests a real Kubernetes cluster.
//
//	func TestSomething(t *testing.T) {
//		cluster := testcluster.Start(t)
//		client := kubernetes.NewForConfigOrDie(cluster.Config())
//		ns := cluster.Namespace(t)
//		...
//	}
//
// What it promises:
//
//   - One cluster per test binary, started by the first call of [Start] and
//     shared by all tests; each test keeps to a [Cluster.Namespace] of its own.
//     [StartAnother] starts one more, for one test.
//   - The cluster ends with the test binary, however that ends: it lives as long
//     as a pipe that only this process holds open.
//   - No goroutine of this package is left between calls, so that goleak can be
//     used next to it.
//   - A test that needs the cluster fails when there is none, and the failure
//     says what to run. Only make quick skips it.
//
// The cluster is `bin/devcluster`, built by `make devcluster`; the environment
// variable DEVCLUSTER names another binary.
package testcluster
