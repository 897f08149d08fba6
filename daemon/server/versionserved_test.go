package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mirador-k8s/mirador/informertest"
)

func TestErrorForAnUnservedVersionNamesTheServedOne(t *testing.T) {
	cluster := informertest.NewServer()
	create(t, cluster, pod("web", "a", nil))
	s := newMemoryDaemon(t, map[string]http.Handler{"eu": cluster})
	s.Start()
	s.ready(t, 1)
	for _, view := range []string{"/clusters/eu", "/fleet"} {
		for _, path := range []string{"/api/v2/pods", "/api/v2/pods?watch=true", "/api/v2/namespaces/eu.web/pods/a"} {
			code, body := s.get(t, view+path, "application/json")
			if code != http.StatusNotFound ||
				!strings.Contains(body, `pods of cluster \"eu\" are mirrored in version v1, and not in v2: ask for v1`) {
				t.Errorf("%s%s: %d %s", view, path, code, body)
			}
		}
		if code, body := s.get(t, view+"/api/v1/secrets", "application/json"); code != http.StatusNotFound ||
			!strings.Contains(body, "secrets are not mirrored") {
			t.Errorf("%s: secrets: %d %s", view, code, body)
		}
		if code, body := s.get(t, view+"/api/v1/chairs", "application/json"); code != http.StatusNotFound ||
			!strings.Contains(body, "could not find the requested resource") {
			t.Errorf("%s: an unknown resource: %d %s", view, code, body)
		}
		if _, body := s.get(t, view+"/api", "application/json"); !strings.Contains(body,
			`"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"`+strings.TrimPrefix(s.URL,
				"http://")+`"}]`) {
			t.Errorf("%s does not name the other version: %s", view, body)
		}
	}
}
