package server

import (
	"encoding/json"
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server/table"
)

// scalable are the resources with a scale subresource, which is made from the object.
var scalable = map[schema.GroupResource]bool{
	{Group: "apps", Resource: "deployments"}:  true,
	{Group: "apps", Resource: "replicasets"}:  true,
	{Group: "apps", Resource: "statefulsets"}: true,
	{Resource: "replicationcontrollers"}:      true,
}

// hasSubresource reports whether a mirror can answer for a subresource.
func hasSubresource(gr schema.GroupResource, subresource string) bool {
	return subresource == "" || subresource == "status" || subresource == "scale" && scalable[gr]
}

// scale renders the complete answer for the scale of one object.
func (r *renderer) scale(cluster string, e *fleet.Entry, version string) (body []byte, err error) {
	raw, err := scaleOf(r.show(nil, cluster, e, version))
	if err != nil {
		return nil, err
	}
	switch r.form {
	case metadata:
		body, err = appendPartial(nil, raw)
	case asTable:
		own := r.clone()
		own.printer = scalePrinter{}
		if body, err = own.tableHead(nil, metav1.ListMeta{ResourceVersion: version}, true); err == nil {
			if body, err = own.row(body, cluster, e.Key, raw); err == nil {
				body = append(body, "]}"...)
			}
		}
	default:
		body = raw
	}
	return append(body, '\n'), err
}

// scaleOf encodes the scale of an object.
func scaleOf(obj []byte) ([]byte, error) {
	var scaled struct {
		Metadata metav1.ObjectMeta
		Spec     struct {
			Replicas int32
			Selector json.RawMessage
		}
		Status struct{ Replicas int32 }
	}
	if err := json.Unmarshal(obj, &scaled); err != nil {
		return nil, fmt.Errorf("make the scale of an object: its JSON does not have the form of its kind; get the object " +
			"itself to see it")
	}
	meta := &scaled.Metadata
	scale := autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{Kind: "Scale", APIVersion: "autoscaling/v1"},
		ObjectMeta: metav1.ObjectMeta{Name: meta.Name, Namespace: meta.Namespace, UID: meta.UID,
			ResourceVersion:   meta.ResourceVersion,
			CreationTimestamp: meta.CreationTimestamp},
		Spec:   autoscalingv1.ScaleSpec{Replicas: scaled.Spec.Replicas},
		Status: autoscalingv1.ScaleStatus{Replicas: scaled.Status.Replicas, Selector: selectorText(scaled.Spec.Selector)},
	}
	return json.Marshal(scale)
}

// selectorText formats a selector as in a query. A ReplicationController has a map of labels instead of a selector.
func selectorText(raw json.RawMessage) string {
	var plain map[string]string
	if json.Unmarshal(raw, &plain) == nil {
		return labels.SelectorFromSet(plain).String()
	}
	var full metav1.LabelSelector
	if json.Unmarshal(raw, &full) != nil {
		return ""
	}
	sel, err := metav1.LabelSelectorAsSelector(&full)
	if err != nil {
		return ""
	}
	return sel.String()
}

// scalePrinter prints scales as an API server does.
type scalePrinter struct{}

// Columns implements table.Printer.
func (scalePrinter) Columns() []metav1.TableColumnDefinition {
	meta := metav1.ObjectMeta{}.SwaggerDoc()
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Description: meta["name"]},
		{Name: "Desired", Type: "integer", Description: autoscalingv1.ScaleSpec{}.SwaggerDoc()["replicas"]},
		{Name: "Available", Type: "integer", Description: autoscalingv1.ScaleStatus{}.SwaggerDoc()["replicas"]},
		{Name: "Age", Type: "string", Description: meta["creationTimestamp"]},
	}
}

// Row implements table.Printer.
func (scalePrinter) Row(raw []byte, now time.Time) (table.Row, error) {
	var s autoscalingv1.Scale
	if err := json.Unmarshal(raw, &s); err != nil {
		return table.Row{}, err
	}
	age := "<unknown>"
	if !s.CreationTimestamp.IsZero() {
		age = duration.HumanDuration(now.Sub(s.CreationTimestamp.Time))
	}
	return table.Row{Cells: []any{s.Name, int64(s.Spec.Replicas), int64(s.Status.Replicas), age}}, nil
}
