package clientset

import (
	"context"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Run is the original program. It uses no informer: every call is a request to the API server.
func Run(ctx context.Context, kubeconfig, namespace string, out io.Writer) error {
	config, err := NewK8sConfig(kubeconfig)
	if err != nil {
		return err
	}
	cliset, err := config.InitClient()
	if err != nil {
		return err
	}
	configMaps, err := cliset.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, cm := range configMaps.Items {
		fmt.Fprintf(out, "configName: %v, configData: %v \n", cm.Name, cm.Data)
	}
	return nil
}
