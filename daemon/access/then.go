package access

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
	"github.com/mirador-k8s/mirador/object"
)

// Then is what users could do in a cluster at a moment, by its roles and bindings of that moment. Names of users in the
// cluster, and who is an administrator of the daemon, are those of now.
type Then struct {
	policy  *policy
	cluster string
	rights  localRights
}

// Then reads the roles and bindings of a cluster at a moment. It returns nil if rights in the cluster are not checked. An
// error says why they are not known: nothing may be shown. pace is as in fleet.Resource.At.
func (a *Access) Then(ctx context.Context, cluster string, at time.Time, pace func(held int64) error) (*Then, error) {
	p := a.policy.Load()
	m := a.member(cluster)
	switch mode := a.modeOf(p, cluster, m); {
	case mode == ModeNone:
		return nil, nil
	case mode == ModeRules, mode == ModeReview:
		return nil, fmt.Errorf("the rights in cluster %q at that moment are not known: they are not those of its roles and "+
			"bindings alone", cluster)
	case m == nil || mode == "":
		return nil, fmt.Errorf("the rights in cluster %q are not known yet", cluster)
	}
	r := NewRBAC()
	for i, res := range m.resources {
		if res == nil {
			return nil, fmt.Errorf("the %s of cluster %q are not mirrored, so that no earlier rights are known",
				rbacKinds[i].resource, cluster)
		}
		if err := putThen(ctx, r, i, res, at, pace); err != nil {
			return nil, fmt.Errorf("the rights in cluster %q at that moment are not known: %w", cluster, err)
		}
	}
	return &Then{p, cluster, localRights{r, true}}, nil
}

// pacedRoles is the number of roles or bindings after which Then calls pace.
const pacedRoles = 16

// putThen puts the objects of one of rbacKinds at a moment. One that cannot be decoded grants nothing.
func putThen(ctx context.Context, r *RBAC, kind int, res *fleet.Resource, at time.Time,
	pace func(held int64) error) error {
	if err := res.AwaitPast(ctx, at); err != nil {
		return err
	}
	m, err := res.At(at, fleet.PastFilter{}, pace)
	if err != nil {
		return err
	}
	if m.Gap != nil {
		return fmt.Errorf("changes of %s were not seen from %s on", rbacKinds[kind].resource,
			m.Gap.From.UTC().Format(time.RFC3339))
	}
	n := 0
	for e := range m.Snapshot.Entries() {
		if n++; n%pacedRoles == 0 && pace != nil {
			if err := pace(0); err != nil {
				return err
			}
		}
		if obj, err := rbacKinds[kind].decode(fleet.Bytes(e, nil)); err == nil {
			_ = r.Put(obj) // it has one of the types that Put takes
		}
	}
	return nil
}

// Decide decides about one request of a user as it would have been decided then.
func (t *Then) Decide(ctx context.Context, u user.Info, want Attributes) (Decision, error) {
	if t.policy.administers(u) {
		return Decision{true, "the user is an administrator of the daemon"}, nil
	}
	return t.rights.decide(ctx, t.policy.inCluster(t.cluster, u), want)
}

// Visible returns what a user could see then of what the user may see now, which is given. nil means everything.
func (t *Then) Visible(ctx context.Context, u user.Info, now *query.Visible, verb string, of schema.GroupResource,
	namespaced bool) (*query.Visible, error) {
	if t.policy.administers(u) {
		return now, nil
	}
	then, err := t.rights.visible(ctx, t.policy.inCluster(t.cluster, u), verb, of, namespaced)
	switch {
	case err != nil:
		return nil, err
	case then.All:
		return now, nil
	case now == nil || now.All:
		return then, nil
	}
	return intersect(now, then), nil
}

// intersect returns what is in both of two sets that have not everything.
func intersect(a, b *query.Visible) *query.Visible {
	both := &query.Visible{Namespaces: common(a.Namespaces, b.Namespaces), Names: common(a.Names, b.Names)}
	for _, sets := range [][2]*query.Visible{{a, b}, {b, a}} {
		for _, key := range sets[0].Keys {
			if sets[1].Contains(key) {
				both.Keys = append(both.Keys, key)
			}
		}
		for _, namespace := range sets[0].Namespaces {
			for _, name := range sets[1].Names {
				both.Keys = append(both.Keys, object.NewKey(namespace, name))
			}
		}
	}
	simplify(both)
	return both
}

// common returns the values that are in both of two sorted slices.
func common[S ~string](a, b []S) (both []S) {
	for _, value := range a {
		if _, found := slices.BinarySearch(b, value); found {
			both = append(both, value)
		}
	}
	return both
}
