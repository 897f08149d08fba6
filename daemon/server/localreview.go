package server

import (
	"net/http"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/access"
)

// localReview answers what another user may do in a namespace. The user of the request needs the right to ask.
func (s *Server) localReview(r *http.Request, t target, review *authorizationv1.LocalSubjectAccessReview) error {
	shown := t.namespace
	if t.fleet {
		if err := t.resolvePath(); err != nil {
			return err
		}
		if t.cluster == "" {
			return badRequest("a LocalSubjectAccessReview at /fleet is about a namespace of one cluster, such as eu.%s, "+
				"not %[1]q", clip(shown))
		}
	}
	if _, ok := s.fleet.Cluster(t.cluster); !ok {
		if s.mayKnow(r, t.cluster) {
			return errNoCluster(t.cluster)
		}
		recordOf(r).decide(access.Decision{})
		return forbidden(userOf(r), t.attributes("create"), "")
	}
	if err := s.allow(r, t.cluster, t.attributes("create")); err != nil {
		return err
	}
	want := review.Spec.ResourceAttributes
	switch {
	case want == nil || review.Spec.NonResourceAttributes != nil:
		return apierrors.NewBadRequest("a LocalSubjectAccessReview needs spec.resourceAttributes, and nothing else")
	case review.Spec.User == "" && len(review.Spec.Groups) == 0:
		return apierrors.NewBadRequest("at least one of spec.user and spec.groups must be given")
	case review.Namespace != shown && review.Namespace != "" || want.Namespace != shown:
		return badRequest("spec.resourceAttributes.namespace must match namespace: %s", clip(shown))
	}
	review.Namespace = shown
	if !slices.Contains(readVerbs, want.Verb) {
		review.Status = authorizationv1.SubjectAccessReviewStatus{Denied: true, Reason: readOnly(&t).Error()}
		return nil
	}
	u := &user.DefaultInfo{Name: review.Spec.User, Groups: review.Spec.Groups, UID: review.Spec.UID}
	for key, values := range review.Spec.Extra {
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		u.Extra[key] = values
	}
	d, err := s.opts.Authorizer.DecideFor(r.Context(), u, t.cluster, access.Attributes{ResourceRequest: true,
		Verb: want.Verb, APIGroup: want.Group, APIVersion: want.Version, Resource: want.Resource,
		Subresource: want.Subresource, Namespace: t.namespace, Name: want.Name})
	review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: d.Allowed && err == nil, Reason: d.Reason}
	return nil
}
