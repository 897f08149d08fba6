// Package watch watches the pods of a namespace: it receives the existing pods as ADDED, then every change.
//
// Corrected in the original program: it loops forever once the server has closed the watch, which servers do every few
// minutes, and panics on an event without a pod, with which a server reports an error. Here both end the program. To
// continue where the watch ended, use the reflector of 05-reflector-queue.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/compat/cache"
)

var errClosed = errors.New("the server has closed the watch; run the program again")

// Compat is the original program, written with client-go's names.
func Compat(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	podLW := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace, fields.Everything())
	//lint:ignore SA1019 the originals call it
	watcher, err := podLW.Watch(metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer watcher.Stop()

	for {
		select {
		case <-ctx.Done():
			return nil
		case v, ok := <-watcher.ResultChan():
			if !ok {
				return errClosed
			}
			pod, ok := v.Object.(*v1.Pod)
			if !ok {
				return fmt.Errorf("watching pods: %w", apierrors.FromObject(v.Object))
			}
			fmt.Fprintln(out, v.Type, ":", pod.Name, ", Status: ", pod.Status.Phase)
		}
	}
}
