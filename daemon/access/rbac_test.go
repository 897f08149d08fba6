package access

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/object"
)

// hasChanged reports whether a channel of Changed is closed.
func hasChanged(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestVersionChangesWithWhatAffectsAnAnswer(t *testing.T) {
	role := func(verbs ...string) *rbacv1.Role {
		return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "reader"},
			Rules: []rbacv1.PolicyRule{{Verbs: verbs, APIGroups: []string{""}, Resources: []string{"pods"}}}}
	}
	binding := func(ref string, subjects ...string) *rbacv1.RoleBinding {
		b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "readers"},
			RoleRef: rbacv1.RoleRef{Kind: "Role", Name: ref}}
		for _, s := range subjects {
			b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: "User", Name: s})
		}
		return b
	}
	labelled := role("get")
	labelled.Labels, labelled.ResourceVersion = map[string]string{"a": "b"}, "7"
	labelled.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}}
	unknown := binding("reader", "ann")
	unknown.Subjects = append(unknown.Subjects, rbacv1.Subject{Kind: "Robot", Name: "rob"})
	asUser, asAccount := binding("reader", "ann", "system:serviceaccount:shop:sa"), binding("reader", "ann")
	asAccount.Subjects = append(asAccount.Subjects, rbacv1.Subject{Kind: "ServiceAccount", Name: "sa"})
	noNamespace := binding("reader", "ann")
	noNamespace.Namespace = ""

	r := NewRBAC()
	remove := func(kind string, key object.Key) func() { return func() { r.Delete(kind, key) } }
	add := func(obj any) func() { return func() { put(t, r, obj) } }
	for _, step := range []struct {
		what    string
		do      func()
		changes bool
		allowed bool // ann may get pods
	}{
		{"a role without bindings", add(role("get")), false, false},
		{"a binding without subjects", add(binding("reader")), false, false},
		{"its subject", add(binding("reader", "ann")), true, true},
		{"the same binding", add(binding("reader", "ann")), false, true},
		{"a subject of an unknown kind", add(unknown), false, true},
		{"a subject twice", add(binding("reader", "ann", "ann")), false, true},
		{"another subject", add(binding("reader", "ann", "bob")), true, true},
		{"the order of subjects, which the reason shows", add(binding("reader", "bob", "ann")), true, true},
		{"a service account named as a user", add(asUser), true, true},
		{"the same as a service account, which the reason shows", add(asAccount), true, true},
		{"all subjects less", add(binding("reader")), true, false},
		{"a subject", add(binding("reader", "ann")), true, true},
		{"labels and versions of a role", add(labelled), false, true},
		{"another verb", add(role("list")), true, false},
		{"the first verb", add(role("get")), true, true},
		{"a missing role", remove("Role", "shop/reader"), true, false},
		{"missing again", remove("Role", "shop/reader"), false, false},
		{"the role", add(role("get")), true, true},
		{"a namesake of another kind", remove("ClusterRole", "reader"), false, true},
		{"a binding of another kind", remove("ClusterRoleBinding", "readers"), false, true},
		{"a binding of another kind with a namespace", remove("ClusterRoleBinding", "shop/readers"), false, true},
		{"a binding without a namespace", add(noNamespace), false, true},
		{"another role", add(binding("writer", "ann")), true, false},
		{"a role that no binding refers to any more", add(role("watch")), false, false},
		{"the first role", add(binding("reader", "ann")), true, false},
		{"the first verb of it", add(role("get")), true, true},
		{"a binding less", remove("RoleBinding", "shop/readers"), true, false},
		{"once more", remove("RoleBinding", "shop/readers"), false, false},
		{"a role without bindings less", remove("Role", "shop/reader"), false, false},
	} {
		version, changed := r.Version(), r.Changed()
		step.do()
		if moved := r.Version() != version; moved != step.changes || hasChanged(changed) != step.changes {
			t.Errorf("%s: the version changed: %v, the channel was closed: %v, want %v", step.what, moved,
				hasChanged(changed), step.changes)
		}
		if allowed, _ := r.Decide(named("ann"), request("get core/pods shop/web")); allowed != step.allowed {
			t.Errorf("%s: allowed %v, want %v", step.what, allowed, step.allowed)
		}
	}
	if len(r.roles)+len(r.bindings)+len(r.subjects)+len(r.rules.byHash) > 0 {
		t.Errorf("after everything is deleted, there are %d roles, %d bindings, %d subjects and %d sets of rules",
			len(r.roles), len(r.bindings), len(r.subjects), len(r.rules.byHash))
	}
}

func TestPutRefusesOtherObjects(t *testing.T) {
	if err := NewRBAC().Put(rbacv1.Role{}); err == nil || !strings.Contains(err.Error(), "v1.Role") {
		t.Errorf("the error for a Role that is not a pointer is %v; it has to name the type", err)
	}
}

func TestPutKeepsNothingOfTheObject(t *testing.T) {
	objects := parse(t, realWorld)
	r := NewRBAC()
	put(t, r, objects...)
	for _, obj := range objects {
		switch o := obj.(type) {
		case *rbacv1.ClusterRole:
			for i := range o.Rules {
				clear(o.Rules[i].Verbs)
			}
		case *rbacv1.RoleBinding:
			clear(o.Subjects)
		}
	}
	if allowed, _ := r.Decide(named("ann"), request("list core/pods shop/")); !allowed {
		t.Error("a change of an object after Put changed a decision")
	}
}

func TestEqualRulesAreStoredOnce(t *testing.T) {
	r := NewRBAC()
	role := func(i int, verbs ...string) *rbacv1.Role {
		return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("ns-", i), Name: "leader-election"},
			Rules: []rbacv1.PolicyRule{{Verbs: verbs, APIGroups: []string{"coordination.k8s.io"},
				Resources: []string{"leases"}}}}
	}
	for i := range 100 {
		put(t, r, role(i, "get", "update"))
	}
	put(t, r, role(7, "get"), role(8, "get"), role(8, "get", "update"))
	if len(r.rules.byHash) != 2 {
		t.Errorf("two lists of rules are stored as %d", len(r.rules.byHash))
	}
	for i := range 100 {
		r.Delete("Role", object.NewKey(fmt.Sprint("ns-", i), "leader-election"))
	}
	if len(r.rules.byHash) != 0 {
		t.Errorf("%d lists of rules are left of roles that are deleted", len(r.rules.byHash))
	}
}

// Readers see each state as a whole while a writer changes roles and bindings: the right moves from one binding to
// another, and at any moment one of them gives it.
func TestReadersDuringChanges(t *testing.T) {
	r := newRBAC(t, realWorld)
	binding := func(name string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: name},
			RoleRef:  rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"},
			Subjects: []rbacv1.Subject{{Kind: "Group", Name: "web-team"}, {Kind: "User", Name: "zoe"}}}
	}
	put(t, r, binding("even"))
	var stop atomic.Bool
	var readers sync.WaitGroup
	u := named("zoe", "web-team", "system:authenticated")
	for range 4 {
		readers.Go(func() {
			last := uint64(0)
			for !stop.Load() {
				version := r.Version()
				if version < last {
					t.Errorf("the version went from %d to %d", last, version)
				}
				last = version
				if allowed, reason := r.Decide(u, request("list core/pods web/")); !allowed {
					t.Errorf("refused during a change that leaves the right: %s", reason)
				}
				if !r.Visible(u, "list", "", "pods", "", true).Contains("web/front") {
					t.Error("invisible during a change that leaves the right")
				}
				if rules, _, err := r.Rules(u, "web"); len(rules) < 2 || err != nil {
					t.Errorf("%d rules during a change that leaves two: %v", len(rules), err)
				}
				r.Changed()
			}
		})
	}
	objects := parse(t, realWorld)
	for i := range 2000 {
		added, removed := "odd", "even"
		if i%2 == 1 {
			added, removed = removed, added
		}
		put(t, r, binding(added))
		r.Delete("RoleBinding", object.NewKey("web", removed))
		put(t, r, objects[i%len(objects)])
	}
	stop.Store(true)
	readers.Wait()
}
