// Package rights makes the users of a simulated fleet, and the roles and bindings that its clusters have for them.
//
// Each user may list a tenth of all pods of the fleet, and no two users of
// shape [Namespaces] may list the same pods.
package rights

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Shape is how the rights of a user are given.
type Shape int

const (
	// Clusters users may list everything in one of ten clusters, by a ClusterRoleBinding.
	Clusters Shape = iota
	// Namespaces users have two groups, each with RoleBindings in a twentieth of the namespaces of every cluster.
	Namespaces
	// Names users have a ClusterRoleBinding in every cluster, to a role with the names of a tenth of its pods.
	Names
	// Objects users have a RoleBinding in every namespace, to a role with the names of a tenth of its pods.
	Objects
)

// String returns the name of the shape in tables.
func (s Shape) String() string {
	return [...]string{"by cluster", "by 50 of 500 namespaces", "by name in all namespaces",
		"by name in 500 namespaces"}[s]
}

// Shapes returns all shapes.
func Shapes() []Shape { return []Shape{Clusters, Namespaces, Names, Objects} }

// User is a user of the fleet.
type User struct {
	Name   string
	Groups []string
	Shape  Shape
	number int // among the users of its shape
}

// Token returns the token with which a user authenticates.
func (u *User) Token() string { return "the-token-of-" + u.Name }

// Administrator is a user that may see everything.
func Administrator() User { return User{Name: "root"} }

// teams is the number of groups on each half of the namespaces.
const teams = 25

// Users returns n users, one of each shape in turn.
func Users(n int, shapes ...Shape) []User {
	users := make([]User, n)
	for i := range users {
		u := User{Name: fmt.Sprintf("user-%03d", i), Shape: shapes[i%len(shapes)], number: i / len(shapes)}
		switch u.Shape {
		case Namespaces: // each pair of groups once
			u.Groups = []string{team("a", u.number%teams), team("b", (u.number%teams+u.number/teams)%teams)}
		case Objects:
			u.Groups = []string{everyTenth}
		}
		users[i] = u
	}
	return users
}

func team(half string, i int) string { return fmt.Sprintf("team-%s-%d", half, i) }

const (
	viewer     = "viewer"
	everyTenth = "every-tenth"
	nameRoles  = 5
)

// Cluster describes a cluster of the fleet.
type Cluster struct {
	Number, Clusters int // this cluster, and how many there are
	Namespaces, Pods int
	// Namespace returns the name of a namespace, and Pod that of a pod. Pods with equal numbers modulo Namespaces are in
	// one namespace.
	Namespace, Pod func(i int) string
}

// Objects returns the roles and bindings of a cluster for the users.
func (c *Cluster) Objects(users []User) []runtime.Object {
	all := []runtime.Object{&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: viewer}, Rules: viewerRules()}}
	has := map[Shape]bool{}
	for i := range users {
		u := &users[i]
		has[u.Shape] = true
		switch {
		case u.Shape == Clusters && u.number%c.Clusters == c.Number:
			all = append(all, clusterBinding(u.Name, viewer))
		case u.Shape == Names:
			all = append(all, clusterBinding(u.Name, nameRole((u.number+c.Number)%nameRoles)))
		}
	}
	for r := 0; r < nameRoles && has[Names]; r++ {
		all = append(all, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: nameRole(r)},
			Rules: listPods(c.podNames(r, c.Pods, 10))})
	}
	for n := range c.Namespaces {
		meta := metav1.ObjectMeta{Namespace: c.Namespace(n), Name: viewer}
		if has[Namespaces] {
			all = append(all, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref("ClusterRole", viewer),
				Subjects: c.teamsOf(n)})
		}
		if meta.Name = everyTenth; has[Objects] {
			all = append(all,
				&rbacv1.Role{ObjectMeta: meta, Rules: listPods(c.podNames(n, c.Pods/10, c.Namespaces))},
				&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref("Role", everyTenth), Subjects: subjects("Group", everyTenth)})
		}
	}
	return all
}

// podNames returns the names of the pods from one number on, up to another, with a step.
func (c *Cluster) podNames(from, to, step int) (names []string) {
	for i := from; i < to; i += step {
		names = append(names, c.Pod(i))
	}
	return names
}

// teamsOf returns the groups that may see a namespace. The groups of one half have a tenth of its namespaces each,
// which overlap.
func (c *Cluster) teamsOf(namespace int) []rbacv1.Subject {
	half, name := c.Namespaces/2, "a"
	if namespace >= half {
		namespace, name = namespace-half, "b"
	}
	var groups []string
	for t := range teams {
		if first := t * half / teams; (namespace-first+half)%half < c.Namespaces/20 {
			groups = append(groups, team(name, t))
		}
	}
	return subjects("Group", groups...)
}

func nameRole(i int) string { return fmt.Sprintf("names-%d", i) }

func listPods(names []string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""},
		Resources: []string{"pods"}, ResourceNames: names}}
}

// viewerRules are rules as those of the role view of Kubernetes: some resources of some groups in each.
func viewerRules() (rules []rbacv1.PolicyRule) {
	for _, r := range []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"deployments", "daemonsets", "replicasets", "statefulsets"}},
		{APIGroups: []string{"batch"}, Resources: []string{"cronjobs", "jobs"}},
		{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses", "networkpolicies"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps", "endpoints", "pods", "pods/log", "services"}},
	} {
		r.Verbs = []string{"get", "list", "watch"}
		rules = append(rules, r)
	}
	return rules
}

func clusterBinding(user, role string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user + "-" + role},
		RoleRef: ref("ClusterRole", role), Subjects: subjects("User", user)}
}

func ref(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

func subjects(kind string, names ...string) (out []rbacv1.Subject) {
	for _, name := range names {
		out = append(out, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: kind, Name: name})
	}
	return out
}
