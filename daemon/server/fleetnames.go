package server

import (
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// resolvePath turns the names in the path of a request for all clusters into those of the one cluster that it is about.
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
			return apierrors.NewBadRequest(fmt.Sprintf("namespaces are cluster.namespace here, such as eu.web, and %q is none", clip(t.namespace)))
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
		named := q.Field == byNamespace && strings.Contains(q.Value, ".") || q.Field == byName && strings.Contains(q.Value, req.nameSeparator())
		switch cluster, value, ok := req.ownValue(q.Field, q.Value); {
		case !named:
		case q.Operator == selection.NotEquals || !ok || req.cluster != "" && req.cluster != cluster:
			return apierrors.NewBadRequest(fmt.Sprintf("%s must equal one of the fleet's own names here, such as eu.web or eu:node-1", q.Field))
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

// narrow leaves out the clusters that have no object with a reference that a field selector asks for.
func (f *fleetShape) narrow(places []place, sel fields.Selector) []place {
	if f == nil || sel == nil {
		return places
	}
	for _, q := range sel.Requirements() {
		if q.Operator == selection.NotEquals {
			continue
		}
		cluster, ok := f.clusterOf(q.Field, q.Value)
		for i := range places {
			if ok && places[i].cluster == cluster {
				return places[i : i+1]
			}
		}
	}
	return places
}

// shownBuffers are where objects are unpacked before they are changed into what is shown.
var shownBuffers = sync.Pool{New: func() any { return new([]byte) }}

// bytes gives objects of a cluster as selectors see them: as they are shown, but for their versions. It is nil
// without a shape.
func (f *fleetShape) bytes(cluster string) func(e *fleet.Entry, dst []byte) []byte {
	if f == nil {
		return nil
	}
	return func(e *fleet.Entry, dst []byte) []byte {
		raw := shownBuffers.Get().(*[]byte)
		*raw = fleet.Bytes(e, (*raw)[:0])
		dst = appendForFleet(dst, *raw, cluster, e.Key, string(e.Version), f)
		if cap(*raw) <= maxShownBuffer {
			shownBuffers.Put(raw)
		}
		return dst
	}
}

// maxShownBuffer is the largest buffer that is kept for other objects.
const maxShownBuffer = 1 << 20
