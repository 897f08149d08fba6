package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
)

func TestUnsupportedRequestsNameTheClustersOwnServer(t *testing.T) {
	cluster := filled(t)
	p := mirror(t)
	p.caughtUp(t)
	named := `the API server of cluster "eu" itself, ` + p.real
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var all []*running
	for base, names := range map[string]*strings.Replacer{
		p.ours: strings.NewReplacer("NS", "web", "NODE", "node-1", "BASE", p.ours),
		p.all:  strings.NewReplacer("NS", "eu.web", "NODE", "eu:node-1", "BASE", p.all),
	} {
		for _, args := range []string{"logs a -n NS --server BASE", "exec a -n NS --server BASE -- true",
			"cp doc.go NS/a:/x -c main --server BASE",
			"delete pod a -n NS --wait=false --server BASE", "cordon NODE --server BASE",
			"autoscale deployment a -n NS --max 4 --cpu=50% --server BASE"} {
			all = append(all, kubectl(t, ctx, cluster, "", names.Replace(args)))
		}
		for _, subresource := range []string{"eviction", "portforward", "attach", "binding"} {
			head, body := p.ask(t, http.MethodPost, base+names.Replace("/api/v1/namespaces/NS/pods/a/")+subresource, "")
			if !strings.HasPrefix(head, "405") || !strings.Contains(body, "has no "+subresource+" of pods") ||
				!strings.Contains(body, p.real) {
				t.Errorf("%s: %s %s", subresource, head, body)
			}
		}
	}
	for _, r := range all {
		code, out := r.ended(t)
		if !strings.Contains(out, named) || code == 0 && !strings.HasPrefix(r.args, "cordon") {
			t.Errorf("kubectl %s, exit code %d:\n%s\nwant %s", r.args, code, out, named)
		}
	}
}

func TestServerURLInErrorsHasNoCredentials(t *testing.T) {
	fl, err := fleet.New(fleet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := fl.Join("eu", &rest.Config{Host: "https://user:password@127.0.0.1:1/way?token=secret"},
		fleet.Origin{}); err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(fl, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ method, path, code, says string }{
		{"DELETE", "/clusters/eu/api/v1/namespaces/web/pods/a", "405", "does not answer DELETE"},
		{"GET", "/clusters/eu/api/v1/namespaces/web/pods/a/log", "405", "has no log of pods"},
		{"GET", "/fleet/api/v1/namespaces/eu.web/pods/a/log", "405", "has no log of pods"},
		{"GET", "/clusters/eu/apis/metrics.k8s.io/v1beta1/nodes", "404", "has no metrics"},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		r.Host = "localhost"
		w := httptest.NewRecorder()
		srv.ServeHTTP(w, r)
		body := w.Body.String()
		if !strings.HasPrefix(w.Result().Status, c.code) || !strings.Contains(body, c.says) ||
			!strings.Contains(body, "https://127.0.0.1:1/way") ||
			strings.Contains(body, "password") || strings.Contains(body, "secret") {
			t.Errorf("%s %s: %s %s", c.method, c.path, w.Result().Status, body)
		}
	}
	srv.Stop()
	if err := fl.Leave(t.Context(), "eu"); err != nil {
		t.Error(err)
	}
}
