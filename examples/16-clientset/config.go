// Package clientset loads a kubeconfig, makes the three usual clients from it, and lists ConfigMaps with the first.
// 17-dynamic-client and 18-discovery show the other two.
//
// Corrected in the original program: the path of the kubeconfig is an argument; errors are returned, where the original
// ends the process; the kubeconfig is read once; and List takes a context, as it has since client-go 0.18.
package clientset

import (
	"fmt"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// K8sConfig makes clients of one cluster.
type K8sConfig struct {
	config *rest.Config
}

// NewK8sConfig reads a kubeconfig. An empty path means $KUBECONFIG, or ~/.kube/config if that is not set.
func NewK8sConfig(path string) (*K8sConfig, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig; give its path, or set KUBECONFIG: %w", err)
	}
	return &K8sConfig{config: config}, nil
}

// K8sRestConfig returns the config that all clients are made from.
func (c *K8sConfig) K8sRestConfig() *rest.Config { return c.config }

// InitClient returns a clientset, which has methods for each kind of Kubernetes itself.
func (c *K8sConfig) InitClient() (*kubernetes.Clientset, error) {
	return kubernetes.NewForConfig(c.config)
}

// InitDynamicClient returns a client for resources of any kind, as maps.
func (c *K8sConfig) InitDynamicClient() (dynamic.Interface, error) {
	return dynamic.NewForConfig(c.config)
}

// InitDiscoveryClient returns a client that asks which resources exist.
func (c *K8sConfig) InitDiscoveryClient() (*discovery.DiscoveryClient, error) {
	return discovery.NewDiscoveryClientForConfig(c.config)
}
