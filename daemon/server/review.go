package server

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/munnerz/goautoneg"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// reviewKinds are the reviews in which users ask what they, or others in a namespace, may do. They are the only
// objects that clients can create here, and they are not stored. Clients such as k9s ask before every list whether
// they may.
var reviewKinds = []metav1.APIResource{
	{Group: "authentication.k8s.io", Version: "v1", Name: "selfsubjectreviews", SingularName: "selfsubjectreview",
		Kind: "SelfSubjectReview", Verbs: metav1.Verbs{"create"}},
	{Group: "authorization.k8s.io", Version: "v1", Name: "selfsubjectaccessreviews",
		SingularName: "selfsubjectaccessreview",
		Kind:         "SelfSubjectAccessReview", Verbs: metav1.Verbs{"create"}},
	{Group: "authorization.k8s.io", Version: "v1", Name: "selfsubjectrulesreviews",
		SingularName: "selfsubjectrulesreview",
		Kind:         "SelfSubjectRulesReview", Verbs: metav1.Verbs{"create"}},
	{Group: "authorization.k8s.io", Version: "v1", Name: "localsubjectaccessreviews",
		SingularName: "localsubjectaccessreview", Namespaced: true,
		Kind: "LocalSubjectAccessReview", Verbs: metav1.Verbs{"create"}},
}

// selfReviews are those that every user may create, because they are about the user itself.
var selfReviews = slices.DeleteFunc(slices.Clone(reviewKinds), func(r metav1.APIResource) bool { return r.Namespaced })

// reviewAt returns the review of a path, nil if the path is not that of a review.
func reviewAt(t *target) *metav1.APIResource {
	for i := range reviewKinds {
		r := &reviewKinds[i]
		if r.Group == t.group && r.Version == t.version && r.Name == t.resource &&
			r.Namespaced == (t.namespace != "") && t.name == "" {
			return r
		}
	}
	return nil
}

// review answers a review with what the user of the request, or another one, may do.
func (s *Server) review(w http.ResponseWriter, r *http.Request, t *target, kind *metav1.APIResource) error {
	if r.Method != http.MethodPost {
		return apierrors.NewMethodNotSupported(t.groupResource(), r.Method)
	}
	answer, err := reviewAnswer(r)
	if err != nil {
		return err
	}
	review, err := readReview(w, r, schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind})
	if err != nil {
		return err
	}
	if isSelfReview(kind.Group, kind.Name) {
		recordOf(r).decide(access.Decision{Allowed: true, Reason: "every user may ask about itself"})
	}
	switch review := review.(type) {
	case *authenticationv1.SelfSubjectReview:
		review.CreationTimestamp = metav1.NewTime(time.Now())
		review.Status.UserInfo = userInfo(userOf(r))
	case *authorizationv1.SelfSubjectAccessReview:
		if err := checkAccessReview(&review.Spec); err != nil {
			return err
		}
		review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: true}
		if refused := s.access(r, t, &review.Spec); refused != nil {
			// Only what a mirror never does is denied as such. A missing right is no opinion, as for RBAC.
			var missing noRight
			review.Status = authorizationv1.SubjectAccessReviewStatus{Denied: !errors.As(refused, &missing),
				Reason: refused.Error()}
		}
	case *authorizationv1.SelfSubjectRulesReview:
		if review.Spec.Namespace == "" {
			return apierrors.NewBadRequest("a SelfSubjectRulesReview needs spec.namespace")
		}
		if review.Status, err = s.rulesInTurn(r, t, review.Spec.Namespace); err != nil {
			return err
		}
	case *authorizationv1.LocalSubjectAccessReview:
		if err := s.localReview(r, *t, review); err != nil {
			return err
		}
	}
	var body strings.Builder
	if err := answer.Serializer.Encode(review, &body); err != nil {
		return fmt.Errorf("encode a review: %w", err)
	}
	writeBody(w, http.StatusCreated, answer.MediaType, []byte(body.String()))
	return nil
}

// checkAccessReview refuses a review that has no question, or two.
func checkAccessReview(spec *authorizationv1.SelfSubjectAccessReviewSpec) error {
	var why string
	switch {
	case spec.ResourceAttributes == nil && spec.NonResourceAttributes == nil:
		why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
	case spec.ResourceAttributes != nil && spec.NonResourceAttributes != nil:
		why = "cannot be specified in combination with nonResourceAttributes"
	default:
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: authorizationv1.GroupName, Kind: "SelfSubjectAccessReview"}, "",
		field.ErrorList{field.Invalid(field.NewPath("spec", "resourceAttributes"), spec.ResourceAttributes, why)})
}

// access returns nil if the request that a review asks about would be answered, or the reason why it would be refused.
func (s *Server) access(r *http.Request, t *target, spec *authorizationv1.SelfSubjectAccessReviewSpec) error {
	if path := spec.NonResourceAttributes; path != nil {
		if err := pathAccess(t, path); err != nil {
			return err
		}
		return s.mayReadPath(r, t, path)
	}
	want := *spec.ResourceAttributes
	if want.Namespace == "*" {
		want.Namespace = ""
	}
	at := target{fleet: t.fleet, cluster: t.cluster, group: want.Group, version: want.Version, resource: want.Resource,
		namespace: want.Namespace, name: want.Name, subresource: want.Subresource}
	if want.Verb == "create" && isSelfReview(want.Group, want.Resource) {
		return nil
	}
	if !slices.Contains(readVerbs, want.Verb) {
		return readOnly(t)
	}
	if t.fleet {
		at = s.reviewed(r, at)
	}
	if !hasSubresource(schema.GroupResource{Group: want.Group, Resource: want.Resource}, want.Subresource) {
		return fmt.Errorf("a mirror has no %s of %s: ask the cluster itself", clip(want.Subresource), clip(want.Resource))
	}
	clusters := s.clustersOf(&at)
	refusals := make([]error, len(clusters))
	s.eachCluster(clusters, func(i int) { refusals[i] = s.mayRead(r, clusters[i], &at, want.Verb) })
	mirrored := true
	for i, c := range clusters {
		if refusals[i] != nil {
			continue
		}
		if mirrored = s.served.of(c).mayServe(want.Group, want.Resource); mirrored {
			return nil // at /fleet, what one cluster shows is enough
		}
	}
	switch {
	case !mirrored || len(clusters) == 0 && s.mayKnow(r, at.cluster):
		return fmt.Errorf("%s are not mirrored here", clip(at.groupResource().String()))
	case len(clusters) == 0:
		return noRight("")
	}
	return refusals[len(refusals)-1]
}

// mayRead returns nil if a user may read a resource of a cluster, or the reason why not. A list or watch at /fleet is
// answered if anything is visible.
func (s *Server) mayRead(r *http.Request, c *fleet.Cluster, at *target, verb string) error {
	want := at.attributes(verb)
	d, err := s.opts.Authorizer.Decide(r.Context(), userOf(r), c.Name(), want)
	switch {
	case err != nil && at.fleet && !s.mayKnow(r, c.Name()):
		return noRight(rightsUnknown)
	case err != nil:
		return noRight(err.Error())
	case d.Allowed:
		return nil
	}
	if at.fleet && verb != "get" {
		res, ok := c.Resource(at.gvr())
		namespaced := ok && res.Info().Namespaced || !ok && s.served.of(c).isNamespaced(at.groupResource())
		see, err := s.opts.Authorizer.Visible(r.Context(), userOf(r), c.Name(), verb, at.groupResource(), namespaced)
		if err == nil && (see == nil || !see.EmptyIn(at.namespace)) {
			return nil
		}
	}
	return noRight(d.Reason)
}

// mayReadPath returns nil if a user may read a path that is not of a resource: at /fleet, in one of the clusters.
func (s *Server) mayReadPath(r *http.Request, t *target, path *authorizationv1.NonResourceAttributes) error {
	refused := noRight("")
	for _, c := range s.clustersOf(t) {
		d, err := s.opts.Authorizer.Decide(r.Context(), userOf(r), c.Name(),
			access.Attributes{Verb: path.Verb, Path: path.Path})
		switch {
		case err != nil && t.fleet && !s.mayKnow(r, c.Name()):
			refused = rightsUnknown
		case err != nil:
			refused = noRight(err.Error())
		case d.Allowed:
			return nil
		default:
			refused = noRight(d.Reason)
		}
	}
	return refused
}

// noRight is the reason for which a user may not read something, "" if nothing allows it.
type noRight string

// Error returns the reason.
func (e noRight) Error() string { return string(e) }

// reviewed resolves the names in a review at /fleet. A name that no cluster can have means all clusters: permissions
// do not depend on what exists.
func (s *Server) reviewed(r *http.Request, at target) target {
	own := at
	if own.isNamespaces() && own.name != "" {
		own.namespace = "" // a review about a namespace may have its name twice
	}
	if own.resolvePath() == nil {
		if _, ok := s.fleet.Cluster(own.cluster); ok || own.cluster == "" || !s.mayKnow(r, own.cluster) {
			return own
		}
	}
	at.namespace, at.name = "", ""
	return at
}

var readVerbs = []string{"get", "list", "watch"}

func readOnly(t *target) error {
	if t.cluster == "" {
		return errors.New("this is a read-only mirror: send it to the API server of the cluster itself")
	}
	return fmt.Errorf("this is a read-only mirror: send it to the API server of cluster %q itself", t.cluster)
}

func isSelfReview(group, resource string) bool {
	return slices.ContainsFunc(selfReviews,
		func(r metav1.APIResource) bool { return r.Group == group && r.Name == resource })
}

// pathAccess returns nil if a path that is not of a resource is answered. A "*" at the end means all paths with the
// prefix.
func pathAccess(t *target, want *authorizationv1.NonResourceAttributes) error {
	if want.Verb != "get" {
		return readOnly(t)
	}
	for _, served := range servedPaths {
		prefix, open := strings.CutSuffix(served, "*")
		if want.Path == served || open && strings.HasPrefix(want.Path, prefix) {
			return nil
		}
	}
	return fmt.Errorf("a mirror does not serve %s: ask the cluster itself", clip(want.Path))
}

// servedPaths are the paths that are answered besides those of resources.
var servedPaths = []string{"/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*",
	"/readyz", "/version", "/version/"}

// clustersOf returns the clusters that a request is about.
func (s *Server) clustersOf(t *target) []*fleet.Cluster {
	if t.fleet && t.cluster == "" {
		return s.fleet.Clusters()
	}
	if c, ok := s.fleet.Cluster(t.cluster); ok {
		return []*fleet.Cluster{c}
	}
	return nil
}

// rulesInTurn returns what the user may do in a namespace. At /fleet, that takes a decision for each verb of each
// resource of each cluster, so it waits for its turn.
func (s *Server) rulesInTurn(r *http.Request, t *target,
	namespace string) (status authorizationv1.SubjectRulesReviewStatus, err error) {
	work, err := s.work.begin(r.Context(), clientOf(r))
	if err != nil {
		return status, err
	}
	defer work.end()
	return s.rules(r, t, namespace, work.pace)
}

// rules returns what the user may do in a namespace. At one cluster they are the rules of that cluster as far as a
// mirror can grant them. Otherwise they are, for every mirrored resource, the verbs that are allowed in all clusters
// that have it. A cluster that decides about each request is left out, and the answer says that it is incomplete.
func (s *Server) rules(r *http.Request, t *target, namespace string,
	pace func() error) (authorizationv1.SubjectRulesReviewStatus, error) {
	if !t.fleet {
		if _, ok := s.fleet.Cluster(t.cluster); !ok {
			return mirrorRules(&access.RuleList{}), nil
		}
		list, ok, err := s.opts.Authorizer.RulesIn(userOf(r), t.cluster, namespace)
		if err != nil {
			return authorizationv1.SubjectRulesReviewStatus{Incomplete: true, EvaluationError: err.Error()}, nil
		}
		if ok {
			return mirrorRules(list), nil
		}
	}
	at := target{fleet: t.fleet, cluster: t.cluster, namespace: namespace}
	if t.fleet {
		at = s.reviewed(r, at)
	}
	out := authorizationv1.SubjectRulesReviewStatus{}
	allowed := map[schema.GroupResource][]string{}
	for _, c := range s.clustersOf(&at) {
		if t.fleet && s.opts.Authorizer.Mode(c.Name()) == access.ModeReview {
			if list, ok, err := s.opts.Authorizer.RulesIn(userOf(r), c.Name(), namespace); err == nil && ok && list.Incomplete {
				out.Incomplete = true
				out.EvaluationError = "a cluster has another authorizer than RBAC and decides about each request"
				continue
			}
		}
		for _, res := range c.Resources() {
			if err := pace(); err != nil {
				return out, err
			}
			gvr := res.GVR()
			one := target{fleet: t.fleet, cluster: c.Name(), group: gvr.Group, version: gvr.Version, resource: gvr.Resource}
			if res.Info().Namespaced {
				one.namespace = at.namespace
			}
			verbs, seen := allowed[gvr.GroupResource()]
			if !seen {
				verbs = readVerbs
			}
			allowed[gvr.GroupResource()] = slices.DeleteFunc(slices.Clone(verbs), func(verb string) bool {
				return s.mayRead(r, c, &one, verb) != nil
			})
		}
	}
	for _, review := range selfReviews {
		allowed[schema.GroupResource{Group: review.Group, Resource: review.Name}] = review.Verbs
	}
	out.ResourceRules = groupedRules(allowed)
	out.NonResourceRules = []authorizationv1.NonResourceRule{{Verbs: []string{"get"}, NonResourceURLs: servedPaths}}
	return out, nil
}

// mirrorRules reduces the rules of a cluster to what a mirror can grant: it only reads, and answers self-reviews.
func mirrorRules(list *access.RuleList) authorizationv1.SubjectRulesReviewStatus {
	out := authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{},
		NonResourceRules: []authorizationv1.NonResourceRule{}, Incomplete: list.Incomplete}
	if list.EvaluationError != nil {
		out.EvaluationError = list.EvaluationError.Error()
	}
	for _, rule := range list.Resource {
		if rule.Verbs = grantable(rule.Verbs, readVerbs); len(rule.Verbs) > 0 {
			out.ResourceRules = append(out.ResourceRules, rule)
		}
	}
	for _, review := range selfReviews {
		out.ResourceRules = append(out.ResourceRules, authorizationv1.ResourceRule{Verbs: review.Verbs,
			APIGroups: []string{review.Group}, Resources: []string{review.Name}})
	}
	for _, rule := range list.NonResource {
		if rule.Verbs = grantable(rule.Verbs, []string{"get", "head"}); len(rule.Verbs) > 0 {
			out.NonResourceRules = append(out.NonResourceRules, rule)
		}
	}
	return out
}

// grantable returns the verbs of a rule that are among some.
func grantable(verbs, some []string) []string {
	if slices.Contains(verbs, "*") {
		return some
	}
	return slices.DeleteFunc(slices.Clone(verbs), func(verb string) bool { return !slices.Contains(some, verb) })
}

// userInfo returns a user as a review shows it.
func userInfo(u user.Info) authenticationv1.UserInfo {
	out := authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	for key, values := range u.GetExtra() {
		if out.Extra == nil {
			out.Extra = map[string]authenticationv1.ExtraValue{}
		}
		out.Extra[key] = values
	}
	return out
}

// groupedRules returns one rule for the resources of a group that have the same verbs.
func groupedRules(allowed map[schema.GroupResource][]string) []authorizationv1.ResourceRule {
	rules := []authorizationv1.ResourceRule{}
	for _, gr := range slices.SortedFunc(maps.Keys(allowed), compareGroupResources) {
		verbs := allowed[gr]
		i := slices.IndexFunc(rules, func(r authorizationv1.ResourceRule) bool {
			return r.APIGroups[0] == gr.Group && slices.Equal(r.Verbs, verbs)
		})
		switch {
		case len(verbs) == 0:
		case i >= 0:
			rules[i].Resources = append(rules[i].Resources, gr.Resource)
		default:
			rules = append(rules, authorizationv1.ResourceRule{Verbs: verbs, APIGroups: []string{gr.Group},
				Resources: []string{gr.Resource}})
		}
	}
	return rules
}

func compareGroupResources(a, b schema.GroupResource) int {
	if c := strings.Compare(a.Group, b.Group); c != 0 {
		return c
	}
	return strings.Compare(a.Resource, b.Resource)
}

// maxReview is how large the body of a review may be.
const maxReview = 64 << 10

// reviewTypes are the supported encodings of a review. Typed clients prefer protobuf.
var reviewTypes = slices.DeleteFunc(scheme.Codecs.SupportedMediaTypes(), func(info runtime.SerializerInfo) bool {
	return info.MediaType != runtime.ContentTypeJSON && info.MediaType != runtime.ContentTypeProtobuf
})

// readReview decodes the body of a request, which must be of the given kind.
func readReview(w http.ResponseWriter, r *http.Request, kind schema.GroupVersionKind) (runtime.Object, error) {
	media := runtime.ContentTypeJSON
	if given := r.Header.Get("Content-Type"); given != "" {
		media, _, _ = mime.ParseMediaType(given)
	}
	info, ok := runtime.SerializerInfoForMediaType(reviewTypes, media)
	if !ok || info.MediaType != media {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType,
			Reason:  metav1.StatusReasonUnsupportedMediaType,
			Message: "the body of the request must be application/json or application/vnd.kubernetes.protobuf",
		}}
	}
	body, err := io.ReadAll(http.MaxBytesReader(connectionWriter(w), r.Body, maxReview))
	if large := new(http.MaxBytesError); errors.As(err, &large) {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("a %s of more than %d bytes", kind.Kind, maxReview))
	}
	if err != nil {
		return nil, apierrors.NewBadRequest("the body of the request could not be read")
	}
	review, got, err := info.Serializer.Decode(body, &kind, nil)
	if err != nil {
		return nil, badRequest("the body of the request is not a %s of %s: %s",
			kind.Kind, kind.GroupVersion(), clip(err.Error()))
	}
	if *got != kind {
		return nil, badRequest("the body of the request is a %s of %s, and must be a %s of %s",
			clip(got.Kind), clip(got.GroupVersion().String()), kind.Kind, kind.GroupVersion())
	}
	review.GetObjectKind().SetGroupVersionKind(kind) // an object decoded from protobuf has none
	return review, nil
}

// reviewAnswer returns the encoding that the Accept header asks for.
func reviewAnswer(r *http.Request) (runtime.SerializerInfo, error) {
	accept := r.Header.Get("Accept")
	if accept == "" {
		accept = runtime.ContentTypeJSON
	}
	for _, clause := range goautoneg.ParseAccept(accept) {
		if clause.Params["as"] != "" {
			continue
		}
		for _, info := range reviewTypes { // JSON first
			any := clause.SubType == "*" && (clause.Type == "*" || clause.Type == info.MediaTypeType)
			if any || clause.Type == info.MediaTypeType && clause.SubType == info.MediaTypeSubType {
				return info, nil
			}
		}
	}
	return runtime.SerializerInfo{}, errNotAcceptable("application/json, application/vnd.kubernetes.protobuf")
}
