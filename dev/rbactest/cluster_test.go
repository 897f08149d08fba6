package rbactest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/dev/testcluster"
)

// reviews is the number of reviews that are compared: 1,000, or 5,000 with MIRADOR_NIGHTLY=1.
func reviews() int {
	if os.Getenv("MIRADOR_NIGHTLY") != "" {
		return 5_000
	}
	return 1_000
}

// patience is how long a change may take to reach both sides.
const patience = time.Minute

// realCluster is a cluster, a mirror of its rights, and a source of valid roles, bindings and requests.
type realCluster struct {
	random
	config     *rest.Config
	client     rbacclient.RbacV1Interface
	reviews    kubernetes.Interface
	ours       *access.RBAC
	namespaces []string
}

func startCluster(t *testing.T) *realCluster {
	cluster := testcluster.Start(t, testcluster.Nodes(1))
	config := cluster.Config()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	c := &realCluster{random: newRandom(t), config: config, client: client.RbacV1(), reviews: client,
		ours: access.NewRBAC()}
	for range 3 {
		c.namespaces = append(c.namespaces, cluster.Namespace(t))
	}
	c.mirror(t, client)
	return c
}

// mirror feeds all roles and bindings of the cluster to the evaluation, until the end of the test.
func (c *realCluster) mirror(t *testing.T, client kubernetes.Interface) {
	factory := informers.NewSharedInformerFactory(client, 0)
	put := func(obj any) {
		if err := c.ours.Put(obj); err != nil {
			t.Error(err)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: put, UpdateFunc: func(_, obj any) { put(obj) },
		DeleteFunc: func(obj any) {
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			c.ours.Delete(kindOf(obj.(runtime.Object)), keyOf(t, obj.(runtime.Object)))
		}}
	rbacs := factory.Rbac().V1()
	var synced []cache.InformerSynced
	for _, informer := range []cache.SharedIndexInformer{rbacs.Roles().Informer(), rbacs.ClusterRoles().Informer(),
		rbacs.RoleBindings().Informer(), rbacs.ClusterRoleBindings().Informer()} {
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			t.Fatal(err)
		}
		synced = append(synced, registration.HasSynced)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		t.Fatal("the roles and bindings were not listed")
	}
}

// review asks the API server.
func (c *realCluster) review(ctx context.Context, by user.Info, a access.Attributes) (
	allowed bool, reason string, err error) {
	review := &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: by.GetName(), Groups: by.GetGroups()}}
	if a.ResourceRequest {
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Namespace: a.Namespace, Verb: a.Verb,
			Group: a.APIGroup, Version: a.APIVersion, Resource: a.Resource, Subresource: a.Subresource, Name: a.Name}
	} else {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: a.Path, Verb: a.Verb}
	}
	review, err = c.reviews.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, "", err
	}
	return review.Status.Allowed, review.Status.Reason, nil
}

// until waits until both the API server and the mirror give a decision.
func (c *realCluster) until(t *testing.T, want bool, by user.Info, a access.Attributes) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, patience, true,
		func(ctx context.Context) (bool, error) {
			if allowed, _ := c.ours.Decide(by, a); allowed != want {
				return false, nil
			}
			allowed, _, err := c.review(ctx, by, a)
			return allowed == want, err
		})
	if err != nil {
		t.Fatalf("waiting until %+v of %v is allowed: %v: %v", a, by, want, err)
	}
}

// write creates or replaces an object, or deletes it.
func write[T runtime.Object](t *testing.T, client interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}, obj T, remove bool) {
	t.Helper()
	name := keyOf(t, obj).Name()
	if !remove {
		_, err := client.Update(t.Context(), obj, metav1.UpdateOptions{})
		if err == nil {
			return
		}
		if !apierrors.IsNotFound(err) && !apierrors.IsInvalid(err) { // a binding cannot change its role
			t.Fatal(err)
		}
	}
	if err := client.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if !remove {
		if _, err := client.Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func (c *realCluster) write(t *testing.T, obj runtime.Object, remove bool) {
	t.Helper()
	switch o := obj.(type) {
	case *rbacv1.Role:
		write(t, c.client.Roles(o.Namespace), o, remove)
	case *rbacv1.ClusterRole:
		write(t, c.client.ClusterRoles(), o, remove)
	case *rbacv1.RoleBinding:
		write(t, c.client.RoleBindings(o.Namespace), o, remove)
	case *rbacv1.ClusterRoleBinding:
		write(t, c.client.ClusterRoleBindings(), o, remove)
	}
}

// await waits until the API server and the mirror have seen all changes so far. Each kind has a watch of its own, so
// that an object of each kind is written last, and waited for.
func (c *realCluster) await(t *testing.T, round int) {
	t.Helper()
	const name = "last-of-a-round"
	in := c.namespaces[0]
	mark := fmt.Sprint("round-", round)
	rules := func(resource string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{"rounds.example.com"},
			Resources: []string{resource}, ResourceNames: []string{mark}}}
	}
	meta, clusterMeta := metav1.ObjectMeta{Namespace: in, Name: name}, metav1.ObjectMeta{Name: name}
	role, clusterRole := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	subjects := func(kind string) []rbacv1.Subject {
		return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: kind + mark}}
	}
	c.write(t, &rbacv1.Role{ObjectMeta: meta, Rules: rules("in-a-role")}, false)
	c.write(t, &rbacv1.ClusterRole{ObjectMeta: clusterMeta, Rules: rules("in-a-cluster-role")}, false)
	c.write(t, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: role, Subjects: subjects("rb-")}, false)
	c.write(t, &rbacv1.ClusterRoleBinding{ObjectMeta: clusterMeta, RoleRef: clusterRole, Subjects: subjects("crb-")},
		false)
	request := access.Attributes{ResourceRequest: true, Verb: "get", APIGroup: "rounds.example.com", Namespace: in,
		Name: mark, Resource: "in-a-role"}
	c.until(t, true, &user.DefaultInfo{Name: "rb-" + mark}, request)
	request.Resource = "in-a-cluster-role"
	c.until(t, true, &user.DefaultInfo{Name: "crb-" + mark}, request)
}

// The values are those of random, without the ones that an API server refuses.
func (c *realCluster) validRules(paths bool) []rbacv1.PolicyRule {
	rules := make([]rbacv1.PolicyRule, c.count(4))
	for i := range rules {
		rule := rbacv1.PolicyRule{Verbs: c.atLeastOne([]string{"get", "list", "watch", "create", "*"})}
		if paths && c.IntN(4) == 0 {
			rule.NonResourceURLs = c.atLeastOne([]string{"*", "/api/*", "/custom", "/custom/*", "/healthz/ping"})
		} else {
			rule.APIGroups = c.atLeastOne([]string{"", "", "apps", "example.com", "*"})
			rule.Resources = c.atLeastOne([]string{"pods", "pods", "deployments", "*", "pods/log", "*/scale", "*/log", "pods/*"})
			if c.IntN(3) == 0 {
				rule.ResourceNames = c.atLeastOne([]string{"x", "y", "z"})
			}
		}
		rules[i] = rule
	}
	return rules
}

func (c *realCluster) atLeastOne(list []string) []string {
	return append(some(c.random, list, 2), one(c.random, list))
}

func (c *realCluster) account() string { return one(c.random, []string{"sa", "other"}) }

func (c *realCluster) validSubjects() []rbacv1.Subject {
	subjects := make([]rbacv1.Subject, c.count(3))
	for i := range subjects {
		switch c.IntN(3) {
		case 0:
			subjects[i] = rbacv1.Subject{Kind: "ServiceAccount", Name: c.account(), Namespace: one(c.random, c.namespaces)}
		case 1:
			subjects[i] = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group",
				Name: one(c.random, []string{"devs", "ops", "system:serviceaccounts:" + c.namespaces[0]})}
		default:
			subjects[i] = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User",
				Name: one(c.random, []string{"ann", "bob", "eve", c.accountUser()})}
		}
	}
	return subjects
}

func (c *realCluster) accountUser() string {
	return "system:serviceaccount:" + one(c.random, c.namespaces) + ":" + c.account()
}

func (c *realCluster) validObject() runtime.Object {
	role := fmt.Sprint("random-", c.IntN(6))
	in := one(c.random, c.namespaces)
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
		Name: one(c.random, []string{role, role, role, "view", "system:node-problem-detector"})}
	binding := fmt.Sprint("random-", c.IntN(5))
	switch c.IntN(4) {
	case 0:
		return &rbacv1.Role{ObjectMeta: c.meta(in, role), Rules: c.validRules(false)}
	case 1:
		return &rbacv1.ClusterRole{ObjectMeta: c.meta("", role), Rules: c.validRules(true)}
	case 2:
		if c.IntN(2) == 0 {
			ref.Kind, ref.Name = "Role", role
		}
		return &rbacv1.RoleBinding{ObjectMeta: c.meta(in, binding), RoleRef: ref, Subjects: c.validSubjects()}
	default:
		return &rbacv1.ClusterRoleBinding{ObjectMeta: c.meta("", binding), RoleRef: ref, Subjects: c.validSubjects()}
	}
}

// meta returns metadata without a version, so that an update is unconditional.
func (c *realCluster) meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func (c *realCluster) validQuestion() (user.Info, access.Attributes) {
	by := &user.DefaultInfo{
		Name: one(c.random, []string{"ann", "bob", "eve", "unknown", c.accountUser(), c.accountUser()}),
		Groups: append(some(c.random, []string{"devs", "ops", "system:serviceaccounts:" + c.namespaces[0]}, 2),
			"system:authenticated")}
	a := access.Attributes{Verb: one(c.random, []string{"get", "list", "watch", "create", "delete", "*"})}
	if c.IntN(5) == 0 {
		a.Path = one(c.random, []string{"/api", "/api/v1", "/custom", "/custom/x", "/customs", "/healthz/ping", "/metrics"})
		return by, a
	}
	a.ResourceRequest = true
	a.APIGroup = one(c.random, requestGroups)
	a.Resource = one(c.random, []string{"pods", "pods", "deployments", "nodes", "*"})
	a.Subresource, a.Name = one(c.random, []string{"", "", "log", "scale", "*"}), one(c.random, requestNames)
	if c.IntN(4) > 0 {
		a.Namespace = one(c.random, c.namespaces)
	}
	return by, a
}

// Decisions are those of a real API server while roles and bindings change.
func TestRBACDecidesAsARealAPIServerDoes(t *testing.T) {
	c := startCluster(t)
	const inRound, changes, workers = 100, 20, 4
	total, allowedTotal := 0, 0
	for round := 0; total < reviews(); round++ {
		for range changes {
			c.write(t, c.validObject(), c.IntN(6) == 0)
		}
		c.await(t, round)
		c.compareRulesReview(t)
		type question struct {
			by user.Info
			a  access.Attributes
		}
		questions := make(chan question, inRound)
		for range inRound {
			by, a := c.validQuestion()
			questions <- question{by, a}
		}
		close(questions)
		var mu sync.Mutex
		var group sync.WaitGroup
		for range workers {
			group.Go(func() {
				for q := range questions {
					allowed, reason := c.ours.Decide(q.by, q.a)
					wantAllowed, wantReason, err := c.review(t.Context(), q.by, q.a)
					if err != nil {
						t.Error(err)
						return
					}
					if allowed != wantAllowed || !allowed && !sameErrors(reason, wantReason) ||
						allowed && !strings.HasPrefix(wantReason, "RBAC: allowed by ") {
						t.Errorf("user %+v, request %+v:\ngot  %v: %s\nwant %v: %s", q.by, q.a, allowed, reason, wantAllowed,
							wantReason)
					}
					mu.Lock()
					total++
					if allowed {
						allowedTotal++
					}
					mu.Unlock()
				}
			})
		}
		group.Wait()
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d reviews, %d of them allowed", total, allowedTotal)
	if allowedTotal < total/10 || allowedTotal > total*9/10 {
		t.Errorf("%d of %d requests were allowed; the requests do not test enough", allowedTotal, total)
	}
}

// sameErrors reports whether two refusals name the same missing roles. The API server has no order of bindings.
func sameErrors(a, b string) bool {
	parts := func(reason string) []string {
		reason = strings.Trim(strings.TrimPrefix(reason, "RBAC: "), "[]")
		return slices.Sorted(slices.Values(strings.Split(reason, ", ")))
	}
	return slices.Equal(parts(a), parts(b))
}

// compareRulesReview compares the rules of a user with its SelfSubjectRulesReview. The API server has no order of
// bindings, so that the rules are compared without it.
func (c *realCluster) compareRulesReview(t *testing.T) {
	t.Helper()
	by, _ := c.validQuestion()
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: by.GetName(), Groups: by.GetGroups()}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	namespace := one(c.random, c.namespaces)
	review, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	resourceRules, otherRules, err := c.ours.Rules(by, namespace)
	failure := ""
	if err != nil {
		failure = err.Error()
	}
	if !sameRules(resourceRules, review.Status.ResourceRules) || !sameRules(otherRules, review.Status.NonResourceRules) ||
		!sameErrors(failure, review.Status.EvaluationError) || review.Status.Incomplete {
		t.Errorf("rules of %+v in %s:\ngot  %+v\n     %+v\n     %s\nwant %+v", by, namespace, resourceRules, otherRules,
			failure, review.Status)
	}
}

func sameRules[T any](a, b []T) bool {
	texts := func(rules []T) (texts []string) {
		for _, rule := range rules {
			texts = append(texts, fmt.Sprintf("%+v", rule))
		}
		slices.Sort(texts)
		return texts
	}
	return slices.Equal(texts(a), texts(b))
}

// An aggregated role has the rules of the roles that it selects, because the cluster's controller writes them.
func TestAnAggregatedRoleHasTheRulesOfOthers(t *testing.T) {
	c := startCluster(t)
	view := metav1.ObjectMeta{Name: "crontabs-view", Labels: map[string]string{
		"rbac.authorization.k8s.io/aggregate-to-view": "true"}}
	c.write(t, &rbacv1.RoleBinding{ObjectMeta: c.meta(c.namespaces[0], "viewers"),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "vic"}}}, false)
	vic := &user.DefaultInfo{Name: "vic"}
	crontabs := access.Attributes{ResourceRequest: true, Verb: "list", APIGroup: "stable.example.com",
		Resource: "crontabs", Namespace: c.namespaces[0]}
	pods := access.Attributes{ResourceRequest: true, Verb: "list", Resource: "pods", Namespace: c.namespaces[0]}
	c.until(t, true, vic, pods)
	c.until(t, false, vic, crontabs)
	role := &rbacv1.ClusterRole{ObjectMeta: view, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get", "list"},
		APIGroups: []string{"stable.example.com"}, Resources: []string{"crontabs"}}}}
	c.write(t, role, false)
	c.until(t, true, vic, crontabs)
	c.write(t, role, true)
	c.until(t, false, vic, crontabs)
}
