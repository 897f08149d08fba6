package access

import (
	"fmt"
	"runtime"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

const (
	benchBindings   = 5000
	benchUsers      = 500
	benchNamespaces = 250
)

// benchObjects returns the roles and bindings of a large cluster: 80 ClusterRoles with 12 rules each, a Role in each
// namespace, 500 ClusterRoleBindings and 4,500 RoleBindings. Each user has 5 RoleBindings of its own and 3 teams with
// 12 RoleBindings each. Service accounts have the other RoleBindings.
func benchObjects() (objects []any) {
	for i := range 80 {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("role-", i)}}
		for j := range 12 {
			role.Rules = append(role.Rules, rbacv1.PolicyRule{Verbs: []string{"get", "list", "watch"},
				APIGroups: []string{[]string{"", "apps", "batch", fmt.Sprintf("g%d.example.com", i)}[j%4]},
				Resources: []string{fmt.Sprint("kind-", j), fmt.Sprint("things-", i), fmt.Sprintf("things-%d/status", i), "pods",
					"pods/log", "services", "configmaps"}[j%4:]})
		}
		objects = append(objects, role)
	}
	for i := range benchNamespaces {
		objects = append(objects, &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("ns-", i), Name: "leader-election"},
			Rules: []rbacv1.PolicyRule{{Verbs: []string{"get", "update"}, APIGroups: []string{"coordination.k8s.io"},
				Resources: []string{"leases"}, ResourceNames: []string{"leader"}}}})
	}
	for i := range benchBindings {
		meta := metav1.ObjectMeta{Namespace: fmt.Sprint("ns-", i%benchNamespaces), Name: fmt.Sprint("binding-", i)}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: fmt.Sprint("role-", i%80)}
		account := rbacv1.Subject{Kind: "ServiceAccount", Namespace: meta.Namespace, Name: fmt.Sprint("sa-", i)}
		switch {
		case i%10 == 0: // 500 controllers
			meta.Namespace = ""
			objects = append(objects, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref,
				Subjects: []rbacv1.Subject{account}})
		case i%10 <= 5: // 2,500 of users
			objects = append(objects, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref,
				Subjects: []rbacv1.Subject{{Kind: "User", Name: fmt.Sprint("user-", i/10)}}})
		case i%10 <= 8: // 1,500 of 125 teams
			objects = append(objects, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref,
				Subjects: []rbacv1.Subject{{Kind: "Group", Name: fmt.Sprint("team-", i/10%125)}}})
		default:
			ref.Kind, ref.Name = "Role", "leader-election"
			objects = append(objects, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref,
				Subjects: []rbacv1.Subject{account}})
		}
	}
	return objects
}

func benchUser(i int) user.Info {
	team := func(j int) string { return fmt.Sprint("team-", (i+j)%125) }
	return named(fmt.Sprint("user-", i), team(0), team(7), team(31), "system:authenticated")
}

func newBenchRBAC(b *testing.B) *RBAC {
	r := NewRBAC()
	put(b, r, benchObjects()...)
	return r
}

func BenchmarkDecide(b *testing.B) {
	r := newBenchRBAC(b)
	users := make([]user.Info, benchUsers)
	for i := range users {
		users[i] = benchUser(i)
	}
	for _, c := range []struct {
		name    string
		request func(i int) Attributes
	}{
		// A user of the benchmark has its own bindings in the namespaces of the numbers 10 * i + 1 to 10 * i + 5.
		{"allowed", func(i int) Attributes {
			return Attributes{ResourceRequest: true, Verb: "list", Resource: "pods",
				Namespace: fmt.Sprint("ns-", (10*i+1)%benchNamespaces)}
		}},
		{"refused", func(i int) Attributes {
			return Attributes{ResourceRequest: true, Verb: "delete", Resource: "pods",
				Namespace: fmt.Sprint("ns-", (10*i+1)%benchNamespaces)}
		}},
		{"everywhere", func(int) Attributes { return Attributes{ResourceRequest: true, Verb: "list", Resource: "pods"} }},
	} {
		b.Run(c.name, func(b *testing.B) {
			requests := make([]Attributes, benchUsers)
			for i := range requests {
				requests[i] = c.request(i)
			}
			if allowed, reason := r.Decide(users[1], requests[1]); allowed != (c.name == "allowed") {
				b.Fatalf("allowed %v: %s", allowed, reason)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r.Decide(users[i%benchUsers], requests[i%benchUsers])
				i++
			}
		})
	}
}

func BenchmarkVisible(b *testing.B) {
	r := newBenchRBAC(b)
	users := make([]user.Info, benchUsers)
	for i := range users {
		users[i] = benchUser(i)
	}
	if n := len(r.Visible(users[1], "list", "", "pods", "", true).Namespaces); n < 10 {
		b.Fatalf("a user sees %d namespaces; the benchmark has too few bindings", n)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		r.Visible(users[i%benchUsers], "list", "", "pods", "", true)
		i++
	}
}

// BenchmarkVisibleByName is of a user that may see two objects by name in each of 500 namespaces: the first list of
// such a user needs what it may list, and what it may watch.
func BenchmarkVisibleByName(b *testing.B) {
	r := NewRBAC()
	for i := range 500 {
		meta := metav1.ObjectMeta{Namespace: fmt.Sprintf("namespace-%03d", i), Name: "two"}
		put(b, r, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get", "list", "watch"},
			APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{
				fmt.Sprintf("web-%d-7c6b9d5f4-x2x5z", i), fmt.Sprintf("api-%d-5d8f7c9b6d-q8w2k", i)}}}},
			&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "two"},
				Subjects: []rbacv1.Subject{{Kind: "Group", Name: "team"}}})
	}
	u := named("ann", "team")
	kept := r.Visible(u, "list", "", "pods", "", true) // by another user of the team
	if len(kept.Keys) != 1000 {
		b.Fatalf("the user sees %d objects", len(kept.Keys))
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, verb := range []string{"list", "watch"} {
			if r.Visible(u, verb, "", "pods", "", true) != kept {
				b.Fatal("equal sets are not one")
			}
		}
	}
}

// BenchmarkPut reports the time and the memory of all roles and bindings together.
func BenchmarkPut(b *testing.B) {
	objects := benchObjects()
	var r *RBAC
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := inUse()
	for b.Loop() {
		r = NewRBAC()
		put(b, r, objects...)
	}
	b.ReportMetric(float64(inUse()-before), "index-bytes")
	runtime.KeepAlive(objects)
	runtime.KeepAlive(r)
}
