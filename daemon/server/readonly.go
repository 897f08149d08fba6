package server

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// errReadOnly is the error for a request that only the cluster's own API server can answer: a write, or a subresource
// that is not part of the object, such as a pod's log. It names that server.
func (s *Server) errReadOnly(r *http.Request, t *target) error {
	method := r.Method
	st := apierrors.NewMethodNotSupported(t.groupResource(), method).ErrStatus
	what := "which does not answer " + clip(method)
	switch {
	case t.subresource != "" && (method == http.MethodGet || method == http.MethodHead || !isObjectItself(t.subresource)):
		what = fmt.Sprintf("which has no %s of %s", clip(t.subresource), clip(t.resource))
	case t.resource == "":
		st.Details = nil
	}
	st.Message = fmt.Sprintf("this is a read-only mirror, %s: send it to %s", what, s.ownServer(r, t))
	return &apierrors.StatusError{ErrStatus: st}
}

// isObjectItself reports whether a subresource is part of the object.
func isObjectItself(subresource string) bool {
	return subresource == "status" || subresource == "scale"
}

// ownServer describes the API server of the cluster that a request is about, if the user may know the cluster.
func (s *Server) ownServer(r *http.Request, t *target) string {
	at := *t
	if t.fleet && t.cluster == "" && at.resolvePath() != nil {
		at.cluster = ""
	}
	if c, ok := s.fleet.Cluster(at.cluster); ok && s.mayKnow(r, at.cluster) {
		return fmt.Sprintf("the API server of cluster %q itself, %s", c.Name(), c.ServerURL())
	}
	return "the API server of the cluster itself"
}

// isMetrics reports whether a group is one of the metrics APIs, which kubectl top reads. They cannot be watched, so
// they are not mirrored.
func isMetrics(group string) bool {
	return group == "metrics.k8s.io" || strings.HasSuffix(group, ".metrics.k8s.io")
}

// errMetrics is the error for requests to a metrics API.
func (s *Server) errMetrics(r *http.Request, t *target) error {
	st := apierrors.NewNotFound(t.groupResource(), t.name).ErrStatus
	st.Message = fmt.Sprintf("this is a mirror, which has no metrics: ask %s", s.ownServer(r, t))
	return &apierrors.StatusError{ErrStatus: st}
}
