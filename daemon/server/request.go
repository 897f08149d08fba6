package server

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	listscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// request is a GET, LIST or WATCH of objects. parseRequest reads it once from an HTTP request, and everything
// downstream works with it.
type request struct {
	target // the resource and the scope; names of /fleet are resolved to the cluster's own
	params
	http      *http.Request
	verb      string // get, list or watch
	form      form
	askedName string // the name in the path, such as eu:node-1 at /fleet
	filters   bool   // filtered= asks for what the user may see, whether or not that is everything
	omitted   bool   // clusters= names clusters that are not there, and the user may not know that
	// askedNamespace is the namespace in the path, such as eu.web at /fleet.
	askedNamespace string
	moment         time.Time   // of at= or of the path; zero for the present
	momentText     string      // as in the request
	then           *thenRights // of rights=then; nil otherwise
	// invalid is the error of a bad query, Accept header or name. It is returned only if the request is allowed and its
	// resource is mirrored.
	invalid error
}

// parseRequest parses a request for objects, given its parsed path.
func parseRequest(r *http.Request, t target) *request {
	req := &request{target: t, http: r, verb: "list", askedName: t.name, askedNamespace: t.namespace}
	switch {
	case t.name != "":
		req.verb = "get"
	case isWatch(r):
		req.verb = "watch"
	}
	if req.params, req.invalid = parseParams(r); req.invalid == nil {
		req.invalid = req.resolveMoment(r.URL.Query().Get("at"))
	}
	if req.invalid == nil {
		req.invalid = req.resolveRights(r.URL.Query().Get("rights"))
	}
	req.history = req.history || req.changes && req.verb != "get"
	if req.invalid == nil && req.history {
		req.invalid = req.checkHistory()
	}
	if req.invalid == nil && t.fleet {
		req.invalid = req.resolve()
	}
	if req.invalid == nil {
		req.form, req.invalid = formOf(r.Header.Get("Accept"))
	}
	return req
}

func (req *request) context() context.Context { return req.http.Context() }

// target is the parsed path of a request.
type target struct {
	fleet   bool   // the path begins with /fleet
	cluster string // the name in /clusters/NAME, or the cluster that a name of /fleet belongs to
	rest    string // the path without that prefix, as the cluster's own server would see it
	at      string // the time in /clusters/NAME@TIME or /fleet@TIME

	// Only in requests for objects:
	group, version, resource string
	namespace, name          string
	subresource              string
	history                  bool // the path ends with /history below an object
}

func (t *target) groupResource() schema.GroupResource {
	if t == nil {
		return schema.GroupResource{}
	}
	return schema.GroupResource{Group: t.group, Resource: t.resource}
}

func (t *target) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: t.group, Version: t.version, Resource: t.resource}
}

// parseTarget parses a path. ok is false if it begins with neither /fleet nor /clusters/NAME, each with or without a
// time.
func parseTarget(path string) (t target, ok bool) {
	first, rest := cut(path)
	if view, at := cutMoment(first); view == "fleet" {
		first, t.at = view, at
	}
	switch first {
	case "fleet":
		t.fleet, t.rest = true, "/"+rest
	case "clusters":
		t.cluster, rest = cut(rest)
		t.cluster, t.at = cutMoment(t.cluster)
		t.rest = "/" + rest
		if t.cluster == "" {
			return t, false
		}
	default:
		return t, false
	}
	t.readObjects(strings.Split(strings.Trim(t.rest, "/"), "/"))
	return t, true
}

// cut returns the first segment of a path and the rest.
func cut(path string) (first, rest string) {
	first, rest, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first, rest
}

// readObjects parses what follows /api/v1 or /apis/{group}/{version}.
func (t *target) readObjects(parts []string) {
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.group, t.version, parts = parts[1], parts[2], parts[3:]
	default:
		return
	}
	ofNamespace := t.group == "" && len(parts) == 3 && isNamespaceSubresource(parts[2])
	if parts[0] == "namespaces" && len(parts) >= 3 && !ofNamespace {
		t.namespace, parts = parts[1], parts[2:]
	}
	if slices.Contains(parts, "") {
		return // such as pods//status: no object has an empty name, and no subresource can be listed
	}
	t.resource = parts[0]
	if len(parts) > 1 {
		t.name = parts[1]
	}
	if len(parts) > 2 {
		t.subresource = strings.Join(parts[2:], "/")
	}
	if t.subresource == "history" {
		t.subresource, t.history = "", true
	}
}

// isNamespaceSubresource distinguishes /namespaces/web/status from /namespaces/web/pods.
func isNamespaceSubresource(s string) bool { return s == "status" || s == "finalize" || s == "history" }

// isWatch reports whether a request is a watch. As for an API server, every value of watch= except "false" and "0"
// means yes, also the empty one.
func isWatch(r *http.Request) bool {
	values, watch := r.URL.Query()["watch"], false
	return runtime.Convert_Slice_string_To_bool(&values, &watch, nil) == nil && watch
}

// params are the query parameters of a list or watch, validated as an API server does.
type params struct {
	internalversion.ListOptions
	labels, fields string // as in the query
	where, order   string
	clusters       string
	changes        bool // history=true: what changed, instead of objects
	onlyGaps       bool // history=gaps: of what changed only the gaps, and when the history begins
	complete       bool // fail instead of leaving clusters out
	filtered       bool // leave out what the user may not see, instead of failing
	include        metav1.IncludeObjectPolicy
}

// parseParams parses and validates the query of a request.
func parseParams(r *http.Request) (p params, err error) {
	q := r.URL.Query()
	p = params{labels: q.Get("labelSelector"), fields: q.Get("fieldSelector"), where: q.Get("where"),
		order: q.Get("orderBy"), clusters: q.Get("clusters"), include: metav1.IncludeObjectPolicy(q.Get("includeObject"))}
	if err := listscheme.ParameterCodec.DecodeParameters(q, metav1.SchemeGroupVersion, &p.ListOptions); err != nil {
		return p, apierrors.NewBadRequest(err.Error())
	}
	p.Watch = isWatch(r)
	if errs := validation.ValidateListOptions(&p.ListOptions, true); len(errs) > 0 {
		return p, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	switch p.include {
	case "":
		p.include = metav1.IncludeMetadata
	case metav1.IncludeMetadata, metav1.IncludeObject, metav1.IncludeNone:
	default:
		return p, badRequest("includeObject is one of None, Metadata and Object, not %q", p.include)
	}
	p.onlyGaps = q.Get("history") == "gaps"
	p.changes = p.onlyGaps
	for name, value := range map[string]*bool{"complete": &p.complete, "filtered": &p.filtered, "history": &p.changes} {
		if text := q.Get(name); text != "" && !(name == "history" && p.onlyGaps) {
			if *value, err = strconv.ParseBool(text); err != nil {
				return p, badRequest("%s is true or false, not %q", name, clip(text))
			}
		}
	}
	if p.Limit < 0 {
		return p, apierrors.NewBadRequest("limit is below zero; leave it out for no limit")
	}
	return p, nil
}

// initialEvents reports whether a watch begins with the current objects: if sendInitialEvents says so, or if it is not
// set and neither is a version to continue from. end reports whether a bookmark marks the end of these objects.
func (p *params) initialEvents() (begin, end bool) {
	if p.SendInitialEvents != nil {
		return *p.SendInitialEvents, *p.SendInitialEvents
	}
	return p.fromNow(), false
}

// fromNow reports whether the request names no version that the answer must have reached.
func (p *params) fromNow() bool { return p.ResourceVersion == "" || p.ResourceVersion == "0" }

// timeout returns how long a watch lasts: timeoutSeconds=, or otherwise if that is not set.
func (p *params) timeout(otherwise time.Duration) time.Duration {
	if p.TimeoutSeconds != nil && *p.TimeoutSeconds > 0 {
		return time.Duration(*p.TimeoutSeconds) * time.Second
	}
	return otherwise
}

// onlyClusters returns the clusters that clusters= limits the answer to; nil means all.
func (p *params) onlyClusters() []string {
	if p.clusters == "" {
		return nil
	}
	return strings.Split(p.clusters, ",")
}
