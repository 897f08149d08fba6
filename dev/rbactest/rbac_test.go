package rbactest

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/object"
)

// decisions is the number of decisions that are compared: 20,000, or 1,000,000 with MIRADOR_NIGHTLY=1.
func decisions() int {
	if os.Getenv("MIRADOR_NIGHTLY") != "" {
		return 1_000_000
	}
	return 20_000
}

// comparison is one cluster in both evaluations.
type comparison struct {
	random
	ours    *access.RBAC
	theirs  *upstream
	objects map[string]map[object.Key]runtime.Object // by kind
	allowed int
}

// Decisions, reasons, rules and visible objects are those of Kubernetes' authorizer while roles and bindings change,
// and a change of any of them is a change of the version.
func TestRBACDecidesAsKubernetesDoes(t *testing.T) {
	c := &comparison{random: newRandom(t), ours: access.NewRBAC(), theirs: newUpstream(),
		objects: map[string]map[object.Key]runtime.Object{}}
	total := decisions()
	for i := range total {
		switch {
		case i%20_000 == 0:
			c.clear(t) // from time to time there are few objects
		case i%8 == 0:
			c.change(t)
		}
		by, request := c.question()
		if c.decide(t, by, request) {
			c.allowed++
		}
		if i%16 == 0 {
			c.compareRules(t)
		}
		if i%64 == 0 {
			c.compareVisible(t)
		}
		if t.Failed() {
			t.Fatalf("stopped after %d decisions", i+1)
		}
	}
	t.Logf("%d decisions, %d of them allowed", total, c.allowed)
	if c.allowed < total/10 || c.allowed > total*9/10 {
		t.Errorf("%d of %d requests were allowed; the requests do not test enough", c.allowed, total)
	}
}

// decide compares one decision.
func (c *comparison) decide(t *testing.T, by user.Info, a access.Attributes) bool {
	t.Helper()
	allowed, reason := c.ours.Decide(by, a)
	wantAllowed, wantReason := c.theirs.decide(t, by, a)
	if allowed != wantAllowed || reason != wantReason {
		t.Errorf("user %+v, request %+v:\ngot  %v: %s\nwant %v: %s", by, a, allowed, reason, wantAllowed, wantReason)
	}
	return allowed
}

// existing returns one of the objects of a kind, or nil.
func (c *comparison) existing(kind string) runtime.Object {
	keys := slices.Sorted(maps.Keys(c.objects[kind]))
	if len(keys) == 0 {
		return nil
	}
	return c.objects[kind][one(c.random, keys)]
}

// question returns a user and a request. Most are made from a binding and a rule of its role with few other values, so
// that many are allowed, and many are not for a single reason.
func (c *comparison) question() (user.Info, access.Attributes) {
	by, a := c.user(), c.request()
	if c.IntN(5) == 0 {
		return by, a
	}
	var ref rbacv1.RoleRef
	var subjects []rbacv1.Subject
	var in string
	switch b := c.existing(one(c.random, []string{"RoleBinding", "ClusterRoleBinding"})).(type) {
	case *rbacv1.RoleBinding:
		ref, subjects, in, a.Namespace = b.RoleRef, b.Subjects, b.Namespace, b.Namespace
	case *rbacv1.ClusterRoleBinding:
		ref, subjects = b.RoleRef, b.Subjects
	}
	if len(subjects) > 0 {
		switch s := one(c.random, subjects); s.Kind {
		case "ServiceAccount":
			by.Name = "system:serviceaccount:" + cmp.Or(s.Namespace, in) + ":" + s.Name
		case "Group":
			by.Groups = append(by.Groups, s.Name)
		default:
			by.Name = s.Name
		}
	}
	var rules []rbacv1.PolicyRule
	switch r := c.objects[ref.Kind][roleKey(ref, in)].(type) {
	case *rbacv1.Role:
		rules = r.Rules
	case *rbacv1.ClusterRole:
		rules = r.Rules
	}
	if len(rules) > 0 {
		c.fit(&a, one(c.random, rules))
	}
	return by, a
}

// roleKey returns the key of the role that a binding of a namespace refers to.
func roleKey(ref rbacv1.RoleRef, namespace string) object.Key {
	if ref.Kind == "Role" {
		return object.NewKey(namespace, ref.Name)
	}
	return object.Key(ref.Name)
}

// fit changes most of the values of a request to those of a rule. A wildcard leaves the value as it is.
func (c *comparison) fit(a *access.Attributes, rule rbacv1.PolicyRule) {
	set := func(field *string, values []string) {
		if len(values) == 0 || c.IntN(20) == 0 {
			return
		}
		if value := one(c.random, values); value != "*" {
			*field = value
		}
	}
	a.ResourceRequest = len(rule.NonResourceURLs) == 0 || c.IntN(2) == 0
	set(&a.Verb, rule.Verbs)
	set(&a.Path, rule.NonResourceURLs)
	a.Path = strings.Replace(a.Path, "*", one(c.random, requestNames), c.IntN(3))
	if !a.ResourceRequest {
		return
	}
	a.Path = ""
	set(&a.APIGroup, rule.APIGroups)
	set(&a.Name, rule.ResourceNames)
	combined := a.Resource + "/" + a.Subresource
	set(&combined, rule.Resources)
	a.Resource, a.Subresource, _ = strings.Cut(combined, "/")
	if a.Resource == "*" {
		a.Resource = one(c.random, requestKinds)
	}
}

func (c *comparison) clear(t *testing.T) {
	t.Helper()
	for kind, objects := range c.objects {
		for key, obj := range objects {
			c.theirs.delete(t, obj)
			c.ours.Delete(kind, key)
		}
		clear(objects)
	}
}

// change puts or deletes a role or a binding, and verifies that the version changes if an answer does.
func (c *comparison) change(t *testing.T) {
	t.Helper()
	type question struct {
		user    user.Info
		request access.Attributes
		allowed bool
		reason  string
	}
	questions := make([]question, 4)
	for i := range questions {
		var q question
		q.user, q.request = c.question()
		q.allowed, q.reason = c.theirs.decide(t, q.user, q.request)
		questions[i] = q
	}
	version, changed := c.ours.Version(), c.ours.Changed()

	obj := c.object()
	kind, key := kindOf(obj), keyOf(t, obj)
	old := c.objects[kind][key]
	switch c.IntN(8) {
	case 0:
		c.theirs.delete(t, obj)
		c.ours.Delete(kind, key)
		delete(c.objects[kind], key)
	default:
		if c.objects[kind] == nil {
			c.objects[kind] = map[object.Key]runtime.Object{}
		}
		c.theirs.put(t, obj)
		if err := c.ours.Put(obj.DeepCopyObject()); err != nil {
			t.Fatal(err)
		}
		c.objects[kind][key] = obj
	}

	moved := c.ours.Version() != version
	for _, q := range questions {
		allowed, reason := c.theirs.decide(t, q.user, q.request)
		if (allowed != q.allowed || reason != q.reason) && !moved {
			t.Errorf("the version is still %d, but the answer to %+v for %+v was %q and is %q after %+v became %+v",
				version, q.request, q.user, q.reason, reason, old, obj)
		}
	}
	select {
	case <-changed:
		if !moved {
			t.Error("the channel of changes is closed, and the version is still the same")
		}
	default:
		if moved {
			t.Error("the version has changed, and the channel of changes is open")
		}
	}
	c.compareUnchanged(t)
}

// compareUnchanged puts an object again with other metadata, which does not change an answer.
func (c *comparison) compareUnchanged(t *testing.T) {
	t.Helper()
	obj := c.existing(one(c.random, []string{"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}))
	if obj == nil {
		return
	}
	obj = obj.DeepCopyObject()
	m, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	m.SetLabels(map[string]string{"team": "x"})
	m.SetResourceVersion("1000")
	version := c.ours.Version()
	if err := c.ours.Put(obj); err != nil {
		t.Fatal(err)
	}
	if c.ours.Version() != version {
		t.Errorf("the version has changed, but only the labels of %+v have", obj)
	}
}

func (c *comparison) compareRules(t *testing.T) {
	t.Helper()
	of, _ := c.question()
	namespace := one(c.random, namespaces)
	resourceRules, otherRules, err := c.ours.Rules(of, namespace)
	failure := ""
	if err != nil {
		failure = err.Error()
	}
	wantResourceRules, wantOtherRules, wantFailure := c.theirs.rules(t, of, namespace)
	if !apiequality.Semantic.DeepEqual(resourceRules, wantResourceRules) ||
		!apiequality.Semantic.DeepEqual(otherRules, wantOtherRules) || failure != wantFailure {
		t.Errorf("rules of %+v in %s:\ngot  %+v\n     %+v\n     %s\nwant %+v\n     %+v\n     %s", of, namespace,
			resourceRules, otherRules, failure, wantResourceRules, wantOtherRules, wantFailure)
	}
}

// compareVisible compares the visible objects of a resource with decisions about each object.
func (c *comparison) compareVisible(t *testing.T) {
	t.Helper()
	of, a := c.question()
	a.ResourceRequest, a.Path = true, ""
	namespaced := c.IntN(3) > 0
	visible := c.ours.Visible(of, a.Verb, a.APIGroup, a.Resource, a.Subresource, namespaced)
	allowed := func(namespace, name string) bool {
		a.Namespace, a.Name = namespace, name
		yes, _ := c.theirs.decide(t, of, a)
		return yes
	}
	in := []string{""}
	if namespaced {
		in = append(namespaces, "unknown")
	}
	for _, namespace := range in {
		for _, name := range []string{"x", "y", "z", "other"} {
			got := visible.Contains(object.NewKey(namespace, name))
			if want := allowed("", "") || allowed(namespace, "") || allowed(namespace, name); got != want {
				t.Errorf("%s/%s is visible to %+v: %v, want %v (%+v in %+v)", namespace, name, of, got, want, a, visible)
			}
		}
	}
}
