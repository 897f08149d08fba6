package factory

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Config is the factory's, so that a test's own client shares its connections and
// leaves none behind.
func Config(f *Factory) *rest.Config { return f.cfg }

// Namespaced is what is known of a resource without asking a server.
func Namespaced(gvr schema.GroupVersionResource) (namespaced, known bool) {
	return (&Factory{}).namespaced(gvr)
}
