// Package reflectorstore is 05-reflector-queue with a store beside the queue: the consumer stores what it pops, the
// queue asks the store for known objects, and Deleted arrives.
//
// Corrected in the original program: the object of a Deleted need not be a pod. If the delete was missed and a later
// list shows that the pod no longer exists, the object is a DeletedFinalStateUnknown with the last known pod inside,
// and the original type assertion panics. The store's key function must know that wrapper too, or the pod would stay
// in the store.
package reflectorstore

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
	store := cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc)
	df := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{
		KeyFunction:  cache.MetaNamespaceKeyFunc,
		KnownObjects: store,
	})
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
				pod := podOf(delta.Object)
				fmt.Fprintln(out, delta.Type, ":", pod.Name, ":", pod.Status.Phase)
				switch delta.Type {
				case cache.Sync, cache.Added:
					store.Add(delta.Object)
				case cache.Updated:
					store.Update(delta.Object)
				case cache.Deleted:
					store.Delete(delta.Object)
				}
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

func podOf(obj interface{}) *v1.Pod {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	return obj.(*v1.Pod)
}
