package server

import (
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/query"
)

// A field selector has the same meaning as at an API server. For each kind an API server knows a few labels, some of
// which are computed or defaulted, and refuses all others. Here a label that it refuses is accepted if it is the path
// of a field in the kind's schema. A misspelled label is still refused, with the API server's message.

// kindLabels are the field labels that an API server knows for one kind.
type kindLabels struct {
	known map[string]query.Field
	// refusal is the format of the message for any other label.
	refusal string
}

const (
	refusedUsually = "field label not supported: %s"
	refusedOfJobs  = "field label %q not supported for Job"
	refusedSlices  = "field label not supported for resource.k8s.io/%s, Kind=ResourceSlice: %s"
	// refusedDefault is for kinds without labels of their own.
	refusedDefault = "%q is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
)

// labelField is a label and the paths of the fields that may have its value.
type labelField struct {
	label    string
	paths    []string
	defaults string
}

// fieldsNamed returns labels that are the paths of their fields.
func fieldsNamed(labels ...string) (out []labelField) {
	for _, l := range labels {
		out = append(out, labelField{label: l, paths: []string{l}})
	}
	return out
}

func labelsOf(refusal string, fields ...labelField) kindLabels {
	k := kindLabels{known: map[string]query.Field{}, refusal: refusal}
	for _, f := range fields {
		field := query.Field{Default: f.defaults}
		for _, text := range f.paths {
			path, err := query.ParsePath(text)
			if err != nil {
				panic(fmt.Sprintf("the built-in table of field labels is invalid: %v", err))
			}
			field.Paths = append(field.Paths, path)
		}
		k.known[f.label] = field
	}
	return k
}

const (
	byName      = "metadata.name"
	byNamespace = "metadata.namespace"
)

// builtinLabels has the kinds with labels of their own, as of Kubernetes 1.36. A label without a path is accepted by
// an API server but has no value in any object.
var builtinLabels = sync.OnceValue(func() map[schema.GroupKind]kindLabels {
	return map[schema.GroupKind]kindLabels{
		{Kind: "Pod"}: labelsOf(refusedUsually, append(
			fieldsNamed(byName, byNamespace, "spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
				"spec.serviceAccountName",
				"status.phase", "status.podIP", "status.nominatedNodeName"),
			labelField{label: "spec.host", paths: []string{"spec.nodeName"}},
			labelField{label: "spec.hostNetwork", paths: []string{"spec.hostNetwork"}, defaults: "false"},
			labelField{label: "status.podIPs"})...),
		{Kind: "Node"}: labelsOf(refusedUsually, append(fieldsNamed(byName),
			labelField{label: "spec.unschedulable", paths: []string{"spec.unschedulable"}, defaults: "false"})...),
		{Kind: "ReplicationController"}: labelsOf(refusedUsually, append(fieldsNamed(byName, byNamespace),
			labelField{label: "status.replicas", paths: []string{"status.replicas"}, defaults: "0"})...),
		{Kind: "Event"}: labelsOf(refusedUsually, append(
			fieldsNamed(append(referenceLabels("involvedObject"), byName, byNamespace, "reason",
				"reportingComponent", "type")...),
			labelField{label: "source", paths: []string{"source.component", "reportingComponent"}})...),
		{Group: "events.k8s.io", Kind: "Event"}: labelsOf(refusedUsually,
			fieldsNamed(append(referenceLabels("regarding"), byName, byNamespace, "reason",
				"reportingController", "type")...)...),
		{Kind: "Namespace"}: labelsOf(refusedUsually, fieldsNamed(byName, "status.phase")...),
		{Kind: "Secret"}:    labelsOf(refusedUsually, fieldsNamed(byName, byNamespace, "type")...),
		{Kind: "Service"}:   labelsOf(refusedUsually, fieldsNamed(byName, byNamespace, "spec.clusterIP", "spec.type")...),
		{Group: "batch", Kind: "Job"}: labelsOf(refusedOfJobs, append(fieldsNamed(byName, byNamespace),
			labelField{label: "status.successful", paths: []string{"status.succeeded"}, defaults: "0"})...),
		{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: labelsOf(refusedUsually,
			fieldsNamed(byName, "spec.signerName")...),
		{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}: labelsOf(refusedUsually,
			fieldsNamed(byName, "spec.signerName")...),
		{Group: "certificates.k8s.io", Kind: "PodCertificateRequest"}: labelsOf(refusedUsually,
			fieldsNamed(byName, "spec.signerName", "spec.podName", "spec.nodeName")...),
		{Group: "resource.k8s.io", Kind: "ResourceSlice"}: labelsOf(refusedSlices,
			fieldsNamed(byName, "spec.nodeName", "spec.driver")...),
	}
})

// defaultLabels are those of all other built-in kinds.
var defaultLabels = sync.OnceValue(func() kindLabels {
	return labelsOf(refusedDefault, fieldsNamed(byName, byNamespace)...)
})

// referenceLabels returns the labels of an event for the object that it is about.
func referenceLabels(member string) []string {
	var out []string
	for _, f := range []string{"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"} {
		out = append(out, member+"."+f)
	}
	return out
}

// refuse returns the error for an unknown label.
func (k *kindLabels) refuse(gvk schema.GroupVersionKind, label string) error {
	if k.refusal == refusedSlices {
		return badRequest(k.refusal, gvk.Version, label)
	}
	return badRequest(k.refusal, label)
}

// fieldMeaning returns a function that finds the field of a label. If the CustomResourceDefinitions of the clusters
// differ, it accepts a label that any of them has.
func (s *Server) fieldMeaning(places []place) func(label string) (query.Field, error) {
	return func(label string) (query.Field, error) {
		var refused error
		for _, p := range places {
			f, err := s.selectableField(p, label)
			if err == nil {
				return f, nil
			}
			if refused == nil {
				refused = err
			}
		}
		if refused == nil {
			refused = errNoResource()
		}
		return query.Field{}, refused
	}
}

func (s *Server) selectableField(p place, label string) (query.Field, error) {
	path, err := query.ParsePath(label)
	isPath := err == nil
	if label == byName {
		return query.FieldAt(path), nil
	}
	gvk, namespaced := p.res.GVK(), p.res.Info().Namespaced
	labels, builtin := builtinLabels()[gvk.GroupKind()]
	var custom *customVersion
	if !builtin {
		if custom = s.customVersion(p); custom != nil {
			labels = custom.labels(namespaced)
		} else {
			labels = defaultLabels()
		}
	}
	if f, ok := labels.known[label]; ok {
		return f, nil
	}
	if !isPath {
		return query.Field{}, labels.refuse(gvk, label)
	}
	if f, ok := labels.known[path.String()]; ok {
		return f, nil // another notation, such as {.spec.nodeName}
	}
	if path.String() == byNamespace && !namespaced || !hasField(gvk, custom, path) {
		return query.Field{}, labels.refuse(gvk, label)
	}
	return query.FieldAt(path), nil
}

// labels returns the labels that an API server knows for the custom resource.
func (c *customVersion) labels(namespaced bool) kindLabels {
	fields := fieldsNamed(byName)
	if namespaced {
		fields = append(fields, fieldsNamed(byNamespace)...)
	}
	for _, f := range c.SelectableFields {
		label := strings.TrimPrefix(f.JSONPath, ".")
		if _, err := query.ParsePath(label); err == nil {
			fields = append(fields, fieldsNamed(label)...)
		}
	}
	return labelsOf(refusedUsually, fields...)
}
