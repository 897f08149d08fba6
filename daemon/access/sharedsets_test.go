package access

import (
	"runtime"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/query"
)

func TestUsersWithEqualRightsShareASet(t *testing.T) {
	r := NewRBAC()
	put(t, r, benchObjects()...)
	ann, ben, eve := named("ann", "team-0"), named("ben", "team-0"), named("eve", "team-1")
	visible := func(u user.Info, verb string) *query.Visible { return r.Visible(u, verb, "", "pods", "", true) }
	list := visible(ann, "list")
	if len(list.Namespaces) == 0 || visible(ben, "list") != list || visible(ann, "watch") != list {
		t.Errorf("equal sets are not one: %+v", list)
	}
	if other := visible(eve, "list"); other == list || other.Equal(list) {
		t.Errorf("different sets are one: %+v", other)
	}
}

func TestSetsThatAreNotUsedAreForgotten(t *testing.T) {
	var s sharedSets
	for i := range 100 {
		s.share(&query.Visible{Names: []string{string(rune('a' + i))}})
	}
	kept := s.share(&query.Visible{All: true})
	for late := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		runtime.GC()
		s.mu.Lock()
		n := len(s.sets)
		s.mu.Unlock()
		if n == 1 {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("%d sets are remembered, and one is in use", n)
		}
	}
	if s.share(&query.Visible{All: true}) != kept {
		t.Error("a set that is in use was forgotten")
	}
}
