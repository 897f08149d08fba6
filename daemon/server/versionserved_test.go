package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mirador-k8s/mirador/informertest"
)

func TestTablesAndMetadataOfAutoscalersAreServedInBothVersions(t *testing.T) {
	cluster := filled(t)
	p := mirror(t)
	ns := cluster.Namespace(t)
	p.send(t, http.MethodPost, "/apis/autoscaling/v2/namespaces/"+ns+"/horizontalpodautoscalers", "application/json",
		`{"metadata":{"name":"shop"},"spec":{"maxReplicas":3,`+
			`"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"shop"}}}`)
	p.caughtUp(t)
	path := "/apis/autoscaling/v1/namespaces/" + ns + "/horizontalpodautoscalers"
	for _, c := range []struct{ under, accept string }{
		{"", tables}, {"/shop", tables}, {"?includeObject=None", tables}, {"", lists}, {"/shop", metas},
		{"/none", tables},
	} {
		wantHead, want := p.ask(t, http.MethodGet, p.real+path+c.under, c.accept)
		gotHead, got := p.ask(t, http.MethodGet, p.ours+path+c.under, c.accept)
		if wantHead != gotHead || normalised(want) != normalised(got) {
			t.Errorf("%s as %s\nreal: %s %s\nours: %s %s", c.under, c.accept, wantHead, want, gotHead, got)
		}
	}
	if head, body := p.ask(t, http.MethodGet, p.all+"/apis/autoscaling/v1/horizontalpodautoscalers",
		tables); !strings.HasPrefix(head, "200") || !strings.Contains(body, "Deployment/shop") {
		t.Errorf("/fleet: %s %s", head, body)
	}
	for _, c := range []struct{ query, accept string }{{"", "application/json"}, {"?includeObject=Object", tables}} {
		if head, body := p.ask(t, http.MethodGet, p.ours+path+c.query, c.accept); !strings.HasPrefix(head, "404") ||
			!strings.Contains(body, "mirrored in version v2") {
			t.Errorf("%s as %s: %s %s", c.query, c.accept, head, body)
		}
	}
}

func TestErrorForAnUnservedVersionNamesTheServedOne(t *testing.T) {
	t.Parallel()
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
