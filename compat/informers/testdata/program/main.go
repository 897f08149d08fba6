// Program uses compat as a controller would: shared informers, a factory, a queue, a
// reflector. A test builds it and checks which engine it contains.
package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/compat/dynamicinformer"
	"github.com/mirador-k8s/mirador/compat/informers"
	"github.com/mirador-k8s/mirador/compat/metadatainformer"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	config := &rest.Config{Host: "https://127.0.0.1:1"}
	client := kubernetes.NewForConfigOrDie(config)
	handler := cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { fmt.Println(obj) }}

	factory := informers.NewSharedInformerFactory(client, time.Minute)
	pods := factory.Core().V1().Pods()
	handle, err := pods.Informer().AddEventHandler(handler)
	fmt.Println(handle.HasSynced(), err)
	byResource, err := factory.ForResource(corev1.SchemeGroupVersion.WithResource("services"))
	fmt.Println(byResource.Informer().HasSynced(), err)
	factory.StartWithContext(ctx)
	fmt.Println(factory.WaitForCacheSyncWithContext(ctx).AsError())
	fmt.Println(pods.Lister().List(labels.Everything()))
	factory.Shutdown()

	nodes := corev1.SchemeGroupVersion.WithResource("nodes")
	dyn := dynamicinformer.NewDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(config), 0)
	fmt.Println(dyn.ForResource(nodes).Lister().List(labels.Everything()))
	meta := metadatainformer.NewSharedInformerFactory(metadata.NewForConfigOrDie(config), 0)
	fmt.Println(meta.ForResource(nodes).Lister().List(labels.Everything()))

	lw := cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll,
		func(*metav1.ListOptions) {})
	shared := cache.NewSharedIndexInformer(lw, &corev1.Pod{}, time.Minute,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	shared.RunWithContext(ctx)
	store, controller := cache.NewInformer(lw, &corev1.Pod{}, 0, handler)
	controller.RunWithContext(ctx)

	fifo := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: store})
	reflector := cache.NewReflector(lw, &corev1.Pod{}, fifo, 0)
	reflector.RunWithContext(ctx)
	fmt.Println(fifo.List(), reflector.LastSyncResourceVersion(), cache.NewThreadSafeStore(nil, nil).ListKeys())
}
