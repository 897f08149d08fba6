package fleet_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// withReviews joins a cluster whose reviews a function answers.
func (w *world) withReviews(answer func(r *http.Request) *http.Response) *fleet.Cluster {
	_, cfg := w.server()
	cfg.BearerToken = "the-token-of-the-daemon"
	return w.join("eu", wrapped(cfg, func(r *http.Request) *http.Response {
		if r.Method == http.MethodPost {
			return answer(r)
		}
		return nil
	}))
}

func TestReviewsAreSentWithTheCredentialsOfTheDaemon(t *testing.T) {
	inWorld(t, fleet.Options{Include: []string{"pods"}, WithoutOpenAPI: true}, func(w *world) {
		var path, body, authorization string
		c := w.withReviews(func(r *http.Request) *http.Response {
			var sent struct {
				APIVersion, Kind string
				Spec             json.RawMessage
			}
			if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
				t.Error(err)
			}
			path, body, authorization = r.URL.Path, string(sent.Spec), r.Header.Get("Authorization")
			resp := replyJSON(`{"apiVersion":"` + sent.APIVersion + `","kind":"` + sent.Kind + `","status":{"allowed":true,` +
				`"reason":"as the-token-of-the-daemon","authenticated":true,"error":"secret","evaluationError":"e"}}`)
			resp.StatusCode = http.StatusCreated
			return resp
		})
		access, err := c.ReviewAccess(w.Context(), authorizationv1.SubjectAccessReviewSpec{User: "ann"})
		if err != nil || !access.Allowed || access.Reason != "as [hidden]" || path !=
			"/apis/authorization.k8s.io/v1/subjectaccessreviews" || body != `{"user":"ann"}` {
			t.Errorf("%+v %v: %s %s", access, err, path, body)
		}
		if authorization != "Bearer the-token-of-the-daemon" {
			t.Errorf("the credentials are %q", authorization)
		}
		token, err := c.ReviewToken(w.Context(), authenticationv1.TokenReviewSpec{Token: "x"})
		if err != nil || !token.Authenticated || strings.Contains(token.Error, "secret") ||
			path != "/apis/authentication.k8s.io/v1/tokenreviews" || body != `{"token":"x"}` {
			t.Errorf("%+v %v: %s %s", token, err, path, body)
		}
		rules, err := c.ReviewOwnRules(w.Context(), "default")
		if err != nil || rules.EvaluationError != "e" ||
			path != "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews" || body != `{"namespace":"default"}` {
			t.Errorf("%+v %v: %s %s", rules, err, path, body)
		}
	})
}

func TestAReviewThatFailsAllowsNothingAndShowsNothingOfTheAnswer(t *testing.T) {
	review := `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":true},"x":"`
	for name, c := range map[string]struct {
		answer func() *http.Response
		text   string
	}{
		"forbidden": {
			func() *http.Response {
				return reply(403, "application/json", strings.NewReader(`{"message":"secret"}`))
			},
			`the daemon's user may not create subjectaccessreviews.authorization.k8s.io (403)`},
		"failed": {func() *http.Response { return reply(500, "text/plain", strings.NewReader("secret")) },
			"the server failed (500)"},
		"other kind": {func() *http.Response { return replyJSON(`{"kind":"Secret","status":{"allowed":true}}`) },
			"not a Kubernetes API server"},
		"no kind": {func() *http.Response { return replyJSON(`{"status":{"allowed":true}}`) },
			"not a Kubernetes API server"},
		"not JSON": {func() *http.Response { return replyJSON(`secret`) }, "not a Kubernetes API server"},
		"endless": {func() *http.Response { return reply(201, "application/json", endless(review)) },
			"larger than 4194304 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fleet.Options{Include: []string{"pods"}, WithoutOpenAPI: true}, func(w *world) {
				cluster := w.withReviews(func(*http.Request) *http.Response { return c.answer() })
				status, err := cluster.ReviewAccess(w.Context(), authorizationv1.SubjectAccessReviewSpec{User: "ann"})
				says(t, err, `ask cluster "eu" for a SubjectAccessReview`, c.text)
				if status.Allowed || strings.Contains(err.Error(), "secret") {
					t.Errorf("%+v %v", status, err)
				}
			})
		})
	}
}

func TestAReviewEndsAfterFiveSeconds(t *testing.T) {
	inWorld(t, fleet.Options{Include: []string{"pods"}, WithoutOpenAPI: true}, func(w *world) {
		var asked atomic.Int32
		c := w.withReviews(func(r *http.Request) *http.Response {
			asked.Add(1)
			<-r.Context().Done()
			return reply(504, "text/plain", strings.NewReader(""))
		})
		began := time.Now()
		_, err := c.ReviewAccess(w.Context(), authorizationv1.SubjectAccessReviewSpec{User: "ann"})
		if took := time.Since(began); err == nil || took != 5*time.Second || asked.Load() != 1 {
			t.Errorf("%v after %v, %d requests", err, took, asked.Load())
		}
		if errors.Unwrap(err) == nil {
			t.Error("the cause is not there for the log")
		}
	})
}
