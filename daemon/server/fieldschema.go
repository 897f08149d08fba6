package server

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mirador-k8s/mirador/daemon/query"
)

// step is one step of a path: the name of a member, or an element of an array.
type step struct {
	name    string
	element bool
}

// hasField reports whether objects of a kind can have a string, number or bool at a path. If the schema of the kind is
// not known, as for an aggregated API, only paths in the metadata are accepted.
func hasField(gvk schema.GroupVersionKind, custom *customVersion, path query.Path) bool {
	var steps []step
	for name, element := range path.Steps() {
		steps = append(steps, step{name, element})
	}
	if custom != nil && steps[0].name != "metadata" && steps[0].name != "kind" && steps[0].name != "apiVersion" {
		return schemaHas(custom.Schema.OpenAPIV3Schema, steps)
	}
	t, ok := scheme.Scheme.AllKnownTypes()[gvk]
	if !ok || custom != nil {
		t = reflect.TypeFor[metav1.PartialObjectMetadata]()
	}
	return typeHas(t, steps)
}

// scalarTypes are struct types that are encoded as a string or a number.
var scalarTypes = []reflect.Type{
	reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[metav1.Duration](),
	reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString](),
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// typeHas reports whether steps lead through a Go type, by JSON names, to a string, number or bool.
func typeHas(t reflect.Type, steps []step) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case slices.Contains(scalarTypes, t):
		return len(steps) == 0
	case t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler):
		return true // its encoding is unknown
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return len(steps) == 0 // bytes are a string
	case len(steps) == 0:
		return t.Kind() != reflect.Struct && t.Kind() != reflect.Map && t.Kind() != reflect.Slice
	case steps[0].element:
		return t.Kind() == reflect.Slice && typeHas(t.Elem(), steps[1:])
	case t.Kind() == reflect.Map:
		return typeHas(t.Elem(), steps[1:])
	case t.Kind() == reflect.Struct:
		member, ok := memberType(t, steps[0].name)
		return ok && typeHas(member, steps[1:])
	}
	return false
}

// memberType returns the type of the field of a struct that has a name in JSON.
func memberType(t reflect.Type, name string) (reflect.Type, bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "" && f.Anonymous {
			if member, ok := memberType(f.Type, name); ok {
				return member, true
			}
		}
		if tag == name {
			return f.Type, true
		}
	}
	return nil, false
}

// schemaNode has the fields that are used of one level of an OpenAPI schema.
type schemaNode struct {
	Type        string                     `json:"type"`
	Properties  map[string]json.RawMessage `json:"properties"`
	Items       json.RawMessage            `json:"items"`
	Additional  json.RawMessage            `json:"additionalProperties"`
	Preserve    bool                       `json:"x-kubernetes-preserve-unknown-fields"`
	IntOrString bool                       `json:"x-kubernetes-int-or-string"`
}

// schemaHas reports whether steps lead through an OpenAPI schema to a string, number or bool.
func schemaHas(raw json.RawMessage, steps []step) bool {
	var n schemaNode
	if len(raw) == 0 || json.Unmarshal(raw, &n) != nil {
		return false
	}
	if len(steps) == 0 {
		switch n.Type {
		case "string", "integer", "number", "boolean":
			return true
		}
		return n.IntOrString || n.Type == "" && n.Preserve
	}
	if steps[0].element {
		return len(n.Items) > 0 && schemaHas(n.Items, steps[1:]) || n.Type == "" && n.Preserve
	}
	if p, ok := n.Properties[steps[0].name]; ok {
		return schemaHas(p, steps[1:])
	}
	return n.Preserve || string(n.Additional) == "true" || schemaHas(n.Additional, steps[1:])
}
