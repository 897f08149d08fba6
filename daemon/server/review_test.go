package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informertest"
)

// reviewed returns a daemon with two clusters, eu and us, that have a pod each.
func reviewed(t *testing.T) memoryDaemon {
	t.Helper()
	eu, us := informertest.NewServer(), informertest.NewServer()
	create(t, eu, pod("web", "a", nil))
	create(t, us, pod("web", "b", nil))
	s := newMemoryDaemon(t, map[string]http.Handler{"eu": eu, "us": us})
	s.Start()
	s.ready(t, 2)
	return s
}

// The clients send protobuf, as k9s does, and JSON, as kubectl does.
func (s memoryDaemon) clients(t *testing.T, path string) map[string]kubernetes.Interface {
	t.Helper()
	out := map[string]kubernetes.Interface{}
	for _, content := range []string{"application/vnd.kubernetes.protobuf", "application/json"} {
		cfg := &rest.Config{Host: s.URL + path, ContentConfig: rest.ContentConfig{ContentType: content}}
		client, err := kubernetes.NewForConfigAndClient(cfg, s.Client)
		if err != nil {
			t.Fatal(err)
		}
		out[content] = client
	}
	return out
}

func TestSelfReviewsAreAnswered(t *testing.T) {
	s := reviewed(t)
	t.Run("a user may read what is mirrored and nothing else", s.readsWhatIsMirrored)
	t.Run("a user may read the paths that are served", s.readsServedPaths)
	t.Run("user and rules are returned", s.returnsUserAndRules)
	t.Run("invalid reviews are refused", s.refusesInvalidReviews)
	t.Run("discovery has the reviews", s.discoversReviews)
}

func (s memoryDaemon) readsWhatIsMirrored(t *testing.T) {
	for _, c := range []struct {
		path string
		want authorizationv1.ResourceAttributes
		no   string // a part of the reason for a refusal; "" means allowed
	}{
		{"/clusters/eu", authorizationv1.ResourceAttributes{Verb: "list", Version: "v1", Resource: "pods"}, ""},
		{"/clusters/eu", authorizationv1.ResourceAttributes{Verb: "watch", Version: "v1", Resource: "pods",
			Namespace: "web"}, ""},
		{"/clusters/eu", authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: "pods", Namespace: "web",
			Name: "a", Subresource: "status"}, ""},
		{"/clusters/eu", authorizationv1.ResourceAttributes{Verb: "get", Group: "*", Version: "*", Resource: "*",
			Namespace: "*"}, ""},
		{"/clusters/eu", authorizationv1.ResourceAttributes{Verb: "create", Group: "authorization.k8s.io",
			Resource: "selfsubjectaccessreviews"}, ""},
		{"/clusters/eu", authorizationv1.ResourceAttributes{Verb: "create", Version: "v1", Resource: "pods",
			Namespace: "web"}, `read-only mirror: send it to the API server of cluster "eu"`},
		{"/clusters/eu", authorizationv1.ResourceAttributes{Verb: "deletecollection", Version: "v1", Resource: "pods"},
			"read-only mirror"},
		{"/clusters/eu", authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"}, "read-only mirror"},
		{"/clusters/eu", authorizationv1.ResourceAttributes{Verb: "List", Version: "v1", Resource: "pods"},
			"read-only mirror"},
		{"/clusters/eu", authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: "pods", Namespace: "web",
			Name: "a", Subresource: "log"}, "a mirror has no log"},
		{"/clusters/eu", authorizationv1.ResourceAttributes{Verb: "list", Version: "v1", Resource: "secrets"},
			"secrets are not mirrored here"},
		{"/clusters/eu", authorizationv1.ResourceAttributes{Verb: "list", Group: "apps", Version: "v1", Resource: "pods"},
			"pods.apps are not mirrored here"},
		{"/fleet", authorizationv1.ResourceAttributes{Verb: "list", Version: "v1", Resource: "pods"}, ""},
		{"/fleet", authorizationv1.ResourceAttributes{Verb: "list", Version: "v1", Resource: "pods", Namespace: "us.web"},
			""},
		{"/fleet", authorizationv1.ResourceAttributes{Verb: "list", Version: "v1", Resource: "pods", Namespace: "asia.web"},
			""},
		{"/fleet", authorizationv1.ResourceAttributes{Verb: "list", Version: "v1", Resource: "pods", Namespace: "default"},
			""},
		{"/fleet", authorizationv1.ResourceAttributes{Verb: "list", Version: "v1", Resource: "pods",
			Namespace: "shop", Name: "shop"}, ""},
		{"/fleet", authorizationv1.ResourceAttributes{Verb: "list", Version: "v1", Resource: "chairs", Namespace: "shop"},
			"chairs are not mirrored here"},
		{"/fleet", authorizationv1.ResourceAttributes{Verb: "patch", Version: "v1", Resource: "pods", Namespace: "us.web"},
			"read-only mirror"},
	} {
		for content, client := range s.clients(t, c.path) {
			review := &authorizationv1.SelfSubjectAccessReview{}
			review.Spec.ResourceAttributes = &c.want
			got, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
			if err != nil {
				t.Errorf("%s, %+v as %s: %v", c.path, c.want, content, err)
				continue
			}
			status := got.Status
			if status.Allowed != (c.no == "") || status.Denied == status.Allowed || !strings.Contains(status.Reason, c.no) ||
				c.no == "" && status.Reason != "" {
				t.Errorf("%s, %+v as %s: %+v", c.path, c.want, content, status)
			}
			if got.Spec.ResourceAttributes == nil || got.Spec.ResourceAttributes.Verb != c.want.Verb {
				t.Errorf("the answer does not contain the question: %+v", got.Spec)
			}
		}
	}
}

func (s memoryDaemon) readsServedPaths(t *testing.T) {
	for path, want := range map[string]bool{"/api": true, "/apis/apps": true, "/version": true,
		"/openapi/v3/api/v1": true, "/healthz": true, "/logs/": false, "/metrics": false, "/debug/pprof": false, "*": false} {
		for _, verb := range []string{"get", "post"} {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: verb, Path: path}}}
			for content, client := range s.clients(t, "/clusters/eu") {
				got, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
				if err != nil || got.Status.Allowed != (want && verb == "get") || !got.Status.Allowed && got.Status.Reason == "" {
					t.Errorf("%s %s as %s: %+v, %v", verb, path, content, got, err)
				}
			}
		}
	}
}

func (s memoryDaemon) returnsUserAndRules(t *testing.T) {
	for _, path := range []string{"/clusters/eu", "/fleet"} {
		for content, client := range s.clients(t, path) {
			who, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
				&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			if err != nil || who.Status.UserInfo.Username != "mirador:local" ||
				!slices.Contains(who.Status.UserInfo.Groups, "system:authenticated") {
				t.Errorf("%s as %s: who: %+v, %v", path, content, who, err)
			}
			for _, namespace := range []string{"default", "eu.web", "asia.web"} {
				ask := &authorizationv1.SelfSubjectRulesReview{}
				ask.Spec.Namespace = namespace
				may, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), ask, metav1.CreateOptions{})
				if err != nil || may.Status.Incomplete {
					t.Fatalf("%s as %s: rules: %+v, %v", path, content, may, err)
				}
				var got []string
				for _, r := range may.Status.ResourceRules {
					got = append(got, fmt.Sprint(r.APIGroups, r.Resources, r.Verbs))
				}
				want := []string{"[] [pods] [get list watch]", "[authentication.k8s.io] [selfsubjectreviews] [create]",
					"[authorization.k8s.io] [selfsubjectaccessreviews selfsubjectrulesreviews] [create]"}
				if !slices.Equal(got, want) || len(may.Status.NonResourceRules) != 1 ||
					!slices.Contains(may.Status.NonResourceRules[0].NonResourceURLs, "/apis/*") {
					t.Errorf("%s as %s: rules in %s: %q and %+v", path, content, namespace, got, may.Status.NonResourceRules)
				}
			}
		}
	}
}

func (s memoryDaemon) refusesInvalidReviews(t *testing.T) {
	const (
		access = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
		rules  = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
		good   = `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1",` +
			`"spec":{"resourceAttributes":{"verb":"list","resource":"pods"}}}`
	)
	for name, c := range map[string]struct {
		method, path, contentType, accept, body string
		code                                    int
		says                                    string
	}{
		"JSON":         {"POST", access, "application/json", "", good, 201, `"allowed":true`},
		"no type said": {"POST", access, "", "*/*", good, 201, `"allowed":true`},
		"no kind said": {"POST", access, "application/json; charset=utf-8", "application/*",
			`{"spec":{"resourceAttributes":{"verb":"list","resource":"pods"}}}`, 201, `"allowed":true`},
		"nothing": {"POST", access, "application/json", "", "", 400, "SelfSubjectAccessReview"},
		"no JSON": {"POST", access, "application/json", "", "{", 400, "SelfSubjectAccessReview"},
		"protobuf that is none": {"POST", access, "application/vnd.kubernetes.protobuf", "", good, 400,
			"SelfSubjectAccessReview"},
		"cut protobuf": {"POST", access, "application/vnd.kubernetes.protobuf", "", "k8s\x00\n\xff", 400,
			"SelfSubjectAccessReview"},
		"a field of another type": {"POST", access, "application/json", "", `{"spec":{"resourceAttributes":[]}}`, 400,
			"SelfSubjectAccessReview"},
		"another kind": {"POST", rules, "application/json", "", good, 400,
			"must be a SelfSubjectRulesReview"},
		"an unknown kind": {"POST", access, "application/json", "",
			`{"kind":"Chair","apiVersion":"furniture/v1"}`, 400, "SelfSubjectAccessReview"},
		"another kind of object": {"POST", access, "application/json", "", `{"kind":"Pod","apiVersion":"v1"}`, 400,
			"must be a SelfSubjectAccessReview"},
		"no question": {"POST", access, "application/json", "", `{}`, 422, "resourceAttributes"},
		"two questions": {"POST", access, "application/json", "",
			`{"spec":{"resourceAttributes":{},"nonResourceAttributes":{}}}`, 422, "nonResourceAttributes"},
		"no namespace": {"POST", rules, "application/json", "", `{}`, 400, "spec.namespace"},
		"too large": {"POST", access, "application/json", "",
			`{"spec":"` + strings.Repeat("x", 100<<10) + `"}`, 413, "65536 bytes"},
		"YAML": {"POST", access, "application/yaml", "", good, 415, "application/json"},
		"a form": {"POST", access, "application/x-www-form-urlencoded", "", good, 415,
			"application/json"},
		"HTML wanted":    {"POST", access, "application/json", "text/html", good, 406, "application/json"},
		"a list of them": {"GET", access, "", "", "", 405, "is not supported on resources of kind"},
		"one of them":    {"GET", access + "/a", "", "", "", 404, "Failure"},
		"a put": {"PUT", access, "application/json", "", good, 405,
			"is not supported on resources of kind"},
		"a review about another user": {"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", "application/json", "",
			good, 405, "read-only mirror"},
	} {
		for _, view := range []string{"/clusters/eu", "/fleet"} {
			r, err := http.NewRequestWithContext(t.Context(), c.method, s.URL+view+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", c.contentType)
			r.Header.Set("Accept", c.accept)
			resp, err := s.Client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != c.code || !strings.Contains(string(body), c.says) || !json.Valid(body) {
				t.Errorf("%s: %s%s: %s %s, %v", name, view, c.path, resp.Status, body, err)
			}
		}
	}
	if code, _ := s.get(t, "/clusters/none"+access, ""); code != http.StatusNotFound {
		t.Errorf("an unknown cluster: status %d", code)
	}
}

func (s memoryDaemon) discoversReviews(t *testing.T) {
	for _, path := range []string{"/clusters/eu", "/fleet"} {
		for _, client := range s.clients(t, path) {
			lists, err := client.Discovery().ServerPreferredResources()
			if err != nil {
				t.Fatal(err)
			}
			var created []string
			for _, list := range lists {
				for _, r := range list.APIResources {
					if slices.Equal(r.Verbs, metav1.Verbs{"create"}) {
						created = append(created, list.GroupVersion+" "+r.Kind)
					}
				}
			}
			slices.Sort(created)
			if want := []string{"authentication.k8s.io/v1 SelfSubjectReview",
				"authorization.k8s.io/v1 LocalSubjectAccessReview", "authorization.k8s.io/v1 SelfSubjectAccessReview",
				"authorization.k8s.io/v1 SelfSubjectRulesReview"}; !slices.Equal(created, want) {
				t.Errorf("%s: %q", path, created)
			}
		}
	}
}
