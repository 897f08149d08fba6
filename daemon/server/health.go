package server

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

const plainText = "text/plain; charset=utf-8"

// isProbe reports whether a request is a probe of the daemon's health, as kubelets and load balancers send it. They
// use an address that is not known in advance and have no token, so neither is checked. The answer is "ok" or a reason
// that names no cluster. With ?verbose the answer names clusters, and the request is checked like any other.
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
	reason string // why it fails; "" if it passes
}

// writeHealth answers in the format of an API server: "ok", or a line for each check if healthy is false or the
// request is verbose.
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

// daemonHealth reports the health of the daemon itself. It is alive while it answers. It is ready from the moment when
// /fleet no longer waits for the clusters of the start until it stops. A cluster that fails later appears only in the
// verbose answer: restarting the daemon or sending clients elsewhere would not repair it.
func (s *Server) daemonHealth(w http.ResponseWriter, r *http.Request, path string) {
	checks := []healthCheck{{name: "serving"}}
	healthy := true
	if path == "/readyz" {
		var start healthCheck
		start.name = "start"
		if !s.start.isOver(time.Now()) {
			start.reason = "the clusters are being read for the first time; ?verbose names them"
		}
		if s.draining.Load() {
			checks[0].reason = "the daemon is stopping"
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

// Drain makes /readyz fail, while all requests are still answered: load balancers then send no new ones.
func (s *Server) Drain() { s.draining.Store(true) }

// Probes returns a handler of /livez, /healthz and /readyz, and of nothing else. Its answers name no cluster, not even
// with ?verbose, so it may be served to other machines without TLS.
func (s *Server) Probes() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !isHealthPath(r.URL.Path):
			http.NotFound(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are allowed", http.StatusMethodNotAllowed)
		default:
			r = r.Clone(r.Context())
			r.URL.RawQuery = ""
			s.daemonHealth(w, r, r.URL.Path)
		}
	})
}

// clusterHealth reports the health of one cluster: it is alive while it can be reached, and ready once all of its
// resources have been read.
func clusterHealth(w http.ResponseWriter, r *http.Request, path string, c *fleet.Cluster) {
	check := clusterCheck(c, path)
	writeHealth(w, r, path, check.reason == "", []healthCheck{check})
}

func clusterCheck(c *fleet.Cluster, path string) healthCheck {
	h := c.Health()
	check := healthCheck{name: "cluster-" + c.Name()}
	switch {
	case h.State == fleet.Joining:
		check.reason = "its resources have not been discovered yet"
	case h.State == fleet.Unreachable, h.State == fleet.Left:
		check.reason = strings.TrimSuffix(fmt.Sprintf("%s: %s", h.State, h.Err), ": ")
	case path == "/readyz" && !h.Complete:
		check.reason = strings.TrimSuffix(fmt.Sprintf("%d of %d resources are read: %s", h.Synced, h.Resources, h.Err), ": ")
	}
	return check
}
