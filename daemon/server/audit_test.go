package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/mirador-k8s/mirador/daemon/audit"
	"github.com/mirador-k8s/mirador/daemon/server"
)

const secretToken = "a-token-that-must-not-be-logged"

// auditedDaemon is a daemon with rights that writes an audit log. events stops the log and returns its events.
func auditedDaemon(t *testing.T) (d memoryDaemon, events func() []auditv1.Event) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.log")
	log, err := audit.Open(audit.Options{Path: path, MaxSize: 100})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- log.Run(ctx) }()
	t.Cleanup(cancel)
	d, _, _ = newDaemonWithRightsAnd(t, server.Options{Access: server.Access{Token: secretToken}, Audit: log.Record})
	return d, func() (out []auditv1.Event) {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), secretToken) {
			t.Error("the audit log has the token")
		}
		for line := range strings.Lines(string(text)) {
			var e auditv1.Event
			dec := json.NewDecoder(strings.NewReader(line))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&e); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			out = append(out, e)
		}
		return out
	}
}

// send sends a request with a user agent by which its events are found.
func (s memoryDaemon) send(t *testing.T, agent, method, user, path string, header map[string]string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Test-User", user)
	r.Header.Set("User-Agent", agent)
	for k, v := range header {
		r.Header.Set(k, v)
	}
	resp, err := s.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// eventsOf returns the events of requests with a user agent.
func eventsOf(all []auditv1.Event, agent string) []auditv1.Event {
	return slices.DeleteFunc(slices.Clone(all), func(e auditv1.Event) bool { return e.UserAgent != agent })
}

func TestEveryRequestHasAnAuditEvent(t *testing.T) {
	d, events := auditedDaemon(t)
	pods := func(namespace, name string) *auditv1.ObjectReference {
		return &auditv1.ObjectReference{Resource: "pods", APIVersion: "v1", Namespace: namespace, Name: name}
	}
	bearer := map[string]string{"Authorization": "Bearer " + secretToken}
	const unreachable = `User "ann" cannot get resource "pods" in API group "" in the namespace "shop"`
	cases := []struct {
		name, method, user, path string
		header                   map[string]string
		verb                     string
		object                   *auditv1.ObjectReference
		code                     int32
		reason                   metav1.StatusReason
		message                  string // contained in the message
		decision, because        string // the reason contains because
		cluster, filtered, uri   string
	}{
		{name: "get", user: "ann", path: "/clusters/eu/api/v1/namespaces/web/pods/a", verb: "get", object: pods("web", "a"),
			code: 200, decision: "allow", because: `RoleBinding "ann/web"`, cluster: "eu"},
		{name: "missing", user: "ann", path: "/clusters/eu/api/v1/namespaces/web/pods/none", verb: "get",
			object: pods("web", "none"), code: 404, reason: "NotFound", decision: "allow", because: "RoleBinding",
			cluster: "eu"},
		{name: "refused", user: "ann", path: "/clusters/eu/api/v1/namespaces/shop/pods/c", verb: "get",
			object: pods("shop", "c"), code: 403, reason: "Forbidden", message: unreachable, decision: "forbid",
			cluster: "eu"},
		{name: "fleet-get", user: "ann", path: "/fleet/api/v1/namespaces/eu.web/pods/a", verb: "get",
			object: pods("web", "a"), code: 200, decision: "allow", because: "RoleBinding", cluster: "eu"},
		{name: "list", user: "ann", path: "/clusters/eu/api/v1/namespaces/web/pods?limit=1", verb: "list",
			object: pods("web", ""), code: 200, decision: "allow", because: "RoleBinding", cluster: "eu"},
		{name: "fleet-list", user: "ann", path: "/fleet/api/v1/pods", verb: "list", object: pods("", ""), code: 200,
			decision: "allow", because: "a part", filtered: "true"},
		{name: "whole-fleet-list", path: "/fleet/api/v1/pods", header: bearer, verb: "list", object: pods("", ""),
			code: 200, decision: "allow", because: "everything"},
		{name: "empty-fleet-list", user: "carl", path: "/fleet/api/v1/pods", verb: "list", object: pods("", ""), code: 403,
			reason: "Forbidden", decision: "forbid", because: "in none of the clusters"},
		{name: "filtered-list", user: "ann", path: "/clusters/eu/api/v1/pods?filtered=true", verb: "list",
			object: pods("", ""), code: 200, decision: "allow", because: "a part", cluster: "eu", filtered: "true"},
		{name: "write", method: http.MethodDelete, user: "ann", path: "/clusters/eu/api/v1/namespaces/web/pods/a",
			verb: "delete", object: pods("web", "a"), code: 405, reason: "MethodNotAllowed", cluster: "eu"},
		{name: "leave", method: http.MethodDelete, user: "ann", path: "/clusters/us", verb: "delete",
			object: &auditv1.ObjectReference{Resource: "clusters", APIGroup: "mirador.dev", Name: "us"}, code: 403,
			reason: "Forbidden", decision: "forbid", cluster: "us"},
		{name: "version", user: "ann", path: "/clusters/eu/version", verb: "get", code: 403, reason: "Forbidden",
			decision: "forbid", cluster: "eu"},
		{name: "unauthenticated", path: "/clusters/eu/api/v1/namespaces/web/pods/a?access_token=" + secretToken,
			header: map[string]string{"Authorization": "Bearer wrong-" + secretToken}, verb: "get", object: pods("web", "a"),
			code: 401, reason: "Unauthorized", cluster: "eu",
			uri: "/clusters/eu/api/v1/namespaces/web/pods/a?access_token=redacted"},
		{name: "token-in-query", user: "ann", path: "/fleet/api/v1/pods?limit=1&%74oken=" + secretToken, verb: "list",
			object: pods("", ""), code: 200, decision: "allow", because: "a part", filtered: "true",
			uri: "/fleet/api/v1/pods?limit=1&%74oken=redacted"},
	}
	for _, c := range cases {
		if c.method == "" {
			c.method = http.MethodGet
		}
		resp := d.send(t, c.name, c.method, c.user, c.path, c.header)
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != int(c.code) || resp.Header.Get("Audit-Id") == "" {
			t.Errorf("%s: status %d, ID %q", c.name, resp.StatusCode, resp.Header.Get("Audit-Id"))
		}
	}
	d.send(t, "probe", http.MethodGet, "", "/readyz", nil).Body.Close()
	d.Close() // waits for the ends of all requests
	all := events()
	if got := eventsOf(all, "probe"); len(got) != 0 {
		t.Errorf("a probe has events: %+v", got)
	}
	for _, c := range cases {
		got := eventsOf(all, c.name)
		if len(got) != 1 {
			t.Errorf("%s: %d events", c.name, len(got))
			continue
		}
		e := got[0]
		if c.uri == "" {
			c.uri = c.path
		}
		if e.Kind != "Event" || e.APIVersion != "audit.k8s.io/v1" || e.Level != auditv1.LevelMetadata ||
			e.Stage != auditv1.StageResponseComplete || e.AuditID == "" || !slices.Equal(e.SourceIPs, []string{"127.0.0.1"}) ||
			e.RequestReceivedTimestamp.IsZero() || e.StageTimestamp.Before(&e.RequestReceivedTimestamp) {
			t.Errorf("%s: %+v", c.name, e)
		}
		if e.Verb != c.verb || e.RequestURI != c.uri {
			t.Errorf("%s: %s %s", c.name, e.Verb, e.RequestURI)
		}
		if (e.ObjectRef == nil) != (c.object == nil) || c.object != nil && *e.ObjectRef != *c.object {
			t.Errorf("%s: the object is %+v", c.name, e.ObjectRef)
		}
		if st := e.ResponseStatus; st.Code != c.code || st.Reason != c.reason || !strings.Contains(st.Message, c.message) {
			t.Errorf("%s: status %+v", c.name, st)
		}
		if a := e.Annotations; a["authorization.k8s.io/decision"] != c.decision || a["mirador.dev/cluster"] != c.cluster ||
			!strings.Contains(a["authorization.k8s.io/reason"], c.because) || a["mirador.dev/filtered"] != c.filtered {
			t.Errorf("%s: annotations %v", c.name, a)
		}
		switch {
		case c.code == http.StatusUnauthorized:
			if e.User.Username != "" {
				t.Errorf("%s: the user is %+v", c.name, e.User)
			}
		case c.user != "":
			want := authenticationv1.UserInfo{Username: c.user, UID: "uid-of-" + c.user,
				Groups: []string{"system:authenticated"}}
			if e.User.Username != want.Username || e.User.UID != want.UID || !slices.Equal(e.User.Groups, want.Groups) ||
				e.User.Extra["test"][0] != "extra" {
				t.Errorf("%s: the user is %+v", c.name, e.User)
			}
		}
	}
}

func TestAWatchHasTwoAuditEvents(t *testing.T) {
	d, events := auditedDaemon(t)
	for _, path := range []string{"/clusters/eu/api/v1/namespaces/web/pods", "/fleet/api/v1/pods"} {
		resp := d.send(t, path, http.MethodGet, "ann", path+"?watch=true", nil)
		if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	io.Copy(io.Discard, d.send(t, "refused", http.MethodGet, "ann", "/clusters/eu/api/v1/pods?watch=1", nil).Body)
	d.Close()
	all := events()
	for path, filtered := range map[string]string{"/clusters/eu/api/v1/namespaces/web/pods": "",
		"/fleet/api/v1/pods": "true"} {
		got := eventsOf(all, path)
		if len(got) != 2 || got[0].Stage != auditv1.StageResponseStarted || got[1].Stage != auditv1.StageResponseComplete {
			t.Fatalf("%s: events %+v", path, got)
		}
		for _, e := range got {
			if e.Verb != "watch" || e.AuditID != got[0].AuditID || e.ResponseStatus.Code != 200 ||
				e.Annotations["authorization.k8s.io/decision"] != "allow" ||
				e.Annotations["mirador.dev/filtered"] != filtered {
				t.Errorf("%s: %+v", path, e)
			}
		}
	}
	if got := eventsOf(all, "refused"); len(got) != 1 || got[0].ResponseStatus.Code != 403 ||
		got[0].Stage != auditv1.StageResponseComplete || got[0].Verb != "watch" {
		t.Errorf("a refused watch has %+v", got)
	}
}

func TestAFloodWithoutCredentialsHasFewAuditEvents(t *testing.T) {
	var events []*auditv1.Event
	d, _, _ := newDaemonWithRightsAnd(t, server.Options{Access: server.Access{Token: secretToken},
		Audit: func(e *auditv1.Event) {
			if len(e.SourceIPs) == 1 && strings.HasPrefix(e.SourceIPs[0], "10.") { // those of the test's goroutine
				events = append(events, e)
			}
		}})
	send := func(address, user string) {
		r := httptest.NewRequest(http.MethodGet, "/fleet/api/v1/pods", nil)
		r.Host, r.RemoteAddr = "localhost", address
		r.Header.Set("Test-User", user)
		d.ServeHTTP(httptest.NewRecorder(), r)
	}
	for range 1000 {
		send("10.0.0.1:1", "")
	}
	flood := len(events)
	if flood < 5 || flood > 100 {
		t.Errorf("1000 requests have %d events", flood)
	}
	for range 20 {
		send("10.0.0.1:1", "ann")
	}
	if got := len(events) - flood; got != 20 {
		t.Errorf("20 requests of a user in the flood have %d events", got)
	}
	until(t, func() string {
		send("10.0.0.2:1", "")
		if last := events[len(events)-1]; last.Annotations["mirador.dev/omitted"] == "" {
			return "no event says how many were left out"
		}
		return ""
	})
}
