package access

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/query"
	"github.com/mirador-k8s/mirador/object"
)

func TestVisible(t *testing.T) {
	r := newRBAC(t, realWorld)
	const cluster, namespaced = false, true
	for _, c := range []struct {
		name                  string
		user                  user.Info
		verb, group, resource string
		namespaced            bool
		want                  *query.Visible
	}{
		{"everything", named("root", "system:masters"), "list", "", "pods", namespaced, &query.Visible{All: true}},
		{"everything at cluster scope", named("root", "system:masters"), "list", "", "nodes", cluster,
			&query.Visible{All: true}},
		{"nothing", named("bob"), "list", "", "pods", namespaced, &query.Visible{}},
		{"no user", nil, "list", "", "pods", namespaced, &query.Visible{}},
		{"a namespace", named("ann"), "list", "", "pods", namespaced, &query.Visible{Namespaces: []string{"shop"}}},
		{"a name in every namespace", named("ann"), "get", "", "configmaps", namespaced,
			&query.Visible{Names: []string{"ca"}}},
		{"a name at cluster scope", named("ann"), "get", "", "nodes", cluster, &query.Visible{Names: []string{"node-1"}}},
		{"an object", named("system:serviceaccount:shop:controller"), "get", "coordination.k8s.io", "leases", namespaced,
			&query.Visible{Keys: []object.Key{"shop/shop-controller"}}},
		{"RoleBindings count for nothing at cluster scope", named("shop-owner"), "get", "", "nodes", cluster,
			&query.Visible{}},
		{"except for their own namespace", named("shop-owner"), "get", "", "namespaces", cluster,
			&query.Visible{Names: []string{"shop"}}},
		{"a missing role", named("dora"), "get", "", "pods", namespaced, &query.Visible{}},
		{"an empty name is a request without a name", named("nameless"), "list", "", "secrets", namespaced,
			&query.Visible{Namespaces: []string{"shop"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := r.Visible(c.user, c.verb, c.group, c.resource, "", c.namespaced)
			if !got.Equal(c.want) {
				t.Errorf("visible is %+v, want %+v", got, c.want)
			}
		})
	}
}

// What a set contains twice, or in two ways, is described once.
func TestVisibleIsSimple(t *testing.T) {
	r := NewRBAC()
	rule := func(names ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"},
			ResourceNames: names}}
	}
	for name, rules := range map[string][]rbacv1.PolicyRule{"all": rule(), "b-a": rule("b", "a"), "c-b": rule("c", "b")} {
		put(t, r, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
	}
	subjects := []rbacv1.Subject{{Kind: "User", Name: "ann"}, {Kind: "Group", Name: "team"}}
	for i, b := range []struct{ namespace, role string }{
		{"y", "all"}, {"x", "all"}, {"x", "all"}, {"x", "b-a"}, {"z", "b-a"}, {"z", "c-b"}, {"", "b-a"},
	} {
		meta := metav1.ObjectMeta{Namespace: b.namespace, Name: fmt.Sprint(i)}
		ref := rbacv1.RoleRef{Kind: "ClusterRole", Name: b.role}
		if b.namespace == "" {
			put(t, r, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
		} else {
			put(t, r, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
		}
	}
	want := &query.Visible{Namespaces: []string{"x", "y"}, Names: []string{"a", "b"}, Keys: []object.Key{"z/c"}}
	if got := r.Visible(named("ann", "team"), "get", "", "pods", "", true); !got.Equal(want) {
		t.Errorf("visible is %+v, want %+v", got, want)
	}
}

// For random roles and bindings, an object is visible exactly if Decide allows the verb for it.
func TestVisibleIsWhatDecideAllows(t *testing.T) {
	var random *rand.Rand
	one := func(values ...string) string { return values[random.IntN(len(values))] }
	some := func(values ...string) []string {
		return slices.Clone(values[:random.IntN(len(values)+1)])
	}
	namespaces := []string{"a", "b", "c", "d"}
	names := []string{"x", "y", "z", "a", "b"}
	shuffled := func(list []string) []string {
		list = slices.Clone(list)
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		return list
	}
	found := 0
	for round := range uint64(300) {
		random = rand.New(rand.NewPCG(round, 0))
		r := NewRBAC()
		for i := range 6 {
			rule := rbacv1.PolicyRule{Verbs: []string{one("get", "list", "*")}, APIGroups: []string{one("", "apps", "*")},
				Resources: some(shuffled([]string{"pods", "nodes", "namespaces", "*/log", "pods/log", "*"})...)}
			if random.IntN(3) > 0 {
				rule.ResourceNames = some(shuffled(append(names, ""))...)
			}
			put(t, r, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)},
				Rules: []rbacv1.PolicyRule{rule}})
		}
		for i := range 8 {
			meta := metav1.ObjectMeta{Name: fmt.Sprint(i)}
			ref := rbacv1.RoleRef{Kind: "ClusterRole", Name: fmt.Sprint(random.IntN(7))}
			subjects := []rbacv1.Subject{{Kind: one("User", "Group"), Name: one("ann", "team")}}
			if random.IntN(5) > 0 {
				meta.Namespace = one(namespaces...)
				put(t, r, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
			} else {
				put(t, r, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
			}
		}
		u := named("ann", some("team", "ann")...)
		for _, resource := range []string{"pods", "nodes", "namespaces"} {
			a := Attributes{ResourceRequest: true, Verb: one("get", "list"), APIGroup: one("", "apps"), Resource: resource,
				Subresource: one("", "", "log")}
			allowed := func(namespace, name string) bool {
				a.Namespace, a.Name = namespace, name
				yes, _ := r.Decide(u, a)
				return yes
			}
			visible := r.Visible(u, a.Verb, a.APIGroup, a.Resource, a.Subresource, resource == "pods")
			check := func(key object.Key, want bool) {
				if got := visible.Contains(key); got != want {
					t.Errorf("round %d: %s %s is visible: %v, want %v (%+v)", round, resource, key, got, want, visible)
				} else if want {
					found++
				}
			}
			for _, name := range append(names, "other") {
				switch {
				case resource == "pods":
					for _, namespace := range append(namespaces, "other") {
						check(object.NewKey(namespace, name),
							allowed("", "") || allowed(namespace, "") || allowed(namespace, name))
					}
				case resource == "namespaces" && a.Verb == "get" && a.APIGroup == "": // it is a request in that namespace
					check(object.Key(name), allowed("", "") || allowed(name, name))
				default:
					check(object.Key(name), allowed("", "") || allowed("", name))
				}
			}
		}
	}
	if found < 1000 {
		t.Errorf("only %d objects were visible; the roles do not test enough", found)
	}
}
