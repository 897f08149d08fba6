package server

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/uuid"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/mirador-k8s/mirador/daemon/ratelimit"
)

// Annotations of audit events: those of kube-apiserver, and the daemon's own.
const (
	decisionAnnotation = "authorization.k8s.io/decision" // allow or forbid
	reasonAnnotation   = "authorization.k8s.io/reason"
	filteredAnnotation = "mirador.dev/filtered" // the answer has only what the user may see
	omittedAnnotation  = "mirador.dev/omitted"  // how many events were left out since the last one like this
)

// Limits of what a client can put into an event.
const (
	maxAuditURI       = maxTarget
	maxAuditAnonymous = 1 << 10 // of the URI of a request without valid credentials
	maxAuditAgent     = 1 << 10
	maxAuditMessage   = 1 << 10
	maxAuditAddresses = 8
)

// auditIDHeader is the header of an answer with the ID of its audit events, as kube-apiserver sends it.
const auditIDHeader = "Audit-Id"

// beginAudit gives the request an ID. A probe has none, since its events would hide all others.
func (rec *requestRecord) beginAudit() {
	if isProbe(rec.http) {
		return
	}
	rec.auditID = uuid.NewUUID()
	rec.Header().Set(auditIDHeader, string(rec.auditID))
}

// auditWatchBegan sends the event for the beginning of a watch.
func (rec *requestRecord) auditWatchBegan() {
	if rec.auditID != "" {
		rec.server.opts.Audit(rec.event(auditv1.StageResponseStarted))
	}
}

// auditEnd sends the event for the end of the request.
func (rec *requestRecord) auditEnd(panicked bool) {
	if rec.auditID == "" {
		return
	}
	stage := auditv1.StageResponseComplete
	if panicked {
		stage = auditv1.StagePanic
	}
	omitted := uint64(0)
	if rec.limited() {
		var ok bool
		if omitted, ok = rec.server.auditLimit.take(ratelimit.Address(rec.http), time.Now()); !ok {
			rec.server.metrics.auditOmitted.Inc()
			return
		}
	}
	e := rec.event(stage)
	if omitted > 0 {
		e.Annotations[omittedAnnotation] = strconv.FormatUint(omitted, 10)
	}
	rec.server.opts.Audit(e)
}

// limited reports whether the event of the request counts against the auditLimit: it has no user, or it was refused
// because there were too many.
func (rec *requestRecord) limited() bool {
	return rec.user == nil || rec.user == noUser || rec.refusal == refusedRate
}

// The limits of events for requests that cost a client nothing: a flood of them must not fill the disk, nor push other
// events out of the rotated files.
const (
	auditPerAddress = 5  // events per second and address
	auditPerSecond  = 20 // events per second
)

// auditLimit limits the events for refused and anonymous requests.
type auditLimit struct {
	byAddress, total *ratelimit.Table
	omitted          *atomic.Uint64 // since the last event
}

func newAuditLimit() auditLimit {
	return auditLimit{ratelimit.NewTable(auditPerAddress, auditPerAddress),
		ratelimit.NewTable(auditPerSecond, auditPerSecond), new(atomic.Uint64)}
}

// take reports whether there may be an event, and how many were omitted since the last one.
func (l *auditLimit) take(address string, now time.Time) (omitted uint64, ok bool) {
	if !l.byAddress.Take(address, now) || !l.total.Take("", now) {
		l.omitted.Add(1)
		return 0, false
	}
	return l.omitted.Swap(0), true
}

// event returns the audit event of a stage of the request.
func (rec *requestRecord) event(stage auditv1.Stage) *auditv1.Event {
	r := rec.http
	e := &auditv1.Event{Level: auditv1.LevelMetadata, AuditID: rec.auditID, Stage: stage,
		TypeMeta:   metav1.TypeMeta{Kind: "Event", APIVersion: auditv1.SchemeGroupVersion.String()},
		RequestURI: clipTo(maxAuditURI, uriWithoutSecrets(r.URL)), Verb: clip(rec.want.Verb),
		UserAgent: clipTo(maxAuditAgent, r.UserAgent()), Annotations: map[string]string{},
		RequestReceivedTimestamp: metav1.NewMicroTime(rec.received), StageTimestamp: metav1.NewMicroTime(time.Now()),
		ResponseStatus: &metav1.Status{Code: int32(rec.code)}}
	if rec.actor != nil {
		other := userInfo(rec.user)
		e.User, e.ImpersonatedUser = userInfo(rec.actor), &other
	} else if rec.user != nil {
		e.User = userInfo(rec.user)
	} else {
		e.RequestURI = clipTo(maxAuditAnonymous, e.RequestURI)
	}
	addresses := utilnet.SourceIPs(r)
	for _, ip := range addresses[max(0, len(addresses)-maxAuditAddresses):] { // a client can invent all but the last
		e.SourceIPs = append(e.SourceIPs, ip.String())
	}
	if want := &rec.want; want.ResourceRequest {
		e.ObjectRef = &auditv1.ObjectReference{Resource: want.Resource, Namespace: want.Namespace, Name: want.Name,
			APIGroup: want.APIGroup, APIVersion: want.APIVersion, Subresource: want.Subresource}
		if rec.user == nil {
			e.ObjectRef = clippedReference(e.ObjectRef)
		}
	}
	if st := rec.failure; st != nil {
		e.ResponseStatus.Status, e.ResponseStatus.Reason = st.Status, st.Reason
		e.ResponseStatus.Message = clipTo(maxAuditMessage, st.Message)
	}
	if d := rec.decision; d != nil {
		e.Annotations[decisionAnnotation] = "forbid"
		if d.Allowed {
			e.Annotations[decisionAnnotation] = "allow"
		}
		e.Annotations[reasonAnnotation] = clipTo(maxAuditMessage, d.Reason)
	}
	if rec.cluster != "" {
		e.Annotations[clusterAnnotation] = clip(rec.cluster)
	}
	if rec.filtered {
		e.Annotations[filteredAnnotation] = "true"
	}
	return e
}

// clippedReference shortens what a client without credentials can choose.
func clippedReference(o *auditv1.ObjectReference) *auditv1.ObjectReference {
	for _, s := range []*string{&o.Resource, &o.Namespace, &o.Name, &o.APIGroup, &o.APIVersion, &o.Subresource} {
		*s = clip(*s)
	}
	return o
}

// secretParameters are query parameters whose values may be secrets. The server reads none of them, except for those
// of an OIDC login, but a client may send them all the same.
var secretParameters = []string{"access_token", "assertion", "authorization", "client_secret", "code", "code_verifier",
	"id_token", "password", "refresh_token", "state", "token"}

// uriWithoutSecrets returns the path and query of a request, with "redacted" instead of values that may be secrets.
func uriWithoutSecrets(u *url.URL) string {
	if u.RawQuery == "" {
		return u.EscapedPath()
	}
	parts := strings.FieldsFunc(u.RawQuery, func(r rune) bool { return r == '&' || r == ';' })
	for i, part := range parts {
		name, _, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(name); err != nil ||
			slices.Contains(secretParameters, strings.ToLower(strings.TrimSpace(plain))) {
			parts[i] = name + "=redacted"
		}
	}
	return u.EscapedPath() + "?" + strings.Join(parts, "&")
}
