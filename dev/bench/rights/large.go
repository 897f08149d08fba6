package rights

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	largeBindings   = 5000
	largeNamespaces = 250
	largeTeams      = 125
	largeRoles      = 80
)

// LargeCluster returns the roles and bindings of a large cluster: 80 ClusterRoles of 12 rules, 500 ClusterRoleBindings
// and 4,500 RoleBindings. Each of 500 users has five RoleBindings of its own, and three groups with twelve each. The
// others are of service accounts.
func LargeCluster() (all []runtime.Object) {
	for i := range largeRoles {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("role-", i)}}
		for j := range 12 {
			resources := []string{fmt.Sprint("kind-", j), fmt.Sprint("things-", i), fmt.Sprintf("things-%d/status", i), "pods",
				"pods/log", "services", "configmaps"}
			role.Rules = append(role.Rules, rbacv1.PolicyRule{Verbs: []string{"get", "list", "watch"},
				APIGroups: []string{[]string{"", "apps", "batch", fmt.Sprintf("g%d.example.com", i)}[j%4]},
				Resources: resources[j%4:]})
		}
		all = append(all, role)
	}
	for i := range largeBindings {
		meta := metav1.ObjectMeta{Namespace: fmt.Sprint("ns-", i%largeNamespaces), Name: fmt.Sprint("binding-", i)}
		role := ref("ClusterRole", fmt.Sprint("role-", i%largeRoles))
		account := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: meta.Namespace, Name: fmt.Sprint("account-", i)}}
		switch i % 10 {
		case 0:
			meta.Namespace = ""
			all = append(all, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: role, Subjects: account})
		case 1, 2, 3, 4, 5:
			all = append(all, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: role,
				Subjects: subjects("User", fmt.Sprint("user-", i/10))})
		case 6, 7, 8:
			all = append(all, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: role,
				Subjects: subjects("Group", fmt.Sprint("team-", i/10%largeTeams))})
		default:
			all = append(all, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: role, Subjects: account})
		}
	}
	return all
}

// UserOfLargeCluster returns the name and the groups of one of the 500 users of LargeCluster, and a namespace in which
// it may list pods.
func UserOfLargeCluster(i int) (name string, groups []string, namespace string) {
	for _, further := range []int{0, 7, 31} {
		groups = append(groups, fmt.Sprint("team-", (i+further)%largeTeams))
	}
	return fmt.Sprint("user-", i), groups, fmt.Sprint("ns-", (10*i+1)%largeNamespaces)
}
