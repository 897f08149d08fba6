package access

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/query"
)

// rights decide about the objects of one cluster.
type rights interface {
	decide(ctx context.Context, u user.Info, want Attributes) (Decision, error)
	visible(ctx context.Context, u user.Info, verb string, of schema.GroupResource,
		namespaced bool) (*query.Visible, error)
}

// versionedRights are rights whose answers can be used as long as their version is the same.
type versionedRights interface {
	rights
	version() rightsVersion
}

// rightsVersion is different for different rights, and for the same rights after a change. It does not refer to the
// rights, so that a cache of answers keeps no roles of clusters that have left.
type rightsVersion struct{ of, n uint64 }

// everything allows every request.
type everything struct{}

func (everything) decide(context.Context, user.Info, Attributes) (Decision, error) {
	return Decision{true, "rights are not checked"}, nil
}

func (everything) visible(context.Context, user.Info, string, schema.GroupResource, bool) (*query.Visible, error) {
	return nil, nil
}

func (everything) version() rightsVersion { return rightsVersion{} }

// localRights decide by roles and bindings that are here.
type localRights struct {
	rbac *RBAC
	// masters says that the group system:masters may do everything, as at an API server.
	masters bool
}

func (l localRights) privileged(u user.Info) bool {
	return l.masters && slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup)
}

func (l localRights) decide(_ context.Context, u user.Info, want Attributes) (Decision, error) {
	if l.privileged(u) {
		return Decision{Allowed: true}, nil
	}
	return decision(l.rbac.Decide(u, want)), nil
}

func (l localRights) visible(_ context.Context, u user.Info, verb string, of schema.GroupResource,
	namespaced bool) (*query.Visible, error) {
	if l.privileged(u) {
		return &query.Visible{All: true}, nil
	}
	return l.rbac.Visible(u, verb, of.Group, of.Resource, "", namespaced), nil
}

func (l localRights) version() rightsVersion { return rightsVersion{l.rbac.id, l.rbac.Version()} }
