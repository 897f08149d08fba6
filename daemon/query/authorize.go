package query

import (
	"context"
	"fmt"
	"slices"
)

// User is who asks.
type User struct {
	Name   string
	Groups []string
}

// Attributes are what a user wants to do. An empty Namespace means the whole scope: all namespaces, or
// a resource without namespaces. Name is set where one object is asked for.
type Attributes struct {
	Verb, Cluster, Group, Version, Resource, Namespace, Name string
}

// Authorizer decides who may see what. It is asked once for each cluster of a request, before
// anything of it is counted, paged or evaluated, and for each page again. A request is answered as a
// whole or refused as a whole: a list over all namespaces needs the right to all of them, and a list
// over many clusters the right to each. Who may see less names it in the request.
type Authorizer interface {
	// Authorize returns nil, or an error that wraps ErrForbidden; any other error means that there
	// is no answer, and refuses too.
	Authorize(ctx context.Context, user User, want Attributes) error
}

// AllowAll is the Authorizer of a server that only its own user can reach.
type AllowAll struct{}

// Authorize allows.
func (AllowAll) Authorize(context.Context, User, Attributes) error { return nil }

// Rule allows its users and groups the verbs on the resources of its clusters and namespaces. "*"
// stands for all in each list, and an empty list for none. Resources are written as "pods" or
// "deployments.apps". The whole scope is allowed only by the namespace "*".
type Rule struct {
	Users, Groups, Verbs, Clusters, Resources, Namespaces []string
}

// Rules is an Authorizer that allows what one of its rules allows.
type Rules []Rule

// Authorize looks for a rule.
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

// has never takes an empty value for one that is listed.
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
	return fmt.Errorf("user %q may not %s %s %s of cluster %q: %w; ask for less, or for the right to it",
		user.Name, want.Verb, want.resource(), where, want.Cluster, ErrForbidden)
}
