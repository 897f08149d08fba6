// Package clientset loads a kubeconfig, makes from it the three clients that one
// works with, and lists ConfigMaps with the first of them. The other two are shown
// in 19-dynamic-client and 20-discovery.
//
// Corrected in the original program: the path of the kubeconfig is given and not
// somebody's home directory; errors are returned, where the original ends the process;
// the kubeconfig is read once; and List takes a context, as it has since client-go
// 0.18.
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

// NewK8sConfig reads a kubeconfig. An empty path means $KUBECONFIG, or
// ~/.kube/config where that is not set.
func NewK8sConfig(path string) (*K8sConfig, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig; give its path, or set KUBECONFIG: %w", err)
	}
	return &K8sConfig{config: config}, nil
}

// K8sRestConfig gives what all clients are made from.
func (c *K8sConfig) K8sRestConfig() *rest.Config { return c.config }

// InitClient makes a clientset: a method for each kind that Kubernetes itself serves.
func (c *K8sConfig) InitClient() (*kubernetes.Clientset, error) {
	return kubernetes.NewForConfig(c.config)
}

// InitDynamicClient makes a client for resources of any kind, as maps.
func (c *K8sConfig) InitDynamicClient() (dynamic.Interface, error) {
	return dynamic.NewForConfig(c.config)
}

// InitDiscoveryClient makes a client that asks what resources there are.
func (c *K8sConfig) InitDiscoveryClient() (*discovery.DiscoveryClient, error) {
	return discovery.NewDiscoveryClientForConfig(c.config)
}
