package query

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/store"
)

// A list that is resumed on another engine, from the same snapshots, has the pages that it would have had.
func TestAListIsResumedWhereItWas(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	views := []View[*blob]{{Cluster: "eu", Snapshot: podStore(t, 40, store.Packed).snapshot()},
		{Cluster: "us", Snapshot: podStore(t, 7, store.Packed).snapshot(), Visible: &Visible{Namespaces: []string{"ns-3"}}},
		{Cluster: "zz", Snapshot: podStore(t, 25, store.Packed).snapshot(), Visible: &Visible{Names: []string{"web-7"}}}}
	for _, order := range []string{"", "-metadata.name", "status.phase,metadata.namespace"} {
		for _, where := range []string{"", "spec.priority != 3"} {
			for range 10 {
				req := Request{Resource: "pods", Order: mustOrder(t, order), Selection: mustSelect(t, "", "", where)}
				e := newEngine(t, options{})
				want := names(mustList(t, e, req, views...))
				var got []string
				left := -1
				for page := 0; ; page++ {
					req.Limit = 1 + rnd.IntN(20)
					res := mustList(t, e, req, views...)
					got = append(got, names(res)...)
					if req.Continue, req.Resume = res.Continue, nil; res.Continue == "" {
						break
					}
					if res.Next.Served != len(got) || left >= 0 && res.Remaining != Unknown && res.Remaining != len(want)-len(got) {
						t.Fatalf("after %d items of %d: served %d, remaining %d", len(got), len(want), res.Next.Served,
							res.Remaining)
					}
					if left = res.Remaining; rnd.IntN(2) == 0 {
						e = newEngine(t, options{})
						req.Continue, req.Resume = "", &res.Next
					}
				}
				if !slices.Equal(got, want) {
					t.Fatalf("order %q where %q: %v, want %v", order, where, got, want)
				}
			}
		}
	}
}

func TestAListIsResumedOnlyByItsRequestAndInItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		view := View[*blob]{Cluster: "eu", Snapshot: podStore(t, 20, store.Packed).snapshot()}
		for _, order := range []string{"", "metadata.name"} {
			first := newEngine(t, options{})
			req := Request{User: "ann", Resource: "pods", Limit: 4, Order: mustOrder(t, order)}
			next := mustList(t, first, req, view).Next
			e := newEngine(t, options{})
			other := req
			other.User, other.Resume = "bob", &next
			wantError(t, e, ErrInvalid, other, view)
			count := req
			count.CountOnly, count.Resume = true, &next
			wantError(t, e, ErrInvalid, count, view)
			beyond := next
			beyond.Served = 21
			req.Resume = &beyond
			wantError(t, e, ErrExpired, req, view)

			time.Sleep(defaultMaxAge - time.Minute)
			young := req
			young.Resume = nil
			mustList(t, e, young, view)
			req.Resume = &next
			resumed := req
			resumed.Resume, resumed.Continue = nil, mustList(t, e, req, view).Continue
			if e.pages.len() != 2 {
				t.Fatal(fmt.Errorf("%d lists are held", e.pages.len()))
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if e.pages.len() != 1 {
				t.Errorf("%d lists are held when the resumed one has expired", e.pages.len())
			}
			wantError(t, e, ErrExpired, req, view)
			wantError(t, e, ErrExpired, resumed, view)
			time.Sleep(defaultMaxAge)
		}
	})
}
