package factory

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Config returns the factory's config, so that a test's own client shares its connections and leaves none open.
func Config(f *Factory) *rest.Config { return f.cfg }

// Namespaced reports whether a resource is namespaced, as known without a request.
func Namespaced(gvr schema.GroupVersionResource) (namespaced, known bool) {
	return (&Factory{}).namespaced(gvr)
}
