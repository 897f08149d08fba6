package informers

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/compat/internal/pool"
)

// resource is the common part of the accessors, such as Core().V1().Pods().
type resource struct {
	*sharedInformerFactory
	gvr schema.GroupVersionResource
}

func in(f *sharedInformerFactory, group, version, name string) resource {
	return resource{f, gvr(group, version, name)}
}

func gvr(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

// informer returns the shared informer of a resource. If there is none, it makes one that
// reads with client.
func informer[List runtime.Object](r resource, example runtime.Object,
	client func(c kubernetes.Interface, namespace string) pool.Client[List]) cache.SharedIndexInformer {
	return r.InformerFor(example, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return cache.With(r.options).NewSharedIndexInformerWithOptions(
			pool.ListWatch(c, client(c, r.namespace), r.tweak), example,
			cache.SharedIndexInformerOptions{
				ResyncPeriod: resync,
				Indexers:     cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
				Identifier:   r.name.WithResource(r.gvr),
			})
	})
}
