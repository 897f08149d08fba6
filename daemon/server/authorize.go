package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
)

// Authorizer decides what users may do. An access.Access is one.
type Authorizer interface {
	// Decide decides about one request to a cluster, or to the daemon itself. An error refuses the request.
	Decide(ctx context.Context, u user.Info, cluster string, want access.Attributes) (access.Decision, error)
	// DecideFor decides about a request of a user under its name in the cluster.
	DecideFor(ctx context.Context, u user.Info, cluster string, want access.Attributes) (access.Decision, error)
	// Visible returns what a user may see of a resource in a cluster; nil means everything. It returns the same pointer
	// as long as that does not change. If it returns an error, nothing is shown.
	Visible(ctx context.Context, u user.Info, cluster, verb string, of schema.GroupResource,
		namespaced bool) (*query.Visible, error)
	// RulesIn returns the rules that apply to a user in a namespace of a cluster. ok is false if there is no such list,
	// because the user may do everything.
	RulesIn(u user.Info, cluster, namespace string) (rules *access.RuleList, ok bool, err error)
	// Mode returns how requests for objects of a cluster are authorized, or "" if that is not known yet.
	Mode(cluster string) access.Mode
	// Changed returns a channel that is closed when an answer may have changed.
	Changed() <-chan struct{}
}

// allowAll is the Authorizer of a server without one.
type allowAll struct{}

func (allowAll) Decide(context.Context, user.Info, string, access.Attributes) (access.Decision, error) {
	return access.Decision{Allowed: true, Reason: "rights are not checked"}, nil
}

func (a allowAll) DecideFor(ctx context.Context, u user.Info, cluster string,
	want access.Attributes) (access.Decision, error) {
	return a.Decide(ctx, u, cluster, want)
}

func (allowAll) Visible(context.Context, user.Info, string, string, schema.GroupResource,
	bool) (*query.Visible, error) {
	return nil, nil
}

func (allowAll) RulesIn(user.Info, string, string) (*access.RuleList, bool, error) {
	return nil, false, nil
}

func (allowAll) Mode(string) access.Mode { return access.ModeNone }

func (allowAll) Changed() <-chan struct{} { return nil }

// attributes describes a request for objects as an API server does.
func (t *target) attributes(verb string) access.Attributes {
	a := access.Attributes{ResourceRequest: true, Verb: verb, APIGroup: t.group, APIVersion: t.version,
		Resource: t.resource, Subresource: t.subresource, Namespace: t.namespace, Name: t.name}
	if t.isNamespaces() && t.name != "" {
		a.Namespace = t.name
	}
	return a
}

// attributes describes the request. A list or watch of one object by a field selector is about that name.
func (req *request) attributes() access.Attributes {
	a := req.target.attributes(req.verb)
	if a.Name == "" {
		a.Name = selectedName(req.FieldSelector)
	}
	return a
}

// selectedName returns the name that a field selector requires, if any.
func selectedName(sel fields.Selector) string {
	if sel == nil {
		return ""
	}
	for _, q := range sel.Requirements() {
		if q.Field == byName && q.Operator != selection.NotEquals {
			return q.Value
		}
	}
	return ""
}

// allow returns nil if the user of a request may make it, and otherwise the error of an API server. The decision is
// recorded for the audit log.
func (s *Server) allow(r *http.Request, cluster string, want access.Attributes) error {
	d := s.decide(r, cluster, want)
	recordOf(r).decide(d)
	if !d.Allowed {
		return forbidden(userOf(r), want, d.Reason)
	}
	return nil
}

// decide returns what the authorizer decides. Any goroutine may call it.
func (s *Server) decide(r *http.Request, cluster string, want access.Attributes) access.Decision {
	d, err := s.opts.Authorizer.Decide(r.Context(), userOf(r), cluster, want)
	if err != nil {
		return access.Decision{Reason: err.Error()}
	}
	return d
}

// refuse records that the user of a request for objects may see none of them, and returns the error to answer with.
func (req *request) refuse(reason string) error {
	recordOf(req.http).decide(access.Decision{Reason: reason})
	asked := req.attributes()
	if req.fleet { // the error has the names of the path
		asked.Namespace = req.askedNamespace
		if req.askedName != "" {
			asked.Name = req.askedName
		}
		if req.isNamespaces() {
			asked.Namespace = req.askedName
		}
	}
	return forbidden(userOf(req.http), asked, reason)
}

// forbidden returns the error of an API server for a request that is not allowed.
func forbidden(u user.Info, want access.Attributes, reason string) error {
	if reason != "" {
		reason = ": " + reason
	}
	if !want.ResourceRequest {
		return apierrors.NewForbidden(noResource, "", refusal(fmt.Sprintf("User %q cannot %s path %q%s", u.GetName(),
			want.Verb, clip(want.Path), reason)))
	}
	resource := want.Resource
	if want.Subresource != "" {
		resource += "/" + want.Subresource
	}
	where := "at the cluster scope"
	if want.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", want.Namespace)
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: want.APIGroup, Resource: want.Resource}, want.Name,
		refusal(fmt.Sprintf("User %q cannot %s resource %q in API group %q %s%s", u.GetName(), want.Verb, resource,
			want.APIGroup, where, reason)))
}

// refusal is the text of an API server, which begins with a capital letter.
type refusal string

// Error returns the text.
func (e refusal) Error() string { return string(e) }

// daemonAttributes describes a request for the clusters of the daemon.
func daemonAttributes(verb, cluster string) access.Attributes {
	return access.Attributes{ResourceRequest: true, Verb: verb, APIGroup: clusterResource.Group,
		Resource: clusterResource.Resource, Name: cluster}
}

// allowPath returns nil if the user of a request may read a path that is not of a resource.
func (s *Server) allowPath(r *http.Request, cluster, path string) error {
	return s.allow(r, cluster, access.Attributes{Verb: strings.ToLower(r.Method), Path: path})
}

// allowsAnonymous reports whether a request without credentials may be answered: it is for /metrics, and the daemon's
// rights allow that to the anonymous user. A request with invalid credentials is refused, as by an API server.
func (s *Server) allowsAnonymous(r *http.Request) bool {
	if r.URL.Path != "/metrics" || r.Header.Get("Authorization") != "" {
		return false
	}
	if _, ok := s.opts.Authorizer.(allowAll); ok {
		return false // rights of users are not checked, which says nothing about requests without a user
	}
	d, err := s.opts.Authorizer.Decide(r.Context(), noUser, access.Daemon,
		access.Attributes{Verb: strings.ToLower(r.Method), Path: r.URL.Path})
	return err == nil && d.Allowed
}

// allowVerbose returns an error if a request about the daemon's health asks for the names and states of clusters, and
// the user may not see them.
func (s *Server) allowVerbose(r *http.Request) error {
	if !isVerbose(r) {
		return nil
	}
	return s.allow(r, access.Daemon, daemonAttributes("list", ""))
}

// allowObjects returns an error if the user of a request may not see the answer. A list or watch at /fleet, or one
// that asks for it, has only what is visible instead, which view finds out.
func (s *Server) allowObjects(req *request, cluster *fleet.Cluster) error {
	if cluster == nil {
		return nil
	}
	err := s.allow(req.http, cluster.Name(), req.attributes())
	if err != nil && req.filtered && req.verb != "get" {
		return nil
	}
	req.filtered = false
	return err
}

// allowNonResource returns an error if the user of a request may not read discovery, the version, OpenAPI or health.
// At /fleet, the permission of one cluster is enough.
func (s *Server) allowNonResource(r *http.Request, t *target) error {
	if !t.fleet {
		return s.allowPath(r, t.cluster, t.rest)
	}
	var refused error
	for _, c := range s.fleet.Clusters() {
		err := s.allowPath(r, c.Name(), t.rest)
		if err == nil {
			return nil
		}
		refused = err
	}
	return refused
}

// errNothingVisible is the error of a list or watch at /fleet of which the user may see nothing at all.
func errNothingVisible(req *request) error {
	return req.refuse("in none of the clusters")
}

// visibleIn returns what the user of a request may see of a resource in a cluster.
func (s *Server) visibleIn(req *request, cluster string, res *fleet.Resource) (*query.Visible, error) {
	return s.opts.Authorizer.Visible(req.context(), userOf(req.http), cluster, req.verb, req.groupResource(),
		res.Info().Namespaced)
}

// stillAllowed returns an error if the rights of the user have changed since the request was authorized: it may have
// waited for its turn or for a version, and must not show what was created in the meantime.
func (s *Server) stillAllowed(req *request, v *view) error {
	if req.verb == "get" || !req.fleet && !req.filtered {
		return s.allow(req.http, v.places[0].cluster, req.attributes())
	}
	for _, p := range v.places {
		see, err := s.visibleIn(req, p.cluster, p.res)
		if err != nil || !sameVisible(see, p.visible) {
			return unavailable(errors.New("the rights of the user have changed while the request waited; try again"))
		}
	}
	return nil
}

// filteredHeader says that an answer has only what the user may see.
const filteredHeader = "Mirador-Filtered"

// markFiltered sets the header if the user may not see everything in the places of a view.
func markFiltered(w http.ResponseWriter, req *request, v *view) {
	rec, reason := recordOf(req.http), "the user may see everything"
	for i := range v.places {
		if see := v.places[i].visible; see != nil && !see.All {
			w.Header().Set(filteredHeader, "true")
			reason = "the user may see a part"
			if rec != nil {
				rec.filtered = true
			}
			break
		}
	}
	if req.verb != "get" { // about which the authorizer has decided
		rec.decide(access.Decision{Allowed: true, Reason: reason})
	}
}

// errRightsChanged ends a watch: the client has to list again what it may see now.
var errRightsChanged = &watchEnd{"what the user may see has changed; list again", true}
