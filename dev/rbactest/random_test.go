package rbactest

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/access"
)

var seed = flag.Uint64("seed", 0, "the seed of the roles, bindings and requests; 0 takes a new one")

// The values are few, so that requests meet rules, and some of them are invalid in a cluster: the evaluation must not
// depend on validation. Values that are repeated are more frequent.
var (
	namespaces = []string{"a", "b", "kube-system"}
	roleNames  = []string{"r1", "r2", "r3", "r4", "r5", "r6", "r7", "view"}
	bindings   = []string{"b1", "b2", "b3", "b4", "b5", "b6"}

	users = []string{"ann", "bob", "eve", "", "system:serviceaccount:a:sa", "system:serviceaccount:a:sa",
		"system:serviceaccount:b:sa", "system:serviceaccount:a:sa:x", "system:serviceaccount:a:", "system:serviceaccount::sa",
		"system:serviceaccount:kube-system:other", "sa"}
	groups = []string{"devs", "ops", "system:authenticated", "system:masters", "system:serviceaccounts",
		"system:serviceaccounts:a", "ann", ""}

	subjectKinds = []string{"User", "User", "User", "Group", "Group", "Group", "ServiceAccount", "ServiceAccount", "user",
		""}
	accounts   = []string{"sa", "sa", "sa", "other", "sa:x", "x", ""}
	accountsIn = []string{"a", "a", "b", "kube-system", "a:sa", ""}
	apiGroups  = []string{"", "rbac.authorization.k8s.io", "example.com"}
	refKinds   = []string{"ClusterRole", "ClusterRole", "ClusterRole", "ClusterRole", "Role", "Role", "Role", "Robot",
		""}

	ruleVerbs     = []string{"get", "list", "watch", "create", "*", "g", ""}
	ruleGroups    = []string{"", "", "apps", "*", "example.com"}
	ruleResources = []string{"pods", "pods", "deployments", "*", "pods/log", "*/scale", "*/log", "pods/*", "*/*",
		"*/", "/log", ""}
	ruleNames       = []string{"x", "y", "z", "", "*"}
	ruleURLs        = []string{"*", "/api/*", "/api*", "/api", "/healthz", "/a**", "", "**", "/*/x"}
	requestVerbs    = []string{"get", "list", "watch", "create", "delete", "*", ""}
	requestGroups   = []string{"", "", "apps", "example.com", "*"}
	requestKinds    = []string{"pods", "pods", "pods", "deployments", "nodes", "*", "", "pods/log"}
	subresources    = []string{"", "", "", "log", "scale", "*", "/log", "ale"}
	requestNames    = []string{"", "", "x", "y", "z", "*"}
	requestPaths    = []string{"/", "/api", "/api/", "/api/v1", "/apis", "/healthz", "/healthz/ping", "", "*", "/a", "x"}
	requestVersions = []string{"v1", "v2", ""}
)

// random makes roles, bindings, users and requests.
type random struct{ *rand.Rand }

// newRandom returns the random values of the seed, which it logs.
func newRandom(t *testing.T) random {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with: go test -args -seed %d", *seed)
	return random{rand.New(rand.NewPCG(*seed, 0))}
}

func one[T any](r random, list []T) T { return list[r.IntN(len(list))] }

// count returns a number up to most, and rarely 0.
func (r random) count(most int) int {
	if r.IntN(12) == 0 {
		return 0
	}
	return 1 + r.IntN(most)
}

// some returns up to most values of a list, with repetitions.
func some(r random, list []string, most int) []string {
	values := make([]string, r.count(most))
	for i := range values {
		values[i] = one(r, list)
	}
	return values
}

func (r random) rule() rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{Verbs: some(r, ruleVerbs, 3)}
	if r.IntN(10) > 0 {
		rule.APIGroups = some(r, ruleGroups, 2)
		rule.Resources = some(r, ruleResources, 4)
		if r.IntN(3) == 0 {
			rule.ResourceNames = some(r, ruleNames, 2)
		}
	}
	if r.IntN(4) == 0 {
		rule.NonResourceURLs = some(r, ruleURLs, 2)
	}
	return rule
}

func (r random) rules() []rbacv1.PolicyRule {
	rules := make([]rbacv1.PolicyRule, r.count(4))
	for i := range rules {
		rules[i] = r.rule()
	}
	return rules
}

func (r random) subjects() []rbacv1.Subject {
	subjects := make([]rbacv1.Subject, r.count(3))
	for i := range subjects {
		s := rbacv1.Subject{Kind: one(r, subjectKinds), APIGroup: one(r, apiGroups)}
		switch s.Kind {
		case "ServiceAccount":
			s.Name, s.Namespace = one(r, accounts), one(r, accountsIn)
		case "Group":
			s.Name = one(r, groups)
		default:
			s.Name = one(r, users)
		}
		subjects[i] = s
	}
	return subjects
}

func (r random) roleRef() rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: one(r, apiGroups), Kind: one(r, refKinds), Name: one(r, roleNames)}
}

// meta returns metadata with details that do not matter.
func (r random) meta(namespace, name string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: one(r, requestNames)}
	if r.IntN(2) == 0 {
		m.Labels = map[string]string{"rbac.example.com/aggregate-to-view": "true"}
	}
	return m
}

// object returns a role or a binding.
func (r random) object() runtime.Object {
	switch r.IntN(4) {
	case 0:
		return &rbacv1.Role{ObjectMeta: r.meta(one(r, namespaces), one(r, roleNames)), Rules: r.rules()}
	case 1:
		return &rbacv1.ClusterRole{ObjectMeta: r.meta("", one(r, roleNames)), Rules: r.rules()}
	case 2:
		return &rbacv1.RoleBinding{ObjectMeta: r.meta(one(r, namespaces), one(r, bindings)), RoleRef: r.roleRef(),
			Subjects: r.subjects()}
	default:
		return &rbacv1.ClusterRoleBinding{ObjectMeta: r.meta("", one(r, bindings)), RoleRef: r.roleRef(),
			Subjects: r.subjects()}
	}
}

func (r random) user() *user.DefaultInfo {
	return &user.DefaultInfo{Name: one(r, users), Groups: some(r, groups, 3)}
}

// request returns a request. One in five is not for a resource.
func (r random) request() access.Attributes {
	a := access.Attributes{Verb: one(r, requestVerbs)}
	if r.IntN(3) > 0 {
		a.Namespace = one(r, namespaces)
	}
	if r.IntN(5) == 0 {
		a.Path = one(r, requestPaths)
		return a
	}
	a.ResourceRequest = true
	a.APIGroup, a.APIVersion = one(r, requestGroups), one(r, requestVersions)
	a.Resource, a.Subresource, a.Name = one(r, requestKinds), one(r, subresources), one(r, requestNames)
	return a
}
