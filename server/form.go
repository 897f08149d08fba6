package server

import (
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	if strings.TrimSpace(accept) == "" {
		return whole, nil
	}
	for _, clause := range strings.Split(accept, ",") {
		media, params, err := mime.ParseMediaType(strings.TrimSpace(clause))
		if err != nil {
			continue
		}
		if media != jsonType && media != "*/*" && media != "application/*" {
			continue
		}
		switch as := params["as"]; {
		case as == "":
			return whole, nil
		case params["g"] != metav1.GroupName || params["v"] != "v1":
			continue
		case as == "Table":
			return asTable, nil
		case as == "PartialObjectMetadata", as == "PartialObjectMetadataList":
			return metadata, nil
		}
	}
	return whole, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: application/json, and of it Table and PartialObjectMetadata of meta.k8s.io/v1",
	}}
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
