package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

// kubectl shows nothing of a failed discovery but its warnings.
func TestKubectlShowsWhatIsWrongWithTheServerURL(t *testing.T) {
	cluster := filled(t)
	p := mirror(t)
	p.caughtUp(t)
	root := strings.TrimSuffix(p.all, "/fleet")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var all []*running
	says := map[string]string{
		"get pods --server " + root:                        "all clusters are at " + root + "/fleet",
		"get pods --server " + root + "/cluster/eu":        "all clusters are at " + root + "/fleet",
		"get pods --server " + root + "/clusters/asia":     `clusters.mirador.dev "asia" not found; /clusters has the names`,
		"get pods -n asia.web --server " + root + "/fleet": `clusters.mirador.dev "asia" not found; /clusters has the names`,
	}
	for args := range says {
		all = append(all, kubectl(t, ctx, cluster, "", args))
	}
	for _, r := range all {
		if code, out := r.ended(t); code == 0 || !strings.Contains(out, says[r.args]) {
			t.Errorf("kubectl %s, exit code %d:\n%s\nwant %s", r.args, code, out, says[r.args])
		}
	}
}

func TestDiscoveryOfADeadClusterHasAWarning(t *testing.T) {
	s := newMemoryDaemon(t, map[string]http.Handler{"eu": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	})})
	s.Start()
	for _, path := range []string{"/clusters/eu/api", "/fleet/apis"} {
		resp := s.open(t, path, "application/json")
		resp.Body.Close()
		got := resp.Header.Get("Warning")
		if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(got, "eu") {
			t.Errorf("%s: %d, warning %q", path, resp.StatusCode, got)
		}
	}
}
