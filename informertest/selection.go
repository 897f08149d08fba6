package informertest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mirador-k8s/mirador/object"
)

// selectableFields are the fields beyond name and namespace by which built-in
// resources can be selected.
var selectableFields = map[string][]string{
	"pods": {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
		"status.phase", "status.podIP", "status.nominatedNodeName"},
	"events": {"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
		"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
		"reportingComponent", "source", "type"},
	"secrets":    {"type"},
	"namespaces": {"status.phase"},
	"nodes":      {"spec.unschedulable"},
}

// selection is the part of a resource that a request selects.
type selection struct {
	namespace, name string
	labels          labels.Selector
	fields          fields.Selector
}

// selection parses a request's namespace, name and selectors.
func (c *call) selection() (selection, error) {
	sel := selection{namespace: c.req.Namespace, name: c.req.Name}
	var err error
	if sel.labels, err = labels.Parse(c.req.Query.Get("labelSelector")); err != nil {
		return sel, apierrors.NewBadRequest(fmt.Sprintf("unable to parse requirement: %v", err))
	}
	if sel.fields, err = fields.ParseSelector(c.req.Query.Get("fieldSelector")); err != nil {
		return sel, apierrors.NewBadRequest(err.Error())
	}
	for _, req := range sel.fields.Requirements() {
		if req.Field != "metadata.name" && req.Field != "metadata.namespace" &&
			!(c.res.typed && slices.Contains(selectableFields[c.res.gvr.Resource], req.Field)) {
			return sel, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", req.Field))
		}
	}
	return sel, nil
}

func (s selection) whole() bool { return s.labels.Empty() && s.fields.Empty() }

func (s selection) matches(e *entry) bool {
	if e == nil || s.namespace != "" && s.namespace != e.namespace || s.name != "" && s.name != e.name {
		return false
	}
	return s.labels.Matches(e.labels) && (s.fields.Empty() || s.fields.Matches(&fieldsOf{entry: e}))
}

func (c *call) key() object.Key { return object.NewKey(c.req.Namespace, c.req.Name) }

// fieldsOf presents an entry to a field selector; the body is decoded only if the selector uses a field outside the
// metadata.
type fieldsOf struct {
	entry   *entry
	content map[string]any
}

// Has reports whether the object can be selected by a field at all.
func (f *fieldsOf) Has(field string) bool { return true }

// Get returns a field's value as text, or "" if it is not set.
func (f *fieldsOf) Get(field string) string {
	switch field {
	case "metadata.name":
		return f.entry.name
	case "metadata.namespace":
		return f.entry.namespace
	case "source":
		field = "source.component"
	}
	if f.content == nil {
		json.Unmarshal(f.entry.body, &f.content)
	}
	var at any = f.content
	for part := range strings.SplitSeq(field, ".") {
		m, _ := at.(map[string]any)
		at = m[part]
	}
	switch v := at.(type) {
	case nil:
		if field == "spec.hostNetwork" || field == "spec.unschedulable" {
			return "false"
		}
		return ""
	default:
		return fmt.Sprint(v)
	}
}
