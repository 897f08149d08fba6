// Package list lists the pods of a namespace once, which is how every mirror starts.
//
// The original program is unchanged except for its hard-coded namespace.
package list

import (
	"context"
	"fmt"
	"io"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// Compat is the original program, written with client-go's names.
func Compat(_ context.Context, config *rest.Config, namespace string, out io.Writer) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	podLW := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace, fields.Everything())
	//lint:ignore SA1019 the original calls it
	list, err := podLW.List(metav1.ListOptions{})
	if err != nil {
		return err
	}
	podList := list.(*v1.PodList)
	for _, pod := range podList.Items {
		fmt.Fprintln(out, pod.Name)
	}
	return nil
}
