// Package simulate has many small clusters: simulated API servers over TLS and HTTP/2 in one process, with many
// resources each, most of them empty, as in a large fleet. Some of the clusters have pods.
//
//	sims, err := simulate.Start(dir, simulate.Size{Clusters: 100, Resources: 60, WithPods: 10, Pods: 1000})
//	defer sims.Stop()
package simulate

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/mirador-k8s/mirador/dev/bench/feed"
)

// Size is what is simulated.
type Size struct {
	Clusters, Resources int
	// WithPods is how many of the clusters have pods, and Pods how many each of those has.
	WithPods, Pods int
}

// Templates is the number of workloads in a cluster with pods.
const Templates = 10

// Clusters are running simulated clusters.
type Clusters struct {
	size    Size
	server  *httptest.Server
	all     []*cluster
	answers *answers
	states  atomic.Int64
}

// Start starts the clusters and writes a kubeconfig of each into a folder.
func Start(dir string, size Size) (*Clusters, error) {
	served, err := newAnswers(size.Resources)
	if err != nil {
		return nil, err
	}
	c := &Clusters{size: size, answers: served}
	for i := range size.Clusters {
		one := &cluster{of: c, number: i}
		if i < size.WithPods {
			one.pods = feed.NewCluster(feed.Seed+uint64(i), size.Pods, Templates)
		}
		c.all = append(c.all, one)
	}
	c.server = httptest.NewUnstartedServer(c)
	c.server.EnableHTTP2 = true
	c.server.StartTLS()
	for i := range c.all {
		if err := os.WriteFile(filepath.Join(dir, Name(i)+".yaml"), c.kubeconfig(i), 0o600); err != nil {
			c.Stop()
			return nil, fmt.Errorf("write the kubeconfig of a simulated cluster: %w", err)
		}
	}
	return c, nil
}

// Name returns the name of a cluster.
func Name(i int) string { return "sim" + strconv.Itoa(i) }

func (c *Clusters) kubeconfig(i int) []byte {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw})
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "%s/%s", certificate-authority-data: %s}}]
users: [{name: u, user: {token: of-%[2]s}}]
contexts: [{name: %[2]s, context: {cluster: c, user: u}}]
current-context: %[2]s
`, c.server.URL, Name(i), base64.StdEncoding.EncodeToString(ca))
}

// States returns how many states of resources were sent to their end.
func (c *Clusters) States() int { return int(c.states.Load()) }

// Stop ends all connections.
func (c *Clusters) Stop() {
	c.server.CloseClientConnections()
	c.server.Close()
}

// ServeHTTP answers a request to the cluster that is the first part of the path.
func (c *Clusters) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	i, err := strconv.Atoi(strings.TrimPrefix(name, "sim"))
	if err != nil || i < 0 || i >= len(c.all) {
		http.NotFound(w, r)
		return
	}
	r.URL.Path = "/" + path
	c.all[i].ServeHTTP(w, r)
}

// PodPath returns the path of one pod after the other in a cluster.
func (c *Clusters) PodPath(cluster, i int) string {
	pod := c.all[cluster].pods.Pod(i * 7919 % c.size.Pods)
	return "/api/v1/namespaces/" + pod.Namespace + "/pods/" + pod.Name
}

// WorkloadSelector returns the label selector of one workload after the other in a cluster.
func (c *Clusters) WorkloadSelector(cluster, i int) string {
	pod := c.all[cluster].pods.Pod(i * 31 % min(Templates, c.size.Pods))
	return "pod-template-hash%3D" + pod.Labels["pod-template-hash"]
}
