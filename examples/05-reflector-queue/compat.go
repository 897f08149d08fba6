// Package reflectorqueue lets a reflector list and watch pods into a DeltaFIFO.
//
// The queue has no known objects, so it never returns Deleted: once an object was popped, the queue does not know it,
// and ignores the delete of an unknown object. 06-reflector-store corrects that.
//
// In the session, a finalizer separates the last update and the delete of a pod. If the update were still queued when
// the delete arrives, the queue would know the pod, and the delete would be returned.
//
// The original program is unchanged, except that a context ends it.
package reflectorqueue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// Compat is the original program, written with client-go's names.
func Compat(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	podLW := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace, fields.Everything())

	df := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KeyFunction: cache.MetaNamespaceKeyFunc})
	rf := cache.NewReflector(podLW, &v1.Pod{}, df, 0)

	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		rf.Run(ctx.Done())
		df.Close()
	})

	for {
		_, err := df.Pop(func(obj interface{}, isInInitialList bool) error {
			for _, delta := range obj.(cache.Deltas) {
				fmt.Fprintln(out, delta.Type, ":", delta.Object.(*v1.Pod).Name, ":", delta.Object.(*v1.Pod).Status.Phase)
			}
			return nil
		})
		if errors.Is(err, cache.ErrFIFOClosed) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
