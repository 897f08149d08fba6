package component

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/mirador-k8s/mirador/dev/devcluster/internal/part"
)

// reapers is how many pods are deleted at the same time.
const reapers = 8

// doomed identifies one pod, and not a later one of the same name.
type doomed struct {
	namespace, name string
	uid             types.UID
}

// reap acts as the kubelet in the deletion of pods with part.HandsOffLabel: as soon as one is marked for deletion, its
// containers count as ended and it is deleted. It reads only metadata and keeps only part of it: there may be tens of
// thousands of such pods.
func reap(ctx context.Context, config *rest.Config) error {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a metadata client: %w", err)
	}
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[doomed](50*time.Millisecond, 5*time.Second))
	informer := metadatainformer.NewFilteredMetadataInformer(client, pods, metav1.NamespaceAll, 0, nil,
		func(o *metav1.ListOptions) { o.LabelSelector = part.HandsOffLabel }).Informer()
	if err := informer.SetTransform(deletionOnly); err != nil {
		return fmt.Errorf("set up the watch for deletions: %w", err)
	}
	consider := func(obj any) {
		if m, ok := obj.(*metav1.PartialObjectMetadata); ok && m.DeletionTimestamp != nil {
			queue.Add(doomed{m.Namespace, m.Name, m.UID})
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    consider,
		UpdateFunc: func(_, obj any) { consider(obj) },
	}); err != nil {
		return fmt.Errorf("set up the watch for deletions: %w", err)
	}

	var wg sync.WaitGroup
	for range reapers {
		wg.Go(func() {
			for {
				pod, stopped := queue.Get()
				if stopped {
					return
				}
				now := int64(0)
				err := client.Resource(pods).Namespace(pod.namespace).Delete(ctx, pod.name, metav1.DeleteOptions{
					GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.uid}})
				if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
					queue.Forget(pod)
				} else if ctx.Err() == nil {
					fmt.Fprintf(os.Stderr, "kwok: delete pod %s/%s: %v\n", pod.namespace, pod.name, err)
					queue.AddRateLimited(pod)
				}
				queue.Done(pod)
			}
		})
	}
	informer.RunWithContext(ctx)
	queue.ShutDown()
	wg.Wait()
	return nil
}

// deletionOnly keeps the part of a pod's metadata that reap uses.
func deletionOnly(obj any) (any, error) {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID,
		ResourceVersion: m.ResourceVersion, DeletionTimestamp: m.DeletionTimestamp,
	}}, nil
}
