package server

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/mirador-k8s/mirador/object"
)

// In the view of all clusters an object must differ from its namesake in another cluster, for
// any client. So its namespace is that of its cluster, "eu.web", and where it has none its name is,
// "eu:node-1". A Namespace object has the name that paths and kubectl -n take, "eu.web". Neither a cluster's name
// nor a namespace has a dot or a colon in it.

// inFleet gives the namespace and name under which all clusters' view shows an object.
func inFleet(cluster string, key object.Key, shape *fleetShape) (namespace, name string) {
	namespace, name = key.Split()
	if namespace == "" {
		return "", fleetPrefix(cluster, shape.prefixKind()) + name
	}
	return cluster + "." + namespace, name
}

// ofFleetNamespace is the way back. ok is false for a name that no cluster's namespace has.
func ofFleetNamespace(shown string) (cluster, namespace string, ok bool) {
	cluster, namespace, ok = strings.Cut(shown, ".")
	return cluster, namespace, ok && cluster != "" && namespace != ""
}

// ofFleetName is the way back for an object without a namespace.
func ofFleetName(shown string) (cluster, name string, ok bool) {
	cluster, name, ok = strings.Cut(shown, ":")
	return cluster, name, ok && cluster != "" && name != ""
}

// resolvePath turns the names in the path of a request for all clusters into those of the one cluster that it is
// about.
func (t *target) resolvePath() error {
	switch {
	case t.namespace != "":
		cluster, namespace, ok := ofFleetNamespace(t.namespace)
		if ok {
			t.cluster, t.namespace = cluster, namespace
			return nil
		}
		// Some clients know a namespace by heart: kubectl describe node reads the lease eu:node-1 in kube-node-lease.
		if t.cluster, t.name, ok = cutFleetName(t.name); !ok {
			return badRequest("namespaces are cluster.namespace here, such as eu.web, and %q is none", clip(t.namespace))
		}
	case t.name != "":
		cluster, name, ok := t.ownValue(byName, t.name)
		if !ok {
			return errNoFleetName(t)
		}
		t.cluster, t.name = cluster, name
	}
	return nil
}

// resolve turns names of the fleet into a cluster's own. Whoever asks for one name or one namespace
// asks for one cluster.
func (req *request) resolve() error {
	if err := req.resolvePath(); err != nil {
		return err
	}
	if req.FieldSelector == nil || req.FieldSelector.Empty() {
		return nil
	}
	var own []fields.Selector
	for _, q := range req.FieldSelector.Requirements() {
		// Others are those of objects in any cluster.
		named := q.Field == byNamespace && strings.Contains(q.Value, ".") ||
			q.Field == byName && strings.Contains(q.Value, req.nameSeparator())
		switch cluster, value, ok := req.ownValue(q.Field, q.Value); {
		case !named:
		case q.Operator == selection.NotEquals || !ok || req.cluster != "" && req.cluster != cluster:
			return badRequest("%s must equal one of the fleet's own names here, such as eu.web or eu:node-1", q.Field)
		default:
			req.cluster, q.Value = cluster, value
		}
		if q.Operator == selection.NotEquals {
			own = append(own, fields.OneTermNotEqualSelector(q.Field, q.Value))
		} else {
			own = append(own, fields.OneTermEqualSelector(q.Field, q.Value))
		}
	}
	req.fields = fields.AndSelectors(own...).String()
	return nil
}

// cutFleetName is ofFleetName for a name that may be none, which stays as it is.
func cutFleetName(shown string) (cluster, name string, ok bool) {
	if cluster, name, ok = ofFleetName(shown); !ok {
		return "", shown, false
	}
	return cluster, name, true
}

// errNoFleetName is for a name that no object has in the view of all clusters.
func errNoFleetName(t *target) error {
	st := apierrors.NewNotFound(t.groupResource(), t.name).ErrStatus
	form := "cluster:name, such as eu:node-1"
	if t.isNamespaces() {
		form = "cluster.namespace, such as eu.web"
	}
	st.Message = fmt.Sprintf("%s: here, in the view of all clusters, names are %s", st.Message, form)
	return &apierrors.StatusError{ErrStatus: st}
}

// isNamespaces reports whether the request is for Namespace objects.
func (t *target) isNamespaces() bool { return t.group == "" && t.resource == "namespaces" }

// nameSeparator stands between the cluster and the name of an object without a namespace.
func (t *target) nameSeparator() string {
	if t.isNamespaces() {
		return "."
	}
	return ":"
}

// ownValue turns a name or a namespace of the view of all clusters into the cluster's own.
func (t *target) ownValue(field, value string) (cluster, own string, ok bool) {
	if field == byNamespace || t.isNamespaces() {
		return ofFleetNamespace(value)
	}
	return ofFleetName(value)
}
