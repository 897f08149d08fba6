package informertest

import (
	"errors"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// clause is one media type of an Accept header.
type clause struct {
	mediaType string
	params    map[string]string
}

// accepted returns what a request accepts, in order. Weights are ignored: Kubernetes clients put what they prefer
// first.
func accepted(r *http.Request) []clause {
	var out []clause
	for _, header := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(header, ",") {
			mediaType, params, err := mime.ParseMediaType(part)
			if err == nil {
				out = append(out, clause{mediaType, params})
			}
		}
	}
	if len(out) == 0 {
		out = []clause{{mediaType: "*/*"}}
	}
	return out
}

func (c clause) protobuf() bool { return c.mediaType == mediaProtobuf }

func (c clause) json() bool {
	return c.mediaType == mediaJSON || c.mediaType == "*/*" || c.mediaType == "application/*"
}

// negotiate picks the form of a response. Tables are not supported: a client that asks for one gets the next form that
// it accepts.
func negotiate(r *http.Request, res *resource) (form, error) {
	for _, c := range accepted(r) {
		as := c.params["as"]
		partial := as == "PartialObjectMetadata" || as == "PartialObjectMetadataList"
		if partial && (c.params["g"] != "meta.k8s.io" || c.params["v"] != "v1") || as != "" && !partial {
			continue
		}
		if c.json() {
			return form{metadata: partial}, nil
		}
		if c.protobuf() && (partial || res.typed) {
			return form{protobuf: true, metadata: partial}, nil
		}
	}
	return form{}, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: application/json, application/vnd.kubernetes.protobuf",
	}}
}

// errorForm picks the form of an error: protobuf only if that is the first accepted form.
func errorForm(r *http.Request) form {
	return form{protobuf: accepted(r)[0].protobuf()}
}

// writeError answers with a Status, as the API server does for every error.
func writeError(w http.ResponseWriter, r *http.Request, err error) {
	st := statusOf(err)
	writeStatus(w, errorForm(r), st)
}

func statusOf(err error) metav1.Status {
	if api, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return api.ErrStatus
	}
	return apierrors.NewInternalError(err).Status()
}
