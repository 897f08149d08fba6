package reflector_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/source"
)

func TestP1_ListWithExpiredPageIsReadInOnePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expires := reply{version: "10", items: []string{"a@1"}, end: fail(source.Expired)}
		s := &script{
			lists: []reply{expires, {version: "20", items: []string{"a@1"}, end: io.EOF}, expires,
				{version: "40", end: io.EOF}},
			watches: []reply{{after: 2 * time.Minute, end: fail(source.Expired)}, {}},
		}
		r, _, _ := start(t, s, nil)
		runFor(t, r, 5*time.Minute)
		// The next list is paged again.
		same(t, "asked", s.asked, []string{"list newest", "list newest in one page", `watch "20"`,
			"list since 20", "list newest in one page", `watch "40"`})
		if d := s.times[1].Sub(s.times[0]); d != 0 {
			t.Errorf("the list in one page was requested %s after the page had expired, want 0s", d)
		}
	})
}

func TestP11_FailedOnePageListIsRetriedInPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{lists: []reply{{version: "10", items: []string{"a@1"}, end: fail(source.Expired)},
			{err: fail(source.Unavailable)}, {version: "20", end: io.EOF}},
			watches: []reply{{}}}
		r, _, _ := start(t, s, nil)
		runFor(t, r, time.Minute)
		same(t, "asked", s.asked, []string{"list newest", "list newest in one page", "list newest", `watch "20"`})
		if d := s.times[2].Sub(s.times[1]); d == 0 {
			t.Error("there was no wait after the failure")
		}
	})
}
