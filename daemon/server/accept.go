package server

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/munnerz/goautoneg"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// form is how an answer shows objects.
type form uint8

const (
	whole    form = iota
	metadata      // PartialObjectMetadata
	asTable       // Table
)

const (
	jsonType = "application/json"
	metaV1   = "meta.k8s.io/v1"
)

// formOf returns the form that an Accept header asks for: the first supported one in the order of preference.
func formOf(accept string) (form, error) {
	for _, kind := range acceptedKinds(accept) {
		switch {
		case kind.Empty():
			return whole, nil
		case kind.Group != metav1.GroupName || kind.Version != "v1":
			continue
		case kind.Kind == "Table":
			return asTable, nil
		case kind.Kind == "PartialObjectMetadata", kind.Kind == "PartialObjectMetadataList":
			return metadata, nil
		}
	}
	return whole, errNotAcceptable("application/json, and of it Table and PartialObjectMetadata of meta.k8s.io/v1")
}

// acceptedKinds returns the kinds in the clauses of an Accept header that accept JSON, the most preferred first. A
// clause that does not ask for a conversion has the zero kind. Clauses for other media types and unsupported streams
// are left out. Order, weights and wildcards have the same meaning as for an API server.
func acceptedKinds(accept string) []schema.GroupVersionKind {
	if accept == "" {
		return []schema.GroupVersionKind{{}}
	}
	var kinds []schema.GroupVersionKind
	for _, c := range goautoneg.ParseAccept(accept) {
		isJSON := c.Type == "application" && (c.SubType == "json" || c.SubType == "*") || c.Type == "*" && c.SubType == "*"
		if stream := c.Params["stream"]; !isJSON || stream != "" && stream != "watch" {
			continue
		}
		kinds = append(kinds, schema.GroupVersionKind{Group: c.Params["g"], Version: c.Params["v"], Kind: c.Params["as"]})
	}
	return kinds
}

// acceptsPlain reports whether a request accepts JSON that is not converted to another kind.
func acceptsPlain(r *http.Request) bool {
	for _, kind := range acceptedKinds(r.Header.Get("Accept")) {
		if kind.Empty() {
			return true
		}
	}
	return false
}

// aggregatedVersion returns the version of aggregated discovery that a request accepts, v2 or v2beta1, and "" if it
// accepts neither. Clients of Kubernetes 1.26 to 1.29 know only v2beta1. API servers no longer have it since 1.33, but
// the documents are the same, and without it these clients need a request for each group.
func aggregatedVersion(r *http.Request) string {
	best := ""
	for _, kind := range acceptedKinds(r.Header.Get("Accept")) {
		switch {
		case kind.Group != "apidiscovery.k8s.io" || kind.Kind != "APIGroupDiscoveryList":
		case kind.Version == "v2":
			return kind.Version
		case kind.Version == "v2beta1":
			best = kind.Version
		}
	}
	return best
}

func errNotAcceptable(have string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: " + have,
	}}
}

// acceptsGzip reports whether an answer may be compressed.
func acceptsGzip(r *http.Request) bool {
	for _, coding := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, params, _ := strings.Cut(coding, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		key, value, weighted := strings.Cut(params, "=")
		if !weighted || !strings.EqualFold(strings.TrimSpace(key), "q") {
			return true
		}
		weight, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		return err == nil && weight > 0
	}
	return false
}
