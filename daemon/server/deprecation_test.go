package server

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestDeprecationWarningsDependOnTheClustersRelease(t *testing.T) {
	message, since := deprecation(schema.GroupVersionKind{Version: "v1", Kind: "Endpoints"})
	if want := "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"; message != want ||
		since != (release{1, 33}) {
		t.Errorf("%q since %s", message, since)
	}
	for _, kind := range []schema.GroupVersionKind{{Version: "v1", Kind: "Pod"},
		{Group: "example.com", Version: "v1", Kind: "Boat"}} {
		if message, _ := deprecation(kind); message != "" {
			t.Errorf("%s: %q", kind, message)
		}
	}
	for version, want := range map[string]struct{ known, older bool }{
		`{"major":"1","minor":"32"}`: {true, true}, `{"major":"1","minor":"32+"}`: {true, true},
		`{"major":"0","minor":"99"}`: {true, true},
		`{"major":"1","minor":"33"}`: {true, false}, `{"major":"1","minor":"36+gke"}`: {true, false},
		`{"major":"2","minor":"0"}`: {true, false},
		`{"major":"1","minor":""}`:  {}, `{}`: {}, ``: {}, `[]`: {}, `{"major":"x","minor":"33"}`: {},
	} {
		if r, ok := parseRelease([]byte(version)); ok != want.known || ok && r.before(since) != want.older {
			t.Errorf("%s: %s, %v", version, r, ok)
		}
	}
}
