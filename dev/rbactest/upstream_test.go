package rbactest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/object"
)

// upstream is Kubernetes' authorizer over the listers that an API server gives it. Lists are sorted by name, because
// the order of a lister is random and decides about the reason.
type upstream struct {
	*rbac.RBACAuthorizer
	indexers map[string]cache.Indexer // by kind
}

type sortedRoleBindings struct{ rbac.RoleBindingLister }

func (s *sortedRoleBindings) ListRoleBindings(ctx context.Context, namespace string) ([]*rbacv1.RoleBinding, error) {
	list, err := s.RoleBindingLister.ListRoleBindings(ctx, namespace)
	slices.SortFunc(list, func(a, b *rbacv1.RoleBinding) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

type sortedClusterRoleBindings struct {
	rbac.ClusterRoleBindingLister
}

func (s *sortedClusterRoleBindings) ListClusterRoleBindings(ctx context.Context) ([]*rbacv1.ClusterRoleBinding, error) {
	list, err := s.ClusterRoleBindingLister.ListClusterRoleBindings(ctx)
	slices.SortFunc(list, func(a, b *rbacv1.ClusterRoleBinding) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

func newUpstream() *upstream {
	u := &upstream{indexers: map[string]cache.Indexer{}}
	for _, kind := range []string{"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"} {
		u.indexers[kind] = cache.NewIndexer(cache.MetaNamespaceKeyFunc,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	u.RBACAuthorizer = rbac.New(
		&rbac.RoleGetter{Lister: rbaclisters.NewRoleLister(u.indexers["Role"])},
		&sortedRoleBindings{rbac.RoleBindingLister{Lister: rbaclisters.NewRoleBindingLister(u.indexers["RoleBinding"])}},
		&rbac.ClusterRoleGetter{Lister: rbaclisters.NewClusterRoleLister(u.indexers["ClusterRole"])},
		&sortedClusterRoleBindings{rbac.ClusterRoleBindingLister{
			Lister: rbaclisters.NewClusterRoleBindingLister(u.indexers["ClusterRoleBinding"])}})
	return u
}

// kindOf returns the kind of a role or a binding.
func kindOf(obj runtime.Object) string {
	_, kind, _ := strings.Cut(fmt.Sprintf("%T", obj), ".")
	return kind
}

func keyOf(t *testing.T, obj runtime.Object) object.Key {
	t.Helper()
	m, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	return object.NewKey(m.GetNamespace(), m.GetName())
}

func (u *upstream) put(t *testing.T, obj runtime.Object) {
	t.Helper()
	if err := u.indexers[kindOf(obj)].Update(obj); err != nil {
		t.Fatal(err)
	}
}

func (u *upstream) delete(t *testing.T, obj runtime.Object) {
	t.Helper()
	if err := u.indexers[kindOf(obj)].Delete(obj); err != nil {
		t.Fatal(err)
	}
}

// decide is Decide of package access.
func (u *upstream) decide(t *testing.T, by user.Info, a access.Attributes) (allowed bool, reason string) {
	t.Helper()
	decision, reason, err := u.Authorize(t.Context(), authorizer.AttributesRecord{User: by, Verb: a.Verb,
		Namespace: a.Namespace, APIGroup: a.APIGroup, APIVersion: a.APIVersion, Resource: a.Resource,
		Subresource: a.Subresource, Name: a.Name, ResourceRequest: a.ResourceRequest, Path: a.Path})
	if err != nil || decision == authorizer.DecisionDeny {
		t.Fatalf("Kubernetes' authorizer answered %v: %v", decision, err)
	}
	return decision == authorizer.DecisionAllow, reason
}

// rules is Rules of package access, as the storage of SelfSubjectRulesReviews makes them.
func (u *upstream) rules(t *testing.T, of user.Info, namespace string) (
	resourceRules []authorizationv1.ResourceRule, otherRules []authorizationv1.NonResourceRule, failure string) {
	t.Helper()
	resources, others, incomplete, err := u.RulesFor(t.Context(), of, namespace)
	if incomplete {
		t.Fatal("the rules of Kubernetes' authorizer are incomplete")
	}
	for _, rule := range resources {
		resourceRules = append(resourceRules, authorizationv1.ResourceRule{Verbs: rule.GetVerbs(),
			APIGroups: rule.GetAPIGroups(), Resources: rule.GetResources(), ResourceNames: rule.GetResourceNames()})
	}
	for _, rule := range others {
		otherRules = append(otherRules, authorizationv1.NonResourceRule{Verbs: rule.GetVerbs(),
			NonResourceURLs: rule.GetNonResourceURLs()})
	}
	if err != nil {
		failure = err.Error()
	}
	return resourceRules, otherRules, failure
}
