package informertest

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mirador-k8s/mirador/object"
)

// resource is one served resource with the history of its objects.
type resource struct {
	gvr        schema.GroupVersionResource
	kind       string
	namespaced bool
	// typed says that client-go's scheme knows the kind: it can be served as
	// protobuf, and the items of its JSON lists carry no kind.
	typed bool
	// bookmarks counts the calls of Server.Bookmark.
	bookmarks uint64
	// gone is closed when the resource is no longer served.
	gone chan struct{}

	revisions map[object.Key][]revision
	// sorted holds the keys of revisions in order; nil when it must be rebuilt.
	sorted []object.Key
}

func newResource(gvr schema.GroupVersionResource, kind string, namespaced bool) *resource {
	r := &resource{gvr: gvr, kind: kind, namespaced: namespaced, gone: make(chan struct{}),
		revisions: map[object.Key][]revision{}}
	if o, err := scheme.Scheme.New(r.gvk()); err == nil {
		_, r.typed = o.(runtime.ProtobufMarshaller)
	}
	return r
}

func (r *resource) gvk() schema.GroupVersionKind { return r.gvr.GroupVersion().WithKind(r.kind) }

func (r *resource) keys() []object.Key {
	if r.sorted == nil {
		r.sorted = make([]object.Key, 0, len(r.revisions))
		for k := range r.revisions {
			r.sorted = append(r.sorted, k)
		}
		slices.Sort(r.sorted)
	}
	return r.sorted
}

// verbs are the verbs that every resource supports.
var verbs = []string{"create", "delete", "deletecollection", "get", "list", "update", "watch"}

// builtins are the resources that every server starts with: "group/version: kinds"; a star marks cluster-scoped kinds.
var builtins = map[string]string{
	"v1": "Pod ConfigMap Secret Service Endpoints Event ServiceAccount PersistentVolumeClaim ReplicationController " +
		"LimitRange ResourceQuota PodTemplate *Namespace *Node *PersistentVolume",
	"apps/v1":                      "Deployment ReplicaSet StatefulSet DaemonSet ControllerRevision",
	"batch/v1":                     "Job CronJob",
	"autoscaling/v2":               "HorizontalPodAutoscaler",
	"policy/v1":                    "PodDisruptionBudget",
	"coordination.k8s.io/v1":       "Lease",
	"discovery.k8s.io/v1":          "EndpointSlice",
	"networking.k8s.io/v1":         "Ingress NetworkPolicy *IngressClass",
	"rbac.authorization.k8s.io/v1": "Role RoleBinding *ClusterRole *ClusterRoleBinding",
	"storage.k8s.io/v1":            "*StorageClass *CSINode *CSIDriver *VolumeAttachment",
	"scheduling.k8s.io/v1":         "*PriorityClass",
}

// plural returns the resource name of a built-in kind.
func plural(kind string) string {
	name := strings.ToLower(kind)
	switch {
	case name == "endpoints":
		return name
	case strings.HasSuffix(name, "s"):
		return name + "es"
	case strings.HasSuffix(name, "cy"):
		return strings.TrimSuffix(name, "y") + "ies"
	}
	return name + "s"
}

func (s *Server) registerBuiltins() {
	for gv, kinds := range builtins {
		group, version, ok := strings.Cut(gv, "/")
		if !ok {
			group, version = "", gv
		}
		for _, kind := range strings.Fields(kinds) {
			name := strings.TrimPrefix(kind, "*")
			gvr := schema.GroupVersionResource{Group: group, Version: version, Resource: plural(name)}
			s.resources[gvr] = newResource(gvr, name, name == kind)
		}
	}
}

// Register makes the server serve one more resource, as creating a CustomResourceDefinition does. The usual built-in
// resources are registered from the start.
func (s *Server) Register(gvr schema.GroupVersionResource, kind string, namespaced bool) error {
	if gvr.Version == "" || gvr.Resource == "" || kind == "" {
		return fmt.Errorf("registering resource %q of kind %q: version, resource and kind must be given", gvr, kind)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resources[gvr] != nil {
		return fmt.Errorf("registering resource %q: it is served already; unregister it first", gvr)
	}
	s.resources[gvr] = newResource(gvr, kind, namespaced)
	return nil
}

// Unregister stops serving a resource, as deleting its CustomResourceDefinition does: its objects are deleted, open
// watches send the deletions and end, and every later request gets 404 until the resource is registered again.
// Discovery no longer lists it.
func (s *Server) Unregister(gvr schema.GroupVersionResource) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.resources[gvr]
	if r == nil {
		return fmt.Errorf("unregistering resource %q: it is not served", gvr)
	}
	for _, e := range s.history.list(r, s.history.version) {
		if _, err := s.history.remove(r, e); err != nil {
			return err
		}
	}
	delete(s.resources, gvr)
	close(r.gone)
	s.wakeWatches()
	return nil
}

// byKind returns the resource that serves a kind. The lock is held.
func (s *Server) byKind(gvk schema.GroupVersionKind) *resource {
	for _, r := range s.resources {
		if r.gvk() == gvk {
			return r
		}
	}
	return nil
}
