package access

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"
)

// realWorld are roles and bindings as clusters have them, and some that only a careless administrator writes.
const realWorld = `
kind: ClusterRole
metadata: {name: cluster-admin}
rules:
- {apiGroups: ['*'], resources: ['*'], verbs: ['*']}
- {nonResourceURLs: ['*'], verbs: ['*']}
---
kind: ClusterRoleBinding
metadata: {name: cluster-admin}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:masters'}
---
kind: ClusterRole
metadata: {name: 'system:discovery'}
rules:
- {nonResourceURLs: [/api, '/api/*', /healthz, /version/], verbs: [get]}
---
kind: ClusterRoleBinding
metadata: {name: 'system:discovery'}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: 'system:discovery'}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:authenticated'}
---
kind: ClusterRole
metadata: {name: view}
rules:
- {apiGroups: [''], resources: [pods, pods/log, services, namespaces], verbs: [get, list, watch]}
- {apiGroups: [apps], resources: [deployments, deployments/scale], verbs: [get, list, watch]}
---
kind: RoleBinding
metadata: {name: viewers, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: shop-team}
---
kind: ClusterRole
metadata: {name: scaler}
rules:
- {apiGroups: ['*'], resources: ['*/scale'], verbs: [get, update]}
- {apiGroups: [''], resources: ['pods/*'], verbs: [get]}
---
kind: ClusterRoleBinding
metadata: {name: scalers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: scaler}
subjects:
- {kind: ServiceAccount, name: hpa, namespace: kube-system}
- {kind: ServiceAccount, name: nowhere}
- {apiGroup: example.com, kind: User, name: wrong-api-group}
- {kind: Robot, name: rob}
---
kind: Role
metadata: {name: leader-election, namespace: shop}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [shop-controller], verbs: [get, update]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}
---
kind: RoleBinding
metadata: {name: leader-election, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leader-election}
subjects:
- {kind: ServiceAccount, name: controller}
- {kind: ServiceAccount, name: remote, namespace: ops}
---
kind: Role
metadata: {name: leader-election, namespace: other}
rules:
- {apiGroups: ['*'], resources: ['*'], verbs: ['*']}
---
kind: ClusterRole
metadata: {name: one-node}
rules:
- {apiGroups: [''], resources: [nodes], resourceNames: [node-1], verbs: [get]}
- {apiGroups: [''], resources: [configmaps], resourceNames: [ca], verbs: [get]}
- {nonResourceURLs: [/metrics, '/logs/**'], verbs: ['*']}
---
kind: ClusterRoleBinding
metadata: {name: one-node}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: one-node}
subjects:
- {kind: User, name: ann}
- {kind: Group, name: 'system:serviceaccounts:ops'}
---
kind: RoleBinding
metadata: {name: nodes, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
- {kind: User, name: shop-owner}
---
kind: ClusterRoleBinding
metadata: {name: dangling-b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gone}
subjects:
- {kind: User, name: dora}
---
kind: ClusterRoleBinding
metadata: {name: dangling-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leader-election}
subjects:
- {kind: User, name: dora}
---
kind: RoleBinding
metadata: {name: dangling-c, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Robot, name: r2}
subjects:
- {kind: User, name: dora}
- {kind: User, name: eve}
---
kind: ClusterRole
metadata: {name: empty-names}
rules:
- {apiGroups: [''], resources: [secrets], resourceNames: [''], verbs: [list]}
---
kind: RoleBinding
metadata: {name: empty-names, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: empty-names}
subjects:
- {kind: User, name: ''}
- {kind: User, name: nameless}
`

// parse returns the objects of YAML documents.
func parse(t testing.TB, documents string) (objects []any) {
	t.Helper()
	for _, document := range strings.Split(documents, "\n---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			t.Fatal(err)
		}
		obj := map[string]any{kindRole: &rbacv1.Role{}, kindClusterRole: &rbacv1.ClusterRole{},
			kindRoleBinding: &rbacv1.RoleBinding{}, kindClusterRoleBinding: &rbacv1.ClusterRoleBinding{}}[kind.Kind]
		if err := yaml.UnmarshalStrict([]byte(document), obj); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, obj)
	}
	return objects
}

// newRBAC returns an RBAC with the objects of YAML documents.
func newRBAC(t testing.TB, documents string) *RBAC {
	t.Helper()
	r := NewRBAC()
	put(t, r, parse(t, documents)...)
	return r
}

func put(t testing.TB, r *RBAC, objects ...any) {
	t.Helper()
	for _, obj := range objects {
		if err := r.Put(obj); err != nil {
			t.Fatal(err)
		}
	}
}

// named returns a user with groups.
func named(name string, groups ...string) user.Info {
	return &user.DefaultInfo{Name: name, Groups: groups}
}

// request reads a request such as "list apps/deployments/scale shop/web" or "get /healthz". The last part is a
// namespace, a slash and a name, each of which may be empty.
func request(text string) Attributes {
	verb, rest, _ := strings.Cut(text, " ")
	if strings.HasPrefix(rest, "/") {
		return Attributes{Verb: verb, Path: rest}
	}
	what, where, _ := strings.Cut(rest, " ")
	parts := strings.SplitN(what, "/", 3)
	a := Attributes{ResourceRequest: true, Verb: verb, APIGroup: parts[0], Resource: parts[1]}
	if len(parts) > 2 {
		a.Subresource = parts[2]
	}
	if a.APIGroup == "core" {
		a.APIGroup = ""
	}
	a.Namespace, a.Name, _ = strings.Cut(where, "/")
	return a
}

func TestDecide(t *testing.T) {
	r := newRBAC(t, realWorld)
	hpa := named("system:serviceaccount:kube-system:hpa", "system:serviceaccounts", "system:serviceaccounts:kube-system",
		"system:authenticated")
	const scalers = `RBAC: allowed by ClusterRoleBinding "scalers" of ClusterRole "scaler" to `
	const byHPA = scalers + `ServiceAccount "hpa/kube-system"`
	const admin = `RBAC: allowed by ClusterRoleBinding "cluster-admin" of ClusterRole "cluster-admin" ` +
		`to Group "system:masters"`
	const discovery = `RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" ` +
		`to Group "system:authenticated"`
	const elects = `RBAC: allowed by RoleBinding "leader-election/shop" of Role "leader-election" to ServiceAccount `
	const oneNode = `RBAC: allowed by ClusterRoleBinding "one-node" of ClusterRole "one-node" to User "ann"`
	const viewers = `RBAC: allowed by RoleBinding "viewers/shop" of ClusterRole "view" to `
	const noRole = `role.rbac.authorization.k8s.io "leader-election" not found`
	const noClusterRole = `clusterrole.rbac.authorization.k8s.io "gone" not found`
	const noKind = `unsupported role reference kind: "Robot"`
	for _, c := range []struct {
		name    string
		user    user.Info
		request string
		reason  string // "" and texts without "allowed" are refusals
	}{
		{"wildcards allow everything", named("root", "system:masters"), "delete apps/deployments/status shop/web", admin},
		{"wildcards allow paths", named("root", "system:masters"), "post /anything", admin},
		{"a group that is not listed", named("root", "system:master"), "get core/pods shop/web", ""},
		{"a group is not a user", named("system:masters"), "get core/pods shop/web", ""},
		{"a user is not a group", named("x", "ann"), "get core/pods shop/web", ""},
		{"no user", nil, "get core/pods shop/web", ""},

		{"a path", named("x", "system:authenticated"), "get /healthz", discovery},
		{"a path is not a prefix", named("x", "system:authenticated"), "get /healthz/ping", ""},
		{"a path below a prefix", named("x", "system:authenticated"), "get /api/v1", discovery},
		{"the path of a prefix with its slash", named("x", "system:authenticated"), "get /api/", discovery},
		{"a longer name than that of a prefix", named("x", "system:authenticated"), "get /apis", ""},
		{"a slash at the end", named("x", "system:authenticated"), "get /version", ""},
		{"another method", named("x", "system:authenticated"), "post /healthz", ""},
		{"several wildcards are one", named("ann"), "get /logs/x", oneNode},
		{"a path with any method", named("ann"), "post /metrics", oneNode},

		{"a RoleBinding to a ClusterRole", named("ann"), "list core/pods shop/", viewers + `User "ann"`},
		{"its name does not matter", named("ann"), "get core/pods shop/web", viewers + `User "ann"`},
		{"by group", named("bob", "x", "shop-team"), "get core/pods shop/web", viewers + `Group "shop-team"`},
		{"the first subject counts", named("ann", "shop-team"), "get core/pods shop/web", viewers + `User "ann"`},
		{"another namespace", named("ann"), "list core/pods other/", ""},
		{"all namespaces", named("ann"), "list core/pods", ""},
		{"another group", named("ann"), "list metrics.k8s.io/pods shop/", ""},
		{"another verb", named("ann"), "delete core/pods shop/web", ""},
		{"verbs have no prefix", named("ann"), "lis core/pods shop/web", ""},
		{"a subresource that is listed", named("ann"), "get core/pods/log shop/web", viewers + `User "ann"`},
		{"a subresource that is not listed", named("ann"), "get core/pods/exec shop/web", ""},
		{"a subresource of a resource that has none", named("ann"), "get core/services/log shop/web", ""},
		{"its own namespace", named("ann"), "get core/namespaces shop/shop", viewers + `User "ann"`},
		{"the list of namespaces", named("ann"), "list core/namespaces", ""},

		{"one subresource of all resources", hpa, "update apps/deployments/scale shop/web", byHPA},
		{"of custom ones too", hpa, "update example.com/crontabs/scale shop/web", byHPA},
		{"not the resource itself", hpa, "update apps/deployments shop/web", ""},
		{"not another subresource", hpa, "update apps/deployments/status shop/web", ""},
		{"not one that ends in it", hpa, "update apps/deployments/autoscale shop/web", ""},
		{"pods/* has no meaning", hpa, "get core/pods/log shop/web", ""},
		{"pods/* is not pods", hpa, "get core/pods shop/web", ""},
		{"a wrong API group of a subject counts for nothing", named("wrong-api-group"), "get apps/deployments/scale shop/",
			scalers + `User "wrong-api-group"`},
		{"a subject of an unknown kind", named("rob", "rob"), "get apps/deployments/scale shop/", ""},
		{"a service account without a namespace", named("system:serviceaccount::nowhere"),
			"get apps/deployments/scale shop/", ""},
		{"the name of a service account alone", named("hpa"), "get apps/deployments/scale shop/", ""},

		{"a Role, by name", named("system:serviceaccount:shop:controller"),
			"get coordination.k8s.io/leases shop/shop-controller", elects + `"controller/shop"`},
		{"another name", named("system:serviceaccount:shop:controller"), "get coordination.k8s.io/leases shop/x", ""},
		{"no name", named("system:serviceaccount:shop:controller"), "get coordination.k8s.io/leases shop/", ""},
		{"another rule without names", named("system:serviceaccount:shop:controller"),
			"create coordination.k8s.io/leases shop/", elects + `"controller/shop"`},
		{"a Role of another namespace", named("system:serviceaccount:shop:controller"),
			"create coordination.k8s.io/leases other/", ""},
		{"a service account of another namespace", named("system:serviceaccount:ops:remote"),
			"create coordination.k8s.io/leases shop/", elects + `"remote/ops"`},
		{"a namesake in the namespace of the binding", named("system:serviceaccount:shop:remote"),
			"create coordination.k8s.io/leases shop/", ""},

		{"a name at cluster scope", named("ann"), "get core/nodes /node-1", oneNode},
		{"another node", named("ann"), "get core/nodes /node-2", ""},
		{"a name in every namespace", named("ann"), "get core/configmaps any/ca", oneNode},
		{"a group of service accounts", named("x", "system:serviceaccounts:ops"), "get core/configmaps any/ca",
			`RBAC: allowed by ClusterRoleBinding "one-node" of ClusterRole "one-node" to Group "system:serviceaccounts:ops"`},

		{"an administrator of one namespace", named("shop-owner"), "delete core/secrets shop/x",
			`RBAC: allowed by RoleBinding "nodes/shop" of ClusterRole "cluster-admin" to User "shop-owner"`},
		{"has no right at cluster scope", named("shop-owner"), "get core/nodes /node-1", ""},
		{"has no right to paths", named("shop-owner"), "get /healthz", ""},

		{"missing roles are named in order", named("dora"), "get core/pods shop/",
			"RBAC: [" + noRole + ", " + noClusterRole + ", " + noKind + "]"},
		{"without those of the namespace", named("dora"), "get core/pods", "RBAC: [" + noRole + ", " + noClusterRole + "]"},
		{"a single one", named("eve"), "get core/pods shop/", "RBAC: " + noKind},
		{"one that another namespace has", named("eve"), "get core/pods other/", ""},
		{"missing roles do not prevent what is allowed", named("dora", "system:authenticated"), "get /healthz", discovery},

		{"an empty name of a resource is no name", named("nameless"), "list core/secrets shop/",
			`RBAC: allowed by RoleBinding "empty-names/shop" of ClusterRole "empty-names" to User "nameless"`},
		{"and no other", named("nameless"), "list core/secrets shop/x", ""},
		{"an empty name of a user", named(""), "list core/secrets shop/",
			`RBAC: allowed by RoleBinding "empty-names/shop" of ClusterRole "empty-names" to User ""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			allowed, reason := r.Decide(c.user, request(c.request))
			if want := strings.HasPrefix(c.reason, "RBAC: allowed"); allowed != want || reason != c.reason {
				t.Errorf("%q:\nallowed %v: %s\nwant    %v: %s", c.request, allowed, reason, want, c.reason)
			}
		})
	}
}

func TestTheFirstBindingByNameIsTheReason(t *testing.T) {
	r := newRBAC(t, realWorld)
	for _, name := range []string{"m", "b", "z"} {
		put(t, r, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:  rbacv1.RoleRef{Kind: kindClusterRole, Name: "view"},
			Subjects: []rbacv1.Subject{{Kind: "Group", Name: "readers-" + name}, {Kind: "User", Name: "ann"}}})
	}
	for _, u := range []user.Info{
		named("x", "readers-z", "readers-b", "readers-m", "shop-team"), named("ann", "readers-b"), named("ann", "readers-z"),
	} {
		_, reason := r.Decide(u, request("list core/pods shop/"))
		if want := `RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "view" to `; !strings.HasPrefix(reason, want) {
			t.Errorf("the reason for %v is %q, want %q", u, reason, want)
		}
	}
}

func TestRules(t *testing.T) {
	r := newRBAC(t, realWorld)
	// The binding of viewers names both the user and its group, and counts once.
	resourceRules, otherRules, err := r.Rules(named("ann", "shop-team", "system:authenticated"), "shop")
	if err != nil {
		t.Error(err)
	}
	get := []string{"get"}
	read := []string{"get", "list", "watch"}
	core := []string{""}
	want := []authorizationv1.ResourceRule{
		{Verbs: get, APIGroups: core, Resources: []string{"nodes"}, ResourceNames: []string{"node-1"}},
		{Verbs: get, APIGroups: core, Resources: []string{"configmaps"}, ResourceNames: []string{"ca"}},
		{Verbs: read, APIGroups: core, Resources: []string{"pods", "pods/log", "services", "namespaces"}},
		{Verbs: read, APIGroups: []string{"apps"}, Resources: []string{"deployments", "deployments/scale"}},
	}
	if diff := cmp.Diff(want, resourceRules); diff != "" {
		t.Errorf("rules for resources, - want, + got:\n%s", diff)
	}
	wantOthers := []authorizationv1.NonResourceRule{
		{Verbs: []string{"*"}, NonResourceURLs: []string{"/metrics", "/logs/**"}},
		{Verbs: get, NonResourceURLs: []string{"/api", "/api/*", "/healthz", "/version/"}},
	}
	if diff := cmp.Diff(wantOthers, otherRules); diff != "" {
		t.Errorf("other rules, - want, + got:\n%s", diff)
	}

	resourceRules, otherRules, err = r.Rules(named("dora"), "shop")
	if want := `[role.rbac.authorization.k8s.io "leader-election" not found, ` +
		`clusterrole.rbac.authorization.k8s.io "gone" not found, ` +
		`unsupported role reference kind: "Robot"]`; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
	if resourceRules == nil || otherRules == nil || len(resourceRules)+len(otherRules) > 0 {
		t.Errorf("the rules of a user without roles are %v and %v, want empty lists", resourceRules, otherRules)
	}
}
