package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/mirador-k8s/mirador/daemon/server"
)

// askedAs sends a GET as a user with headers that impersonate another.
func (s memoryDaemon) askedAs(t *testing.T, name, path string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Header.Set("Test-User", name); name == "administrator" {
		r.Header.Set("Authorization", "Bearer administrator")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	resp, err := s.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestOnlyUsersThatMayImpersonateDo(t *testing.T) {
	var mu sync.Mutex
	var last *auditv1.Event
	d, _, _ := newDaemonWithRightsAnd(t, server.Options{Access: server.Access{Token: "administrator"},
		Audit: func(e *auditv1.Event) {
			mu.Lock()
			defer mu.Unlock()
			last = e
		}})
	const list, all = "/fleet/api/v1/pods", "/clusters/us/api/v1/pods"
	for _, c := range []struct {
		user, path string
		headers    []string
		code       int
		text       string
	}{
		{"administrator", list, []string{"Impersonate-User", "ann"}, 200, `"name":"b"`},
		{"administrator", all, []string{"Impersonate-User", "ann"}, 403, `User \"ann\" cannot list resource \"pods\"`},
		{"administrator", all, []string{"Impersonate-User", "bob"}, 200, `"name":"c"`},
		{"administrator", all, []string{"Impersonate-User", "carl", "Impersonate-Group", "system:masters"}, 200, ""},
		{"administrator", "/clusters", []string{"Impersonate-User", "ann"}, 403, `User \"ann\" cannot list`},
		{"administrator", "/clusters", []string{"Impersonate-User", "ann", "Impersonate-Group", "mirador:administrators"},
			403, "reserved"},
		{"administrator", list, []string{"Impersonate-User", "mirador:token"}, 403, "reserved"},
		{"administrator", list, []string{"Impersonate-Group", "x"}, 400, "name no user"},
		{"administrator", list, []string{"Impersonate-Extra-Scopes", "x"}, 400, "name no user"},
		{"administrator", list, []string{"impersonate-uid", "x"}, 400, "name no user"},
		{"administrator", list, []string{"Impersonate-User", "ann", "Impersonate-Unknown", "x"}, 400, "not known"},
		{"administrator", list, []string{"Impersonate-User", "ann", "impersonate-uid", "x"}, 200, ""},
		{"ann", list, []string{"Impersonate-User", "bob"}, 403,
			`users \"bob\" is forbidden: User \"ann\" cannot impersonate resource \"users\" in API group \"\" ` +
				`at the cluster scope`},
		{"ann", list, []string{"Impersonate-User", "system:serviceaccount:web:robot"}, 403,
			`cannot impersonate resource \"serviceaccounts\" in API group \"\" in the namespace \"web\"`},
	} {
		code, text := d.askedAs(t, c.user, c.path, c.headers...)
		if code != c.code || !strings.Contains(text, c.text) {
			t.Errorf("%+v: %d %s", c, code, text)
		}
	}
	if _, text := d.askedAs(t, "administrator", list, "Impersonate-User", "ann"); strings.Contains(text, `"name":"c"`) {
		t.Errorf("the list has what ann may not see: %s", text)
	}
	until(t, func() string {
		mu.Lock()
		defer mu.Unlock()
		if last == nil || last.User.Username != "mirador:token" || last.ImpersonatedUser == nil ||
			last.ImpersonatedUser.Username != "ann" {
			b, _ := json.Marshal(last)
			return "the audit event is " + string(b)
		}
		return ""
	})
}
