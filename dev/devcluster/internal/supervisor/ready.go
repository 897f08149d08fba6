package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// How long each step may take before the start fails, far above what a loaded machine with two cores needs.
const (
	etcdTimeout      = 30 * time.Second
	apiServerTimeout = 90 * time.Second
	workTimeout      = 90 * time.Second
	pollInterval     = 100 * time.Millisecond
)

// poll calls check until it returns nothing left to wait for, or an error. It ends early when ctx does, with its
// cause.
func (c *Cluster) poll(ctx context.Context, timeout time.Duration,
	check func(context.Context) (missing string, err error)) error {
	deadline := time.Now().Add(timeout)
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		missing, err := check(ctx)
		if missing == "" || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("gave up after %v waiting for %s: see the logs in %s", timeout, missing, c.data.logs())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// waitEtcd waits until etcd accepts connections.
func (c *Cluster) waitEtcd(ctx context.Context) error {
	return c.poll(ctx, etcdTimeout, func(context.Context) (string, error) {
		conn, err := net.Dial("unix", c.etcdSocket)
		if err != nil {
			return "etcd to serve", nil
		}
		conn.Close()
		return "", nil
	})
}

// waitAPIServer waits until the API server reports that it is ready. It returns errEnded if the process ends instead.
func (c *Cluster) waitAPIServer(ctx context.Context, ch *child) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	return c.poll(ctx, apiServerTimeout, func(ctx context.Context) (string, error) {
		if ch.ended() {
			return "", errEnded
		}
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		if _, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
			return "the API server to be ready", nil
		}
		return "", nil
	})
}

var errEnded = errors.New("the process ended")

// waitWorking waits until the controllers and the fake nodes work.
func (c *Cluster) waitWorking(ctx context.Context, client kubernetes.Interface) error {
	said := time.Now()
	return c.poll(ctx, workTimeout, func(ctx context.Context) (string, error) {
		var missing []string
		if _, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
			missing = append(missing, "the default service account")
		}
		if ready := c.readyNodes(ctx, client); ready < c.entry.Nodes {
			missing = append(missing, fmt.Sprintf("nodes (%d of %d are ready)", ready, c.entry.Nodes))
		}
		what := strings.Join(missing, " and ")
		if what != "" && time.Since(said) > time.Second {
			c.say("waiting for %s", what)
			said = time.Now()
		}
		return what, nil
	})
}

// readyNodes counts the nodes that are Ready and whose lease has been renewed since this start: a kept folder may have
// Ready nodes from an earlier run.
func (c *Cluster) readyNodes(ctx context.Context, client kubernetes.Interface) int {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return 0
	}
	leases, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx,
		metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return 0
	}
	renewed := map[string]bool{}
	for _, l := range leases.Items {
		renewed[l.Name] = l.Spec.RenewTime != nil && l.Spec.RenewTime.After(c.entry.Started)
	}
	ready := 0
	for _, n := range nodes.Items {
		if renewed[n.Name] && slices.ContainsFunc(n.Status.Conditions, isReady) {
			ready++
		}
	}
	return ready
}

func isReady(c corev1.NodeCondition) bool {
	return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
}

// client returns an administrator's client of the cluster.
func (c *Cluster) client() (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.data.kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = -1, 0
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the cluster: %w", err)
	}
	return client, nil
}
