package access

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

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
	c.get(key, rightsVersion{n: 1}, func() (*query.Visible, error) {
		now, _ = c.get(key, rightsVersion{n: 2}, of("new")) // another request, meanwhile
		return of("old")()
	})
	if again, _ := c.get(key, rightsVersion{n: 2}, of("new")); again != now {
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
