package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

const plainText = "text/plain; charset=utf-8"

// isProbe reports whether a request asks for nothing but the daemon's health, as kubelets and load balancers do. They
// ask by an address that nobody can name in advance and without a token, so neither is checked; the answer is "ok" or
// a reason that names no cluster. With ?verbose the answer names clusters, and the request is checked like any other.
func isProbe(r *http.Request) bool {
	return isHealthPath(r.URL.Path) && (r.Method == http.MethodGet || r.Method == http.MethodHead) && !isVerbose(r)
}

func isHealthPath(path string) bool {
	return path == "/healthz" || path == "/livez" || path == "/readyz"
}

func isVerbose(r *http.Request) bool { return r.URL.Query().Has("verbose") }

// healthCheck is one line of an answer about health.
type healthCheck struct {
	name   string
	reason string // why it fails; "" if it does not
}

// writeHealth answers in the form of an API server: "ok", or a line for each check if one of those that count has
// failed or the request is verbose.
func writeHealth(w http.ResponseWriter, r *http.Request, path string, healthy bool, checks []healthCheck) {
	if healthy && !isVerbose(r) {
		writeBody(w, http.StatusOK, plainText, []byte("ok"))
		return
	}
	var b strings.Builder
	for _, c := range checks {
		if c.reason == "" {
			fmt.Fprintf(&b, "[+]%s ok\n", c.name)
		} else {
			fmt.Fprintf(&b, "[-]%s failed: %s\n", c.name, c.reason)
		}
	}
	code, verdict := http.StatusOK, "passed"
	if !healthy {
		code, verdict = http.StatusServiceUnavailable, "failed"
		w.Header().Set("Retry-After", "1")
	}
	fmt.Fprintf(&b, "%s check %s\n", strings.TrimPrefix(path, "/"), verdict)
	writeBody(w, code, plainText, []byte(b.String()))
}

// daemonHealth answers for the daemon itself. It is alive while it answers, and ready from the moment when /fleet does
// not wait for the clusters of the start any more until it is stopped. A cluster that fails later is a detail of the
// verbose answer: restarting the daemon or sending clients elsewhere would not mend it.
func (s *Server) daemonHealth(w http.ResponseWriter, r *http.Request, path string) {
	checks := []healthCheck{{name: "serving"}}
	healthy := true
	if path == "/readyz" {
		var start healthCheck
		start.name = "start"
		if !s.start.isOver() {
			start.reason = "the clusters are being read for the first time; ?verbose names them"
		}
		select {
		case <-s.stopping:
			checks[0].reason = "the daemon is stopping"
		default:
		}
		checks = append(checks, start)
		healthy = start.reason == "" && checks[0].reason == ""
	}
	if isVerbose(r) {
		for _, c := range s.fleet.Clusters() {
			checks = append(checks, clusterCheck(c, path))
		}
	}
	writeHealth(w, r, path, healthy, checks)
}

// clusterHealth answers for one cluster, as its own API server would: it is alive while it can be followed, and ready
// when everything in it has been read once as well.
func clusterHealth(w http.ResponseWriter, r *http.Request, path string, c *fleet.Cluster) {
	check := clusterCheck(c, path)
	writeHealth(w, r, path, check.reason == "", []healthCheck{check})
}

func clusterCheck(c *fleet.Cluster, path string) healthCheck {
	h := c.Health()
	check := healthCheck{name: "cluster-" + c.Name()}
	switch {
	case h.State == fleet.Joining:
		check.reason = "it has not said yet what it serves"
	case h.State == fleet.Unreachable, h.State == fleet.Left:
		check.reason = strings.TrimSuffix(fmt.Sprintf("%s: %s", h.State, h.Err), ": ")
	case path == "/readyz" && !h.Complete:
		check.reason = strings.TrimSuffix(fmt.Sprintf("%d of %d resources are read: %s", h.Synced, h.Resources, h.Err), ": ")
	}
	return check
}
