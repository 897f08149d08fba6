package server

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// form is how an answer shows objects.
type form uint8

const (
	whole    form = iota
	metadata      // PartialObjectMetadata
	asTable       // rows, as kubectl prints them
)

const (
	jsonType = "application/json"
	metaV1   = "meta.k8s.io/v1"
)

// formOf reads what a client accepts. Of what it offers, in its order, the first that can be
// given counts.
func formOf(accept string) (form, error) {
	for _, kind := range jsonOffers(accept) {
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

// pretty reports whether a person reads the answer.
func pretty(r *http.Request) bool {
	switch r.URL.Query().Get("pretty") {
	case "":
		agent := r.UserAgent()
		return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget")
	case "0", "false":
		return false
	}
	return true
}
