package query

import (
	"errors"
	"testing"

	"github.com/mirador-k8s/mirador/store"
)

func TestPaceIsCalledWithTheHeldBytes(t *testing.T) {
	e := newEngine(t, options{})
	view := View[*blob]{Cluster: "eu", Snapshot: podStore(t, 2000, store.Packed).snapshot()}
	full := errors.New("no memory is left")
	for name, c := range map[string]struct {
		req   Request
		holds int64 // at least, at the end
	}{
		"a list": {Request{Resource: "pods"}, 2000 * 24},
		"a scan": {Request{Resource: "pods", Selection: mustSelect(t, "", "", "metadata.name == 'web-1'")}, 0},
		"a count": {Request{Resource: "pods", CountOnly: true,
			Selection: mustSelect(t, "", "", "metadata.name != 'web-1'")}, 0},
		"with order": {Request{Resource: "pods", Order: mustOrder(t, "metadata.name,-metadata.namespace")},
			2000 * (24 + 2*40)},
	} {
		calls, held := 0, int64(0)
		c.req.Pace = func(n int64) error {
			if n < held {
				t.Errorf("%s: Pace got %d bytes and then %d", name, held, n)
			}
			calls, held = calls+1, n
			return nil
		}
		mustList(t, e, c.req, view)
		if calls < 2000/paceEvery || held < c.holds-c.holds/10 {
			t.Errorf("%s: Pace was called %d times, the last time with %d bytes", name, calls, held)
		}
		left := calls * 9 / 10 // with an order, this is during the sort
		c.req.Pace = func(int64) error {
			if left--; left < 0 {
				return full
			}
			return nil
		}
		wantError(t, e, full, c.req, view)
		if left != -1 {
			t.Errorf("%s: Pace was called %d more times after an error", name, -left-1)
		}
	}
}
