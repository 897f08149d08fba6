package server

import (
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// Versions of the fleet are not those of a cluster, even if there is only one cluster: a client that relists must not
// wait until the cluster has reached the version.
func TestFleetHasReachedEveryVersionThatItHasSent(t *testing.T) {
	var hs fleetWatchHubs
	hs.seq.Store(1000)
	for _, c := range []struct {
		version object.Version
		exact   bool
		want    int
	}{
		{"1000", false, 0}, {"7", false, 0},
		{"1001", false, http.StatusGatewayTimeout},
		{"1000", true, http.StatusGone}, {"7", true, http.StatusGone},
		{"x", false, http.StatusBadRequest}, {"-1", true, http.StatusBadRequest},
	} {
		err, got := hs.checkFresh(c.version, c.exact), 0
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			got = int(status.Status().Code)
		}
		if got != c.want || (err == nil) != (c.want == 0) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	h := newFleetWatchHub(&hs.seq)
	if _, _, err := h.join(watchScope{}, "1002"); !errors.Is(err, store.ErrGone) {
		t.Errorf("a watch from a version that was never sent: %v", err)
	}
	if _, _, err := h.join(watchScope{}, "1001"); err != nil {
		t.Errorf("a watch from now: %v", err)
	}
}
