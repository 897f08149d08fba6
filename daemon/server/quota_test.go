package server

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mirador-k8s/mirador/daemon/query"
)

func TestQuotaLeavesSomethingForEachNewClient(t *testing.T) {
	q := newQuota("bytes", 1000)
	takeAll := func(client clientKey) (n int64) {
		for g := q.open(client); g.set(n+1) == nil; n++ {
		}
		return n
	}
	want := []int64{500, 250, 125, 62}
	for i, client := range []clientKey{"a", "b", "c", "d"} {
		if got := takeAll(client); got != want[i] {
			t.Errorf("client %d gets %d, want %d", i, got, want[i])
		}
	}
	if err := q.open("a").set(1); !apierrors.IsTooManyRequests(err) {
		t.Errorf("a client got more than its share: %v", err)
	}
	if err := q.open("e").set(501); !errors.Is(err, query.ErrTooMuch) {
		t.Errorf("more than any client may hold: %v", err)
	}
}

func TestQuotaIsUnusedAfterEverythingIsReturned(t *testing.T) {
	q := newQuota("bytes", 1000)
	g := q.open("a")
	if g.set(400) != nil || g.tryAdd(10) || g.set(100) != nil || !g.tryAdd(60) {
		t.Errorf("the grant holds %d", g.held)
	}
	g.giveBack(60)
	g.close()
	g.close()
	if q.used != 0 || len(q.shares) != 0 {
		t.Errorf("%d are used, by %v", q.used, q.shares)
	}
	if err := newQuota("watches", 1).open("a").set(1); err != nil {
		t.Errorf("a quota of one: %v", err)
	}
}
