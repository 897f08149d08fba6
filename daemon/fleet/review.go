package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// reviewTimeout bounds one review.
	reviewTimeout = 5 * time.Second
	// maxReview bounds an answer. The rules of a user with many roles take the most.
	maxReview = 4 << 20
)

// The reviews are the only requests to a cluster that are not reads. They change nothing there. Each kind has a method,
// so that a caller cannot send anything else.

// ReviewAccess asks the cluster whether a user may do something, with the credentials of the daemon.
func (c *Cluster) ReviewAccess(ctx context.Context,
	spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	var question, review authorizationv1.SubjectAccessReview
	question.Spec = spec
	err := c.client.reviewRights(ctx, authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"),
		"subjectaccessreviews", &question, &review)
	if err != nil {
		return authorizationv1.SubjectAccessReviewStatus{}, err
	}
	review.Status.Reason = c.client.redact.text(review.Status.Reason)
	review.Status.EvaluationError = c.client.redact.text(review.Status.EvaluationError)
	return review.Status, nil
}

// ReviewToken asks the cluster which user a token belongs to, with the credentials of the daemon.
func (c *Cluster) ReviewToken(ctx context.Context,
	spec authenticationv1.TokenReviewSpec) (authenticationv1.TokenReviewStatus, error) {
	var question, review authenticationv1.TokenReview
	question.Spec = spec
	err := c.client.review(ctx, authenticationv1.SchemeGroupVersion.WithKind("TokenReview"), "tokenreviews",
		&question, &review)
	if err != nil {
		return authenticationv1.TokenReviewStatus{}, err
	}
	if review.Status.Error != "" {
		review.Status.Error = "the cluster does not know the user of the token" // its text may quote the token
	}
	return review.Status, nil
}

// ReviewOwnRules asks the cluster for the rules of the daemon's own user in a namespace.
func (c *Cluster) ReviewOwnRules(ctx context.Context,
	namespace string) (authorizationv1.SubjectRulesReviewStatus, error) {
	var question, review authorizationv1.SelfSubjectRulesReview
	question.Spec.Namespace = namespace
	err := c.client.reviewRights(ctx, authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectRulesReview"),
		"selfsubjectrulesreviews", &question, &review)
	if err != nil {
		return authorizationv1.SubjectRulesReviewStatus{}, err
	}
	return review.Status, nil
}

// ConfigNumber returns a number that changes when other credentials or another address are used to reach the cluster.
// The channel of Fleet.Changed is closed after such a change.
func (c *Cluster) ConfigNumber() uint64 { return c.configNumber.Load() }

// reviewRights sends a review about rights. They apply to what is mirrored, which may be from disk, so it waits until
// it is known that the server is the same cluster.
func (l *clusterClient) reviewRights(ctx context.Context, kind schema.GroupVersionKind, resource string,
	question, answer runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	if err := l.gate.pass(ctx); err != nil {
		return &requestError{l.reviewing(kind), "it is not known yet whether the server is the same cluster as before", err}
	}
	return l.review(ctx, kind, resource, question, answer)
}

// review sends a review and decodes the answer, which must be another object: the user in the question may be shared by
// several requests. The text of an error contains nothing of the answer.
func (l *clusterClient) review(ctx context.Context, kind schema.GroupVersionKind, resource string,
	question, answer runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	version := kind.GroupVersion().String()
	question.GetObjectKind().SetGroupVersionKind(kind)
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	err = l.post(ctx, "/apis/"+version+"/"+resource, body, answer)
	if err == nil && answer.GetObjectKind().GroupVersionKind() != kind {
		err = errNotKubernetes
	}
	if err == nil {
		return nil
	}
	doing := l.reviewing(kind)
	if code := codeOf(err); code == http.StatusForbidden {
		return &requestError{doing, fmt.Sprintf("forbidden: the daemon's user may not create %s.%s (403); give it the right",
			resource, kind.Group), err}
	}
	return l.redact.requestError(doing, err)
}

// reviewing describes a review for error texts.
func (l *clusterClient) reviewing(kind schema.GroupVersionKind) string {
	return fmt.Sprintf("ask cluster %q for a %s", l.cluster, kind.Kind)
}

// post sends JSON and decodes the answer.
func (l *clusterClient) post(ctx context.Context, path string, body []byte, answer any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return withoutURL(err)
	}
	req.Header.Set("Accept", acceptJSON)
	req.Header.Set("Content-Type", acceptJSON)
	req.Header.Set("User-Agent", userAgent)
	resp, err := l.client.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		return refusal(resp)
	}
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxReview+1))
	switch {
	case err != nil:
		return withoutURL(err)
	case len(body) > maxReview:
		return &tooLargeError{maxReview}
	}
	if _, err := recovered(func() (struct{}, error) { return struct{}{}, json.Unmarshal(body, answer) }); err != nil {
		return errors.Join(errNotKubernetes, err)
	}
	return nil
}
