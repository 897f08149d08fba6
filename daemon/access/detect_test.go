package access

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// The texts are those of Kubernetes 1.36: plugin/pkg/authorizer/webhook of k8s.io/apiserver, and
// plugin/pkg/auth/authorizer/node and pkg/registry/rbac/validation of k8s.io/kubernetes.
func TestAnAuthorizerThatCannotListRulesIsFound(t *testing.T) {
	const webhook = "webhook authorizer does not support user rule resolution"
	const node = "node authorizer does not support user rule resolution"
	const role = `clusterroles.rbac.authorization.k8s.io "x" not found`
	for text, want := range map[string]Mode{
		"": ModeRBAC, node: ModeRBAC, role: ModeRBAC, "[" + node + ", " + role + "]": ModeRBAC,
		webhook: ModeReview, "[" + webhook + ", " + role + "]": ModeReview,
		"[" + node + ", " + webhook + "]": ModeReview, "[" + role + ", " + webhook + "]": ModeReview,
		"other authorizer does not support user rule resolution": ModeReview,
	} {
		status := authorizationv1.SubjectRulesReviewStatus{Incomplete: true, EvaluationError: text}
		if got := authorizationMode(&status); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func TestDetectionAsksOncePerCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var mu sync.Mutex
		asked, signals := 0, 0
		fails := errors.New("the server failed")
		status := authorizationv1.SubjectRulesReviewStatus{}
		d := &detector{cluster: "eu", log: slog.New(slog.NewTextHandler(&log, nil)), signal: func() {
			mu.Lock()
			defer mu.Unlock()
			signals++
		},
			review: func(context.Context, string) (authorizationv1.SubjectRulesReviewStatus, error) {
				mu.Lock()
				defer mu.Unlock()
				asked++
				return status, fails
			}}
		answer := func(evaluationError string, err error) {
			mu.Lock()
			defer mu.Unlock()
			status.EvaluationError, fails = evaluationError, err
		}
		step := func(what string, wait time.Duration, mode Mode, requests, changes int) {
			t.Helper()
			pass(wait)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if d.mode() != mode || asked != requests || signals != changes {
				t.Fatalf("%s: %q after %d requests and %d changes", what, d.mode(), asked, signals)
			}
		}
		step("before", time.Hour, "", 0, 0)
		d.start(0)
		step("an error", 0, ModeRBAC, 1, 1)
		d.start(0)
		step("still", retryDetection-1, ModeRBAC, 1, 1)
		step("asked again", 1, ModeRBAC, 2, 1)
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "RBAC is used") ||
			!strings.Contains(text, "the server failed") {
			t.Errorf("the log says:\n%s", text)
		}
		answer("webhook authorizer does not support user rule resolution", nil)
		step("an answer", retryDetection, ModeReview, 3, 2)
		d.start(0)
		step("known", time.Hour, ModeReview, 3, 2)
		if !strings.Contains(log.String(), "authorization=review") {
			t.Errorf("the log says:\n%s", log.String())
		}
		answer("", errors.New("the credentials were refused"))
		d.start(1)
		step("other credentials that fail", 0, ModeReview, 4, 2)
		answer("", nil)
		d.start(2)
		step("other credentials", 0, ModeRBAC, 5, 3)
		d.close()
	})
}
