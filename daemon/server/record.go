package server

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/access"
)

// requestRecord is what the audit log and the metrics say about a request. It is also the writer of the answer, so
// that it knows the status code. Handlers add what they find out. Only the goroutine of the request may use it,
// except for the user, which does not change once the request is routed.
type requestRecord struct {
	http.ResponseWriter
	server   *Server
	http     *http.Request
	received time.Time
	user     user.Info // nil if the request has no valid credentials

	actor         user.Info           // the user that sent the request, if that impersonates another; otherwise nil
	impersonation []access.Attributes // the rights that the actor needs for that
	credentials   *savedCredentials   // of a watch

	described bool // want, scope and cluster are set
	want      access.Attributes
	scope     string // of the path: cluster, fleet or daemon
	cluster   string // the only cluster that the request is about; "" if there is none, or several

	decision *access.Decision // nil if no right was asked for
	filtered bool             // the answer has only what the user may see
	failure  *metav1.Status   // the answer; nil if the request was answered otherwise
	refusal  string           // why the request was refused, as in the metrics

	code     int  // the status of the answer; 0 until it begins
	watching bool // the answer is a watch and has begun

	resourceLabel string    // set when a watch begins, or else at the end
	auditID       types.UID // empty if there is no audit log
}

// recordKey is the key of a request's record in its context.
type recordKey struct{}

// recordOf returns the record of a request, nil if there is none.
func recordOf(r *http.Request) *requestRecord {
	rec, _ := r.Context().Value(recordKey{}).(*requestRecord)
	return rec
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := &requestRecord{ResponseWriter: w, server: s, received: time.Now()}
	r = r.WithContext(context.WithValue(r.Context(), recordKey{}, rec))
	rec.http = r
	s.metrics.inFlight.Inc()
	returned := false
	defer func() { rec.end(!returned) }()
	if s.opts.Audit != nil {
		rec.beginAudit()
	}
	if _, ok := w.(http.Hijacker); ok {
		s.guard.ServeHTTP(hijackable{rec}, r)
	} else {
		s.guard.ServeHTTP(rec, r)
	}
	returned = true
}

// Unwrap returns the writer of the connection, for http.ResponseController.
func (rec *requestRecord) Unwrap() http.ResponseWriter { return rec.ResponseWriter }

// WriteHeader begins the answer.
func (rec *requestRecord) WriteHeader(code int) {
	rec.answer(code)
	rec.ResponseWriter.WriteHeader(code)
}

// Write writes a part of the answer.
func (rec *requestRecord) Write(b []byte) (int, error) {
	rec.answer(http.StatusOK)
	return rec.ResponseWriter.Write(b)
}

// hijackable is the record of a request whose connection can become a WebSocket.
type hijackable struct{ *requestRecord }

// Hijack takes over the connection.
func (h hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := h.ResponseWriter.(http.Hijacker).Hijack()
	if err == nil {
		h.answer(http.StatusSwitchingProtocols)
	}
	return conn, rw, err
}

// answer records the beginning of the answer. Calls after the first one do nothing.
func (rec *requestRecord) answer(code int) {
	if rec.code != 0 {
		return
	}
	rec.code = code
	if rec.described && rec.want.Verb == "watch" && code < http.StatusMultipleChoices {
		rec.watching = true
		rec.server.metrics.watchBegan(rec)
		rec.auditWatchBegan()
	}
}

// end records the end of the request.
func (rec *requestRecord) end(panicked bool) {
	switch {
	case panicked:
		rec.code = http.StatusInternalServerError
	case rec.code == 0:
		rec.code = http.StatusOK // net/http sends it if a handler sends nothing
	}
	if !rec.described {
		rec.describePath()
	}
	rec.server.metrics.ended(rec)
	rec.auditEnd(panicked)
}

// connectionWriter returns the writer of the connection. http.MaxBytesReader needs it to close the connection of a
// client that sends too much.
func connectionWriter(w http.ResponseWriter) http.ResponseWriter {
	for {
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = inner.Unwrap()
	}
}

// describe records what the request is for. rec may be nil.
func (rec *requestRecord) describe(want access.Attributes, scope, cluster string) {
	if rec != nil {
		rec.described, rec.want, rec.scope, rec.cluster = true, want, scope, cluster
	}
}

// Scopes of requests, by path.
const (
	scopeCluster = "cluster"
	scopeFleet   = "fleet"
	scopeDaemon  = "daemon" // every path that is not below /clusters/NAME or /fleet
)

func (t *target) scope() string {
	if t.fleet {
		return scopeFleet
	}
	return scopeCluster
}

// describePath records what the path says, for requests that are not for objects, or that were refused before they
// were parsed completely.
func (rec *requestRecord) describePath() {
	r := rec.http
	method := access.Attributes{Verb: strings.ToLower(r.Method), Path: r.URL.Path}
	t, ok := parseTarget(r.URL.Path)
	switch {
	case ok && t.resource != "":
		rec.describe(t.attributes(verbOf(r, &t)), t.scope(), t.cluster)
	case ok && (t.fleet || !isClusterItself(&t)):
		rec.describe(method, t.scope(), t.cluster)
	case ok || r.URL.Path == "/clusters":
		rec.describe(daemonAttributes(clusterVerb(r, t.cluster), t.cluster), scopeDaemon, t.cluster)
	default:
		rec.describe(method, scopeDaemon, "")
	}
}

// verbOf returns the verb of a request for objects, as an API server does.
func verbOf(r *http.Request, t *target) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		switch {
		case t.name != "":
			return "get"
		case isWatch(r):
			return "watch"
		}
		return "list"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if t.name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	return strings.ToLower(r.Method)
}

// decide records a decision about the rights of the user. The last one counts. rec may be nil.
func (rec *requestRecord) decide(d access.Decision) {
	if rec != nil {
		rec.decision = &d
	}
}

// fail records that the answer is an error. rec may be nil.
func (rec *requestRecord) fail(err error, status *metav1.Status) {
	if rec != nil {
		rec.failure, rec.refusal = status, refusalOf(err, status)
	}
}

// refusedError is an error with the name that the metrics have for the reason of a refusal.
type refusedError struct {
	*apierrors.StatusError
	reason string
}

// Reasons of refusals in the metrics.
const (
	refusedUnauthenticated = "unauthenticated" // no valid credentials
	refusedForbidden       = "forbidden"       // a missing right
	refusedHost            = "host"            // an unknown host name
	refusedOrigin          = "origin"          // a page of another origin
	refusedRate            = "rate"            // too many requests per second
	refusedShare           = "share"           // the client uses its share of memory
	refusedWatches         = "watches"         // too many open watches
	refusedBusy            = "busy"            // no turn to work within the time limit
	refusedTooLarge        = "too-large"       // the request or its answer is too large
)

// refusalOf returns why a request was refused, "" if it was not refused but failed.
func refusalOf(err error, status *metav1.Status) string {
	var refused *refusedError
	if errors.As(err, &refused) {
		return refused.reason
	}
	switch status.Code {
	case http.StatusUnauthorized:
		return refusedUnauthenticated
	case http.StatusForbidden:
		return refusedForbidden
	case http.StatusRequestEntityTooLarge:
		return refusedTooLarge
	}
	return ""
}
