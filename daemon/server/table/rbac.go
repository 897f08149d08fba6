package table

import (
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Roles themselves have the default columns.
var rbac = []entry{
	of("rbac.authorization.k8s.io", "RoleBinding", roleBinding),
	of("rbac.authorization.k8s.io", "ClusterRoleBinding", clusterRoleBinding),
}

func roleBinding(b *rbacv1.RoleBinding, now time.Time) Row {
	users, groups, accounts := subjects(b.Subjects)
	return cells(b.Name, b.RoleRef.Kind+"/"+b.RoleRef.Name, born(&b.ObjectMeta, now), users, groups, accounts)
}

func clusterRoleBinding(b *rbacv1.ClusterRoleBinding, now time.Time) Row {
	users, groups, accounts := subjects(b.Subjects)
	return cells(b.Name, b.RoleRef.Kind+"/"+b.RoleRef.Name, born(&b.ObjectMeta, now), users, groups, accounts)
}

// subjects returns the users, groups and service accounts of a binding, for three cells.
func subjects(list []rbacv1.Subject) (users, groups, accounts string) {
	var u, g, a []string
	for _, s := range list {
		switch s.Kind {
		case rbacv1.UserKind:
			u = append(u, s.Name)
		case rbacv1.GroupKind:
			g = append(g, s.Name)
		case rbacv1.ServiceAccountKind:
			a = append(a, s.Namespace+"/"+s.Name)
		}
	}
	return strings.Join(u, ", "), strings.Join(g, ", "), strings.Join(a, ", ")
}
