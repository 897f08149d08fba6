// Package kindkept is about the first of the two pitfalls of the originals: "an object that comes from an informer has
// lost its kind and apiVersion; how is that solved?"
//
// client-go's decoder clears both on every typed object. An informer on a caller's own ListWatch receives such objects
// and must not write to them. SetTransform may: it runs once for each object, before it is stored. The sources of the
// typed API decode by themselves and keep both.
package kindkept

import (
	"context"
	"fmt"
	"io"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// Compat shows the pitfall and its solution side by side.
func Compat(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	var informers []cache.SharedInformer
	for _, way := range []struct {
		name      string
		transform cache.TransformFunc
	}{{"lost:", nil}, {"kept:", withKind}} {
		podLW := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace, fields.Everything())
		informer := cache.NewSharedInformer(podLW, &v1.Pod{}, 0)
		if err := informer.SetTransform(way.transform); err != nil {
			return err
		}
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj interface{}) { show(out, way.name, obj.(*v1.Pod)) },
		})
		if err != nil {
			return err
		}
		informers = append(informers, informer)
	}
	var running sync.WaitGroup
	for _, informer := range informers {
		running.Go(func() { informer.Run(ctx.Done()) })
	}
	running.Wait()
	return nil
}

// withKind writes kind and apiVersion, as client-go's scheme has them, into an object.
func withKind(obj interface{}) (interface{}, error) {
	o, ok := obj.(runtime.Object)
	if !ok {
		return obj, nil // a DeletedFinalStateUnknown: its object was transformed before
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		return nil, err
	}
	o.GetObjectKind().SetGroupVersionKind(kinds[0])
	return o, nil
}

func show(out io.Writer, way string, pod *v1.Pod) {
	fmt.Fprintf(out, "%s %s apiVersion=%q kind=%q\n", way, pod.Name, pod.APIVersion, pod.Kind)
}
