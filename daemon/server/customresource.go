package server

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server/table"
	"github.com/mirador-k8s/mirador/object"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions"}

// definition returns the CustomResourceDefinition of a resource from its mirror, nil if there is none.
func (s *Server) definition(p place) *fleet.Entry {
	c, ok := s.fleet.Cluster(p.cluster)
	if !ok {
		return nil
	}
	defs, ok := c.Resource(definitions)
	if !ok {
		return nil
	}
	gvr := p.res.GVR()
	e, _ := defs.Entry(object.NewKey("", gvr.Resource+"."+gvr.Group))
	return e
}

// customVersion has the fields that are used of one version of a CustomResourceDefinition.
type customVersion struct {
	Name                     string          `json:"name"`
	AdditionalPrinterColumns json.RawMessage `json:"additionalPrinterColumns"`
	SelectableFields         []struct {
		JSONPath string `json:"jsonPath"`
	} `json:"selectableFields"`
	Schema struct {
		OpenAPIV3Schema json.RawMessage `json:"openAPIV3Schema"`
	} `json:"schema"`
}

// customVersion decodes the definition of a custom resource. It is nil for other resources, and has no name if the
// definition cannot be decoded.
func (s *Server) customVersion(p place) *customVersion {
	e := s.definition(p)
	if e == nil {
		return nil
	}
	var d struct {
		Spec struct {
			Versions []customVersion `json:"versions"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(fleet.Bytes(e, nil), &d); err == nil {
		for i := range d.Spec.Versions {
			if d.Spec.Versions[i].Name == p.res.GVR().Version {
				return &d.Spec.Versions[i]
			}
		}
	}
	return &customVersion{}
}

// printer returns the printer of a resource, with the columns of its definition or the built-in ones. own is true for
// the former.
func (s *Server) printer(p place) (_ table.Printer, own bool) {
	if custom := s.customVersion(p); custom != nil && custom.Name != "" {
		if p := custom.printer(); p != nil {
			return p, true
		}
	}
	return table.For(p.res.GVK()), false
}

// printer returns a printer with the columns of the definition, nil if they cannot be decoded.
func (c *customVersion) printer() table.Printer {
	var columns []table.Column
	if len(c.AdditionalPrinterColumns) > 0 && json.Unmarshal(c.AdditionalPrinterColumns, &columns) != nil {
		return nil
	}
	p, err := table.ForCRD(columns)
	if err != nil {
		p, err = table.ForCRD(nil) // an API server falls back to the default columns, too
	}
	if err != nil {
		return nil
	}
	return p
}
