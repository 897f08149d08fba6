package access

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/query"
)

// However many other questions a user asks, its open watch is checked.
func TestManyQuestionsOfAUserDoNotKeepItsWatchOpen(t *testing.T) {
	withStandIn(t, func(t *testing.T, c *standIn) {
		c.names = []string{"web"}
		c.set("ann watch web/pods", true)
		if ok, _ := c.watchOf("ann"); !ok {
			t.Fatal("refused")
		}
		for i := range maxAnswersOfUser + 10 {
			c.decide(t.Context(), named("ann"), listPods(fmt.Sprint(i)))
		}
		c.set("ann watch web/pods", false)
		version := c.version()
		pass(30 * time.Minute)
		synctest.Wait()
		if c.version() == version {
			t.Error("the open watch is never made to ask again")
		}
	})
}

func TestASlowComputationDoesNotReplaceANewerSet(t *testing.T) {
	var c visibleCache
	of := func(ns string) func() (*query.Visible, error) {
		return func() (*query.Visible, error) { return &query.Visible{Namespaces: []string{ns}}, nil }
	}
	key := visibleKey{cluster: "eu"}
	var now *query.Visible
	c.get("ann", key, rightsVersion{n: 1}, func() (*query.Visible, error) {
		now, _ = c.get("ann", key, rightsVersion{n: 2}, of("new")) // another request, meanwhile
		return of("old")()
	})
	if again, _ := c.get("ann", key, rightsVersion{n: 2}, of("new")); again != now {
		t.Error("the rights of version 2 have not changed, and the pointer has")
	}
}

func TestASetOfANamespacedResourceIsNotThatOfAnother(t *testing.T) {
	a := newAccess(t, ModeRules, accessFile)
	pods := schema.GroupResource{Resource: "pods"}
	a.Visible(t.Context(), info("ann"), "eu", "list", pods, true)
	if v, err := a.Visible(t.Context(), info("ann"), "eu", "list", pods, false); err != nil || !v.Empty() {
		t.Errorf("of a resource without namespaces, ann may see %+v (%v)", v, err)
	}
}

func TestTheCacheOfSetsIsBoundedInBytesForEachUserAndInTotal(t *testing.T) {
	var c visibleCache
	get := func(user, cluster, resource string) *query.Visible {
		key := visibleKey{cluster: cluster, of: schema.GroupResource{Resource: resource}}
		v, err := c.get(user, key, rightsVersion{}, func() (*query.Visible, error) { return &query.Visible{}, nil })
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	kept := get("bob", "eu", "pods")
	long := strings.Repeat("x", 16<<10)
	for i := range 2 * maxCached / len(long) {
		get("mallory", "eu", fmt.Sprint(i, long))
	}
	if mallory := c.users["mallory"].size; mallory > maxCachedOfUser || c.size > 2*maxCachedOfUser {
		t.Errorf("the sets of one user take %d bytes, and all take %d", mallory, c.size)
	}
	for i := range 3 * maxCached / len(long) {
		get(fmt.Sprint("user", i%200), "eu", fmt.Sprint(i, long))
	}
	total := 0
	for _, of := range c.users {
		total += of.size
	}
	if c.size > maxCached || c.size != total {
		t.Errorf("all sets take %d bytes, and %d are counted", total, c.size)
	}
	if get("bob", "eu", "pods") != kept {
		t.Error("a user with a small set loses it to users with large ones")
	}
	get("bob", "us", "pods")
	c.forget("eu")
	if len(c.users) != 1 || len(c.users["bob"].sets) != 1 {
		t.Errorf("sets of a cluster that has left are kept: %d users", len(c.users))
	}
}

func TestCredentialsOfOneUserShareTheirAnswers(t *testing.T) {
	token := func(id string) *user.DefaultInfo {
		return &user.DefaultInfo{Name: "system:serviceaccount:web:robot", UID: "1", Groups: []string{"b", "a"},
			Extra: map[string][]string{user.CredentialIDKey: {"JTI=" + id}, HomeCluster: {"eu"}}}
	}
	one, two, elsewhere := token("1"), token("2"), token("1")
	elsewhere.Extra[HomeCluster] = []string{"us"}
	if UserKey(one) != UserKey(two) || reviewKey(one) != reviewKey(two) {
		t.Error("two tokens of a user are two users")
	}
	if UserKey(one) == UserKey(elsewhere) {
		t.Error("service accounts of two clusters are one user")
	}
	scoped := token("1")
	scoped.Extra["scopes"] = []string{"read"}
	if reviewKey(one) == reviewKey(scoped) {
		t.Error("a cluster is not asked about extra values that may decide")
	}
}
