package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// A daemon with --audit-log-path writes a line for each request, with the user, the verb, the decision and its reason.
func TestServeWritesAnAuditLog(t *testing.T) {
	dir := t.TempDir()
	users, path := filepath.Join(dir, "users.csv"), filepath.Join(dir, "audit.log")
	check(t, os.WriteFile(users, []byte("static-token-of-alice,alice,1001,dev\n"), 0o600))
	at, out, end := startServe(t, "--listen", "127.0.0.1:0", "--token-auth-file", users, "--audit-log-path", path)
	r, err := http.NewRequest(http.MethodGet, at+"/clusters", nil)
	check(t, err)
	r.Header.Set("Authorization", "Bearer static-token-of-alice")
	resp, err := plain(t).Do(r)
	check(t, err)
	resp.Body.Close()
	// The log is complete when the program has ended.
	if code := end(); code != 0 || resp.StatusCode != http.StatusForbidden {
		t.Fatalf("the request is %d, the exit code %d, and\n%s", resp.StatusCode, code, out.b.String())
	}
	log, err := os.ReadFile(path)
	check(t, err)
	for line := range strings.Lines(string(log)) {
		var e auditv1.Event
		check(t, json.Unmarshal([]byte(line), &e))
		reason, has := e.Annotations["authorization.k8s.io/reason"]
		if e.User.Username == "alice" && e.Verb == "list" && e.ObjectRef != nil && e.ObjectRef.Resource == "clusters" &&
			e.Annotations["authorization.k8s.io/decision"] == "forbid" && has && reason == "" {
			return
		}
	}
	t.Errorf("the audit log has no event of the request:\n%s", log)
}
