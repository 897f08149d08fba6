package server

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/mirador-k8s/mirador/object"
)

// At /fleet, objects with the same name in different clusters must have different names for every client. So the
// cluster is part of the namespace, "eu.web", and, for objects without a namespace, part of the name, "eu:node-1". A
// Namespace object has the name that paths and kubectl -n take, "eu.web". Names of clusters and namespaces contain
// neither a dot nor a colon.

// inFleet returns the namespace and name of an object at /fleet.
func inFleet(cluster string, key object.Key, shape *fleetShape) (namespace, name string) {
	namespace, name = key.Split()
	if namespace == "" {
		return "", fleetPrefix(cluster, shape.prefixKind()) + name
	}
	return cluster + "." + namespace, name
}

// ofFleetNamespace splits a namespace of /fleet. ok is false for a name that no namespace can have there.
func ofFleetNamespace(shown string) (cluster, namespace string, ok bool) {
	cluster, namespace, ok = strings.Cut(shown, ".")
	return cluster, namespace, ok && cluster != "" && namespace != ""
}

// ofFleetName splits the name of an object without a namespace at /fleet.
func ofFleetName(shown string) (cluster, name string, ok bool) {
	cluster, name, ok = strings.Cut(shown, ":")
	return cluster, name, ok && cluster != "" && name != ""
}

// resolvePath replaces the names in a path of /fleet by the cluster and its own names. A list or watch of a namespace
// without a cluster, such as the "default" of a kubeconfig, is about this namespace of every cluster.
func (t *target) resolvePath() error {
	switch {
	case t.namespace != "":
		cluster, namespace, ok := ofFleetNamespace(t.namespace)
		if ok {
			t.cluster, t.namespace = cluster, namespace
			return nil
		}
		if t.name == "" {
			return nil // the namespace of this name in every cluster
		}
		// Some clients have fixed namespaces: kubectl describe node reads the lease eu:node-1 in kube-node-lease.
		if t.cluster, t.name, ok = cutFleetName(t.name); !ok {
			return badRequest("an object at /fleet is in a namespace of one cluster, such as eu.%s, not in %[1]q",
				clip(t.namespace))
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

// resolve replaces the names of /fleet in the path and the field selector by the cluster and its own names. A request
// for one name or one namespace is a request to one cluster.
func (req *request) resolve() error {
	if err := req.resolvePath(); err != nil {
		return err
	}
	if req.FieldSelector == nil || req.FieldSelector.Empty() {
		return nil
	}
	var own []fields.Selector
	for _, q := range req.FieldSelector.Requirements() {
		// Other values are a cluster's own names, and match objects of every cluster.
		named := q.Field == byNamespace && strings.Contains(q.Value, ".") ||
			q.Field == byName && strings.Contains(q.Value, req.nameSeparator())
		switch cluster, value, ok := req.ownValue(q.Field, q.Value); {
		case !named:
		case q.Operator == selection.NotEquals || !ok || req.cluster != "" && req.cluster != cluster:
			return badRequest("%s must equal one name of /fleet, such as eu.web or eu:node-1", q.Field)
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

// cutFleetName is like ofFleetName, but returns other names unchanged.
func cutFleetName(shown string) (cluster, name string, ok bool) {
	if cluster, name, ok = ofFleetName(shown); !ok {
		return "", shown, false
	}
	return cluster, name, true
}

// errNoFleetName is the error for a name that no object can have at /fleet.
func errNoFleetName(t *target) error {
	st := apierrors.NewNotFound(t.groupResource(), t.name).ErrStatus
	form := "cluster:name, such as eu:node-1"
	if t.isNamespaces() {
		form = "cluster.namespace, such as eu.web"
	}
	st.Message = fmt.Sprintf("%s: names at /fleet are %s", st.Message, form)
	return &apierrors.StatusError{ErrStatus: st}
}

// isNamespaces reports whether the request is for Namespace objects.
func (t *target) isNamespaces() bool { return t.group == "" && t.resource == "namespaces" }

// nameSeparator returns the separator between the cluster and the name of an object without a namespace.
func (t *target) nameSeparator() string {
	if t.isNamespaces() {
		return "."
	}
	return ":"
}

// ownValue splits a name or namespace of /fleet into the cluster and its own name.
func (t *target) ownValue(field, value string) (cluster, own string, ok bool) {
	if field == byNamespace || t.isNamespaces() {
		return ofFleetNamespace(value)
	}
	return ofFleetName(value)
}
