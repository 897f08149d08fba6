package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mirador-k8s/mirador/informertest"
)

// After 504 a client would retry, but the version is never reached.
func TestVersionThatIsNotANumberIsRefused(t *testing.T) {
	t.Parallel()
	cluster := informertest.NewServer()
	create(t, cluster, pod("web", "a", nil))
	s := newMemoryDaemon(t, map[string]http.Handler{"eu": cluster})
	s.Start()
	s.ready(t, 1)
	for _, path := range []string{"/api/v1/pods?resourceVersion=", "/api/v1/pods?watch=true&resourceVersion=",
		"/api/v1/namespaces/web/pods/a?resourceVersion="} {
		for _, version := range []string{"garbage", "-1", "1.5", "18446744073709551616"} {
			code, body := s.get(t, "/clusters/eu"+path+version, "application/json")
			if code != http.StatusBadRequest ||
				!strings.Contains(body, `the resource version \"`+version+`\" is not a number`) {
				t.Errorf("%s%s: %d %s", path, version, code, body)
			}
		}
	}
}
