package feed

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

const (
	rbacGroup = `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"rbac.authorization.k8s.io","versions":[` +
		rbacV1 + `],"preferredVersion":` + rbacV1 + `}]}`
	rbacV1        = `{"groupVersion":"rbac.authorization.k8s.io/v1","version":"v1"}`
	rbacResources = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"rbac.authorization.k8s.io/v1",` +
		`"resources":[{"name":"roles","singularName":"role","namespaced":true,"kind":"Role",` +
		`"verbs":["get","list","watch"]},` +
		`{"name":"rolebindings","singularName":"rolebinding","namespaced":true,"kind":"RoleBinding",` +
		`"verbs":["get","list","watch"]},` +
		`{"name":"clusterroles","singularName":"clusterrole","namespaced":false,"kind":"ClusterRole",` +
		`"verbs":["get","list","watch"]},` +
		`{"name":"clusterrolebindings","singularName":"clusterrolebinding","namespaced":false,"kind":"ClusterRoleBinding",` +
		`"verbs":["get","list","watch"]}]}`
	rbacPath = "/apis/rbac.authorization.k8s.io/v1"
)

// SetRights gives the cluster roles and bindings, which never change. It must be called before the cluster serves.
func (c *Cluster) SetRights(objects []runtime.Object) error {
	c.rights = map[string][]byte{}
	kinds := map[string]string{"roles": "Role", "rolebindings": "RoleBinding", "clusterroles": "ClusterRole",
		"clusterrolebindings": "ClusterRoleBinding"}
	for i, o := range objects {
		var resource string
		switch o.(type) {
		case *rbacv1.Role:
			resource = "roles"
		case *rbacv1.RoleBinding:
			resource = "rolebindings"
		case *rbacv1.ClusterRole:
			resource = "clusterroles"
		case *rbacv1.ClusterRoleBinding:
			resource = "clusterrolebindings"
		default:
			return fmt.Errorf("a cluster has roles and bindings as rights, not %T", o)
		}
		meta := o.(metav1.Object)
		meta.SetResourceVersion(strconv.Itoa(i + 1))
		meta.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", i)))
		o.GetObjectKind().SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kinds[resource]))
		if err := c.addRight(resource, "ADDED", o); err != nil {
			return err
		}
	}
	for resource, kind := range kinds {
		end := &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind},
			ObjectMeta: metav1.ObjectMeta{ResourceVersion: beforeChanges,
				Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
		if err := c.addRight(resource, "BOOKMARK", end); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) addRight(resource, event string, o any) error {
	line, err := json.Marshal(map[string]any{"type": event, "object": o})
	if err != nil {
		return fmt.Errorf("encode a role or binding: %w", err)
	}
	path := rbacPath + "/" + resource
	c.rights[path] = append(append(c.rights[path], line...), '\n')
	return nil
}

// serveRights answers discovery and watches of roles and bindings. It reports whether the request is one of these.
func (c *Cluster) serveRights(w http.ResponseWriter, r *http.Request) bool {
	answer, ok := c.rights[r.URL.Path]
	switch {
	case ok && !asksForState(r):
		status(w, http.StatusGone, "Expired")
	case ok:
		if _, err := w.Write(answer); err == nil && http.NewResponseController(w).Flush() == nil {
			<-r.Context().Done()
		}
	case r.URL.Path == "/apis":
		io.WriteString(w, rbacGroup) // the client sees it
	case r.URL.Path == rbacPath:
		io.WriteString(w, rbacResources)
	default:
		return false
	}
	return true
}
