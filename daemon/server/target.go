package server

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// target is what a request asks for, read from its path.
type target struct {
	fleet   bool   // all clusters at once
	cluster string // one of them
	rest    string // the path below the prefix, as the cluster itself would see it

	// Of a request for objects.
	group, version, resource string
	namespace, name          string
	subresource              string
}

func (t *target) groupResource() schema.GroupResource {
	if t == nil {
		return schema.GroupResource{}
	}
	return schema.GroupResource{Group: t.group, Resource: t.resource}
}

func (t *target) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: t.group, Version: t.version, Resource: t.resource}
}

// parseTarget reads a path. ok is false where it is no path of the Kubernetes API.
func parseTarget(path string) (t target, ok bool) {
	switch first, rest := cut(path); first {
	case "fleet":
		t.fleet, t.rest = true, "/"+rest
	case "clusters":
		t.cluster, rest = cut(rest)
		t.rest = "/" + rest
		if t.cluster == "" {
			return t, false
		}
	default:
		return t, false
	}
	t.readObjects(strings.Split(strings.Trim(t.rest, "/"), "/"))
	return t, true
}

// cut takes the first segment off a path.
func cut(path string) (first, rest string) {
	first, rest, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first, rest
}

// readObjects reads what follows /api/v1 or /apis/{group}/{version}.
func (t *target) readObjects(parts []string) {
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.group, t.version, parts = parts[1], parts[2], parts[3:]
	default:
		return
	}
	if parts[0] == "namespaces" && len(parts) >= 3 && !(t.group == "" && isNamespaceSubresource(parts[2]) && len(parts) == 3) {
		t.namespace, parts = parts[1], parts[2:]
	}
	t.resource = parts[0]
	if len(parts) > 1 {
		t.name = parts[1]
	}
	if len(parts) > 2 {
		t.subresource = strings.Join(parts[2:], "/")
	}
}

// isNamespaceSubresource tells /namespaces/web/status from /namespaces/web/pods.
func isNamespaceSubresource(s string) bool { return s == "status" || s == "finalize" }

// isWatch reports whether a list is asked to go on as a watch. As for an API server, every value but "false" and "0"
// means so, also an empty one.
func isWatch(r *http.Request) bool {
	values, watch := r.URL.Query()["watch"], false
	return runtime.Convert_Slice_string_To_bool(&values, &watch, nil) == nil && watch
}
