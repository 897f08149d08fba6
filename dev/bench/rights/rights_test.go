package rights

import (
	"fmt"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/access"
)

func TestEachUserMayListATenthOfThePods(t *testing.T) {
	const clusters, namespaces, pods = 10, 500, 5000
	users := Users(40, Shapes()...)
	counts := make([]int, len(users))
	sets := make([]string, len(users))
	for number := range clusters {
		c := Cluster{Number: number, Clusters: clusters, Namespaces: namespaces, Pods: pods,
			Namespace: func(i int) string { return fmt.Sprintf("ns-%03d", i) },
			Pod:       func(i int) string { return fmt.Sprintf("pod-%d", i) }}
		rbac := access.NewRBAC()
		for _, o := range c.Objects(users) {
			if err := rbac.Put(o); err != nil {
				t.Fatal(err)
			}
		}
		for i, u := range users {
			see := rbac.Visible(&user.DefaultInfo{Name: u.Name, Groups: u.Groups}, "list", "", "pods", "", true)
			counts[i] += len(see.Namespaces)*pods/namespaces + len(see.Names) + len(see.Keys)
			if see.All {
				counts[i] += pods
			}
			sets[i] += fmt.Sprint(see.Namespaces)
		}
	}
	same := map[string]string{}
	for i, u := range users {
		if counts[i] != clusters*pods/10 {
			t.Errorf("%s, %s, may list %d of %d pods, want a tenth", u.Name, u.Shape, counts[i], clusters*pods)
		}
		if other, ok := same[sets[i]]; ok && u.Shape == Namespaces {
			t.Errorf("%s and %s may list the same namespaces", u.Name, other)
		}
		same[sets[i]] = u.Name
	}
}

func TestUsersOfALargeClusterMayListPodsInTheirNamespace(t *testing.T) {
	rbac := access.NewRBAC()
	for _, o := range LargeCluster() {
		if err := rbac.Put(o); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 500 {
		name, groups, namespace := UserOfLargeCluster(i)
		want := access.Attributes{ResourceRequest: true, Verb: "list", Resource: "pods", Namespace: namespace}
		if allowed, reason := rbac.Decide(&user.DefaultInfo{Name: name, Groups: groups}, want); !allowed {
			t.Errorf("%s may not list pods in %s: %s", name, namespace, reason)
		}
	}
}
