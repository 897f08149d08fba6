package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/mirador-k8s/mirador/daemon/ratelimit"
)

// BenchmarkGet measures a GET of one object without a network, so that the cost of metrics and of the audit log shows.
func BenchmarkGet(b *testing.B) {
	b.Run("WithoutAuditLog", func(b *testing.B) { benchmarkGet(b, nil) })
	b.Run("WithAuditLog", func(b *testing.B) {
		benchmarkGet(b, func(e *auditv1.Event) {
			if _, err := json.Marshal(e); err != nil {
				b.Fatal(err)
			}
		})
	})
}

func benchmarkGet(b *testing.B, audit func(*auditv1.Event)) {
	s := newTestServer(b)
	s.opts.Audit = audit
	s.guard.clients = ratelimit.NewTable(1<<40, 1<<40) // no limit
	r := httptest.NewRequest(http.MethodGet, "/clusters/eu/api/v1/namespaces/web/pods/a", nil)
	r.Host = "localhost"
	for b.Loop() {
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
	}
}
