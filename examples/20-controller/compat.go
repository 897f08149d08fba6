package controller

import (
	"context"
	"io"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// Compat feeds the controller from an informer with client-go's names.
func Compat(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	c := newController(client, out)
	defer c.queue.ShutDown()
	lw := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", namespace, fields.Everything())
	informer := cache.NewSharedIndexInformer(lw, &corev1.ConfigMap{}, 0, cache.Indexers{})
	c.get = func(key string) (*corev1.ConfigMap, bool, error) {
		obj, exists, err := informer.GetIndexer().GetByKey(key)
		if err != nil || !exists {
			return nil, false, err
		}
		return obj.(*corev1.ConfigMap), true, nil
	}
	enqueue := func(obj interface{}) {
		// The object of a delete may be a DeletedFinalStateUnknown, which has no namespace and name.
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
			c.queue.Add(key)
		}
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, obj interface{}) { enqueue(obj) },
		DeleteFunc: enqueue,
	})
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { informer.Run(ctx.Done()) })
	if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		c.work(ctx)
	}
	return nil
}
