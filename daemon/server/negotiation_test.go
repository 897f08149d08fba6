package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	betaDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
	newDiscovery  = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
)

// discoveryHeaders are the Accept headers of old and new clients, and invalid ones.
var discoveryHeaders = map[string]string{
	"client-go before 0.26":    "application/json, */*",
	"client-go 0.30 and later": newDiscovery + "," + betaDiscovery + ",application/json",
	"typed client":             "application/vnd.kubernetes.protobuf;q=0.5,application/json",
	"without peers":            newDiscovery + ";profile=nopeer," + newDiscovery + ",application/json",
	"spaces": "application/json; g=apidiscovery.k8s.io; v=v2; as=APIGroupDiscoveryList , " +
		"application/json",
	"plain first":               "application/json," + newDiscovery,
	"plain preferred by weight": newDiscovery + ";q=0.1,application/json",
	"another group":             "application/json;g=example.com;v=v2;as=APIGroupDiscoveryList,application/json",
	"another kind":              "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscovery,application/json",
	"the name in another type":  "text/html;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
	"a table":                   "application/json;as=Table;v=v1;g=meta.k8s.io",
	"HTML":                      "text/html",
	"anything":                  "*/*",
	"nothing":                   "",
}

func TestDiscoveryIsNegotiatedAsTheRealServerDoes(t *testing.T) {
	p := mirror(t)
	p.caughtUp(t)
	for name, accept := range discoveryHeaders {
		for _, path := range []string{"/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1", "/apis/server.test",
			"/apis/server.test/v1beta1"} {
			wantHead, want := p.ask(t, http.MethodGet, p.real+path, accept)
			for _, server := range []string{p.ours, p.all} {
				gotHead, got := p.ask(t, http.MethodGet, server+path, accept)
				if gotHead != wantHead || kindIn(t, got) != kindIn(t, want) {
					t.Errorf("%s: %s%s\nreal: %s %s\nours: %s %s", name, server, path, wantHead, kindIn(t, want),
						gotHead, kindIn(t, got))
				}
			}
		}
	}
}

func kindIn(t *testing.T, body string) metav1.TypeMeta {
	t.Helper()
	var kind metav1.TypeMeta
	if err := json.Unmarshal([]byte(body), &kind); err != nil {
		t.Errorf("%v: %.100s", err, body)
	}
	return kind
}

// These are the requests of kubectl 1.26 to 1.29. Only old API servers have what they ask for, so this is compared with
// v2.
func TestClientWithOnlyBetaAggregatedDiscoveryGetsIt(t *testing.T) {
	p := mirror(t)
	p.caughtUp(t)
	for _, server := range []string{p.ours, p.all} {
		for _, path := range []string{"/api", "/apis"} {
			_, want := p.ask(t, http.MethodGet, server+path, newDiscovery)
			want = strings.Replace(want, "apidiscovery.k8s.io/v2", "apidiscovery.k8s.io/v2beta1", 1)
			for _, accept := range []string{betaDiscovery, betaDiscovery + ",application/json"} {
				head, got := p.ask(t, http.MethodGet, server+path, accept)
				if !strings.Contains(head, betaDiscovery) || got != want ||
					kindIn(t, got).APIVersion != "apidiscovery.k8s.io/v2beta1" {
					t.Errorf("%s%s: %s %.200s", server, path, head, got)
				}
			}
		}
	}
}

// An error that cannot have the requested form is indented, as by the real server; every other error
// is not.
func TestErrorsAreNegotiatedAsTheRealServerDoes(t *testing.T) {
	p := mirror(t)
	p.caughtUp(t)
	for _, accept := range []string{tables + ",application/json", tables,
		metas + ",application/vnd.kubernetes.protobuf;q=0.1,application/json;q=0.5",
		"application/json;as=Chair;v=v1;g=meta.k8s.io", "application/json;v=v1"} {
		wantHead, want := p.ask(t, http.MethodGet, p.real+"/api/v1/namespaces/web/pods/there-is-none", accept)
		gotHead, got := p.ask(t, http.MethodGet, p.ours+"/api/v1/namespaces/web/pods/there-is-none", accept)
		if wantHead != gotHead || strings.Contains(wantHead, "404") && strings.TrimSpace(want) != strings.TrimSpace(got) {
			t.Errorf("%s\nreal: %s %s\nours: %s %s", accept, wantHead, want, gotHead, got)
		}
	}
}
