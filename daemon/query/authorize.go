package query

import (
	"context"
	"fmt"
	"slices"
)

// User is the user of a request.
type User struct {
	Name   string
	Groups []string
}

// Attributes describe a request to an Authorizer. An empty Namespace means the whole scope: all namespaces, or a
// resource without namespaces. Name is set if the request is for one object.
type Attributes struct {
	Verb, Cluster, Group, Version, Resource, Namespace, Name string
}

// Authorizer decides about requests. It is called once for each cluster of a request, before anything is counted, paged
// or evaluated, and again for each page. A request is answered as a whole or refused as a whole: a list over all
// namespaces needs permission for all of them, and a list over many clusters permission for each. A user with fewer
// permissions has to name the namespace or cluster in the request.
type Authorizer interface {
	// Authorize returns nil to allow, or an error that wraps ErrForbidden. Any other error means that the decision
	// failed, and refuses, too.
	Authorize(ctx context.Context, user User, want Attributes) error
}

// AllowAll is an Authorizer that allows every request, for a server that only its own user can reach.
type AllowAll struct{}

// Authorize returns nil.
func (AllowAll) Authorize(context.Context, User, Attributes) error { return nil }

// Rule allows its users and groups the verbs on the resources of its clusters and namespaces. In each list "*" means
// all, and an empty list means none. Resources are written as "pods" or "deployments.apps". Only the namespace "*"
// allows the whole scope.
type Rule struct {
	Users, Groups, Verbs, Clusters, Resources, Namespaces []string
}

// Rules is an Authorizer that allows what one of its rules allows.
type Rules []Rule

// Authorize returns nil if a rule allows the request.
func (r Rules) Authorize(_ context.Context, user User, want Attributes) error {
	for i := range r {
		if r[i].allows(user, want) {
			return nil
		}
	}
	return forbidden(user, want)
}

func (r *Rule) allows(user User, want Attributes) bool {
	return r.names(user) && has(r.Verbs, want.Verb) && has(r.Clusters, want.Cluster) &&
		has(r.Resources, want.resource()) && has(r.Namespaces, want.Namespace)
}

func (r *Rule) names(user User) bool {
	return has(r.Users, user.Name) || slices.ContainsFunc(user.Groups, func(g string) bool { return has(r.Groups, g) })
}

// has reports whether a list contains a value or "*". An empty value is only matched by "*".
func has(list []string, value string) bool {
	return slices.Contains(list, "*") || value != "" && slices.Contains(list, value)
}

func (a *Attributes) resource() string {
	if a.Group == "" {
		return a.Resource
	}
	return a.Resource + "." + a.Group
}

func forbidden(user User, want Attributes) error {
	where := "in all namespaces"
	if want.Namespace != "" {
		where = fmt.Sprintf("in namespace %q", want.Namespace)
	}
	return fmt.Errorf("user %q may not %s %s %s of cluster %q: %w; narrow the request, or ask for permission",
		user.Name, want.Verb, want.resource(), where, want.Cluster, ErrForbidden)
}
