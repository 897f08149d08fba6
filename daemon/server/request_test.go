package server

import (
	"net/http/httptest"
	"testing"
)

func TestPathsAreParsedLikeByTheAPIServer(t *testing.T) {
	for path, want := range map[string]target{
		"/clusters/eu/api/v1/pods": {cluster: "eu", version: "v1", resource: "pods"},
		"/clusters/eu/api/v1/namespaces/web/pods/nginx": {cluster: "eu", version: "v1", resource: "pods",
			namespace: "web", name: "nginx"},
		"/clusters/eu/api/v1/namespaces": {cluster: "eu", version: "v1", resource: "namespaces"},
		"/clusters/eu/api/v1/namespaces/web": {cluster: "eu", version: "v1",
			resource: "namespaces", name: "web"},
		"/clusters/eu/api/v1/namespaces/web/status": {cluster: "eu", version: "v1", resource: "namespaces",
			name: "web", subresource: "status"},
		"/fleet/apis/apps/v1/namespaces/eu.web/deployments/a/scale": {fleet: true, group: "apps", version: "v1",
			resource: "deployments", namespace: "eu.web", name: "a", subresource: "scale"},
		"/fleet/apis/apps/v1/deployments/": {fleet: true, group: "apps", version: "v1", resource: "deployments"},
		"/fleet/apis":                      {fleet: true},
		"/clusters/eu/apis/apps/v1":        {cluster: "eu"},
	} {
		got, ok := parseTarget(path)
		got.rest = ""
		if !ok || got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
	for _, path := range []string{"/", "/clusters", "/clusters/", "/api/v1/pods", "/metrics"} {
		if _, ok := parseTarget(path); ok {
			t.Errorf("%s is parsed as a path of the Kubernetes API", path)
		}
	}
}

func TestWatchParameterIsParsedLikeByTheAPIServer(t *testing.T) {
	for query, want := range map[string]bool{
		"": false, "watch=false": false, "watch=False": false, "watch=0": false, "watch=0&watch=1": false, "limit=1": false,
		"watch": true, "watch=": true, "watch=true": true, "watch=1": true, "watch=yes": true,
		"watch=true&watch=false": true,
	} {
		if isWatch(httptest.NewRequest("GET", "/clusters/eu/api/v1/pods?"+query, nil)) != want {
			t.Errorf("?%s is a watch: %v", query, !want)
		}
	}
}
