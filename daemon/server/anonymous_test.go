package server

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// documentedAccessFile returns the access file of docs/security.md that has a text.
func documentedAccessFile(t *testing.T, text string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(page), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if strings.Contains(block, "kind: AccessConfiguration") && strings.Contains(block, text) {
			return block
		}
	}
	t.Fatalf("docs/security.md has no access file with %q", text)
	return ""
}

func TestTheAccessFileOpensMetricsAndNothingElseWithoutCredentials(t *testing.T) {
	fl, err := fleet.New(fleet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	handler := func(file string) http.Handler {
		var config *access.Config
		if file != "" {
			if config, err = access.ParseConfig([]byte(file)); err != nil {
				t.Fatal(err)
			}
		}
		rights, err := access.New(fl, access.Options{Config: config})
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(fl, Options{Access: Access{Token: "the-token-of-the-test"}, Authorizer: rights,
			Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	closed, open := handler(""), handler(documentedAccessFile(t, "system:unauthenticated"))
	for _, c := range []struct {
		h             http.Handler
		method, path  string
		authorization string
		want          int
	}{
		{closed, "GET", "/metrics", "", http.StatusUnauthorized},
		{open, "GET", "/metrics", "", http.StatusOK},
		{open, "GET", "/metrics", "Bearer the-token-of-the-test", http.StatusOK},
		{open, "GET", "/metrics", "Bearer another-token", http.StatusUnauthorized},
		{open, "HEAD", "/metrics", "", http.StatusUnauthorized}, // the file allows get
		{open, "POST", "/metrics", "", http.StatusUnauthorized},
		{open, "GET", "/clusters", "", http.StatusUnauthorized},
		{open, "GET", "/readyz?verbose", "", http.StatusUnauthorized},
		{open, "GET", "/fleet/metrics", "", http.StatusUnauthorized},
		{open, "GET", "/fleet/api/v1/pods", "", http.StatusUnauthorized},
		{open, "GET", "/clusters/eu/metrics", "", http.StatusUnauthorized},
		{open, "GET", "//metrics", "", http.StatusUnauthorized},
		{open, "GET", "/metrics/", "", http.StatusUnauthorized},
		{open, "GET", "/livez", "", http.StatusOK},
	} {
		r := httptest.NewRequest(c.method, "http://localhost"+c.path, nil)
		r.Host = "localhost"
		if c.authorization != "" {
			r.Header.Set("Authorization", c.authorization)
		}
		w := httptest.NewRecorder()
		c.h.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s %s with the file: %t, with %q: %d, want %d", c.method, c.path, c.h == open, c.authorization, w.Code,
				c.want)
		}
	}
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Host = "evil.example.com"
	w := httptest.NewRecorder()
	open.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("a request for another host name is answered %d", w.Code)
	}
}
