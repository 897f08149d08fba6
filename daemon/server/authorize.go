package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

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
	// Then returns what users could do in a cluster at a moment; nil means everything. An error says why that is not known:
	// nothing may be shown. pace is as in fleet.Resource.At.
	Then(ctx context.Context, cluster string, at time.Time, pace func(held int64) error) (*access.Then, error)
	// RulesIn returns the rules that apply to a user in a namespace of a cluster. ok is false if there is no such list,
	// because the user may do everything.
	RulesIn(u user.Info, cluster, namespace string) (rules *access.RuleList, ok bool, err error)
	// Mode returns how requests for objects of a cluster are authorized, or "" if that is not known yet.
	Mode(cluster string) access.Mode
	// Changed returns a channel that is closed when an answer may have changed.
	Changed() <-chan struct{}
	// WaitRestored waits, at the start, until the rights in a cluster are those that the disk has, if it has any.
	WaitRestored(ctx context.Context, c *fleet.Cluster)
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

func (allowAll) Then(context.Context, string, time.Time, func(int64) error) (*access.Then, error) {
	return nil, nil
}

func (allowAll) RulesIn(user.Info, string, string) (*access.RuleList, bool, error) {
	return nil, false, nil
}

func (allowAll) Mode(string) access.Mode { return access.ModeNone }

func (allowAll) Changed() <-chan struct{} { return nil }

func (allowAll) WaitRestored(context.Context, *fleet.Cluster) {}

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
	req.filters = req.filtered && req.verb != "get"
	err := s.allowRequest(req, cluster.Name())
	if err != nil && req.filters {
		return nil
	}
	req.filtered = false
	return err
}

// allowRequest returns nil if the user may make a request for objects of a cluster, now and, with rights=then, then.
func (s *Server) allowRequest(req *request, cluster string) error {
	if err := s.allow(req.http, cluster, req.attributes()); err != nil {
		return err
	}
	d, err := s.decideThen(req, cluster)
	if err != nil {
		return err
	}
	if !d.Allowed {
		return req.refuse(d.Reason)
	}
	return nil
}

// allowNonResource returns the clusters in which the user of a request may read discovery, the version, OpenAPI or
// health, and an error if there are none. unknown are clusters in which the rights of the user are not known. cluster
// is nil at /fleet, and if there is no such cluster.
func (s *Server) allowNonResource(r *http.Request, t *target, cluster *fleet.Cluster) (allowed,
	unknown []*fleet.Cluster, err error) {
	want := access.Attributes{Verb: strings.ToLower(r.Method), Path: t.rest}
	switch {
	case cluster != nil:
		return []*fleet.Cluster{cluster}, nil, s.allow(r, t.cluster, want)
	case !t.fleet: // there is no such cluster
		recordOf(r).decide(access.Decision{})
		return nil, nil, forbidden(userOf(r), want, "")
	}
	all := s.fleet.Clusters()
	decisions, failures := make([]access.Decision, len(all)), make([]error, len(all))
	s.eachCluster(all, func(i int) {
		decisions[i], failures[i] = s.opts.Authorizer.Decide(r.Context(), userOf(r), all[i].Name(), want)
	})
	refused := access.Decision{}
	for i, d := range decisions {
		switch {
		case failures[i] != nil:
			refused.Reason = rightsUnknown
			unknown = append(unknown, all[i])
		case d.Allowed:
			if len(allowed) == 0 {
				recordOf(r).decide(d)
			}
			allowed = append(allowed, all[i])
		}
	}
	if len(allowed) == 0 && len(all) > 0 {
		recordOf(r).decide(refused)
		return nil, nil, forbidden(userOf(r), want, refused.Reason)
	}
	return allowed, unknown, nil
}

// rightsUnknown is the reason of a refusal, without the name of a cluster.
const rightsUnknown = "the rights of the user are not known"

// clustersAskedAtOnce is how many clusters are asked for the rights of a user at a time, by one request.
const clustersAskedAtOnce = 64

// eachCluster calls do with the index of each cluster. Clusters that have to be asked for the rights of a user are
// asked at the same time, so that one that does not answer delays none of the others.
func (s *Server) eachCluster(clusters []*fleet.Cluster, do func(i int)) {
	s.each(len(clusters), func(i int) string { return clusters[i].Name() }, do)
}

// each is eachCluster for n clusters that are given by their names.
func (s *Server) each(n int, cluster func(i int) string, do func(i int)) {
	var asking sync.WaitGroup
	defer asking.Wait()
	turns := make(chan struct{}, clustersAskedAtOnce)
	var local []int
	for i := range n {
		if s.opts.Authorizer.Mode(cluster(i)) != access.ModeReview {
			local = append(local, i)
			continue
		}
		turns <- struct{}{}
		asking.Go(func() {
			defer func() { <-turns }()
			do(i)
		})
	}
	for _, i := range local {
		do(i)
	}
}

// errNothingVisible is the error of a list or watch at /fleet of which the user may see nothing at all.
func errNothingVisible(req *request) error {
	return req.refuse("in none of the clusters")
}

// visibleIn returns what the user of a request may see of its resource in a cluster.
func (s *Server) visibleIn(req *request, cluster string, namespaced bool) (*query.Visible, error) {
	see, err := s.opts.Authorizer.Visible(req.context(), userOf(req.http), cluster, req.verb, req.groupResource(),
		namespaced)
	if err != nil {
		return nil, err
	}
	return s.visibleThen(req, cluster, see, namespaced)
}

// visibleInCluster is visibleIn for a cluster that may not have the resource. It then counts as namespaced, so that
// every right of the user counts.
func (s *Server) visibleInCluster(req *request, c *fleet.Cluster) (*query.Visible, error) {
	res, ok := c.Resource(req.gvr())
	return s.visibleIn(req, c.Name(), !ok || res.Info().Namespaced)
}

// mayKnow reports whether the user of a request may know whether a cluster exists: the user may see its status, or
// read its version. To other users, a cluster that does not exist is like one that refuses everything.
func (s *Server) mayKnow(r *http.Request, cluster string) bool {
	return s.decide(r, access.Daemon, daemonAttributes("get", cluster)).Allowed ||
		s.decide(r, access.Daemon, daemonAttributes("list", "")).Allowed ||
		s.decide(r, cluster, access.Attributes{Verb: "get", Path: "/version"}).Allowed
}

// stillAllowed returns an error if the rights of the user have changed since the request was authorized: it may have
// waited for its turn or for a version, and must not show what was created in the meantime.
func (s *Server) stillAllowed(req *request, v *view) error {
	if req.verb == "get" || !req.fleet && !req.filtered {
		return s.allowRequest(req, v.places[0].cluster)
	}
	for _, p := range v.places {
		see, err := s.visibleIn(req, p.cluster, p.res.Info().Namespaced)
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
	filtered := func(p place) bool { return p.visible != nil && !p.visible.AllIn(req.namespace) }
	if req.omitted || slices.ContainsFunc(v.places, filtered) {
		w.Header().Set(filteredHeader, "true")
		reason = "the user may see a part"
		if rec != nil {
			rec.filtered = true
		}
	}
	if req.verb != "get" { // about which the authorizer has decided
		rec.decide(access.Decision{Allowed: true, Reason: reason})
	}
}

// errRightsChanged ends a watch: the client has to list again what it may see now.
var errRightsChanged = &watchEnd{"what the user may see has changed; list again", true}
