package server

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	listscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// params are what a list or a watch was asked for, checked as an API server checks it.
type params struct {
	internalversion.ListOptions
	labels, fields string // as they were given
	where, order   string
	clusters       string
	complete       bool // rather no answer than one without some clusters
	include        metav1.IncludeObjectPolicy
	watch          bool
}

func parseParams(r *http.Request) (*params, error) {
	q := r.URL.Query()
	p := &params{labels: q.Get("labelSelector"), fields: q.Get("fieldSelector"), where: q.Get("where"), order: q.Get("orderBy"),
		clusters: q.Get("clusters"), watch: isWatch(r), include: metav1.IncludeObjectPolicy(q.Get("includeObject"))}
	if err := listscheme.ParameterCodec.DecodeParameters(q, metav1.SchemeGroupVersion, &p.ListOptions); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	p.Watch = p.watch
	if errs := validation.ValidateListOptions(&p.ListOptions, true); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	switch p.include {
	case "":
		p.include = metav1.IncludeMetadata
	case metav1.IncludeMetadata, metav1.IncludeObject, metav1.IncludeNone:
	default:
		return nil, apierrors.NewBadRequest("includeObject is one of None, Metadata and Object, not " + strconv.Quote(string(p.include)))
	}
	if text := q.Get("complete"); text != "" {
		var err error
		if p.complete, err = strconv.ParseBool(text); err != nil {
			return nil, apierrors.NewBadRequest("complete is true or false, not " + strconv.Quote(clip(text)))
		}
	}
	if p.Limit < 0 {
		return nil, apierrors.NewBadRequest("limit is below zero; leave it out for no limit")
	}
	return p, nil
}

// initialEvents reports whether a watch begins with what there is: where that is asked for, or nothing is said of it
// and no version from which to go on. end is true where a bookmark says that this was all.
func (p *params) initialEvents() (begin, end bool) {
	if p.SendInitialEvents != nil {
		return *p.SendInitialEvents, *p.SendInitialEvents
	}
	return p.fromNow(), false
}

// fromNow reports whether no version is named from which a watch goes on.
func (p *params) fromNow() bool { return p.ResourceVersion == "" || p.ResourceVersion == "0" }

// timeout is how long a watch may last.
func (p *params) timeout(otherwise time.Duration) time.Duration {
	if p.TimeoutSeconds != nil && *p.TimeoutSeconds > 0 {
		return time.Duration(*p.TimeoutSeconds) * time.Second
	}
	return otherwise
}

// onlyClusters are those that the answer is limited to; none means all.
func (p *params) onlyClusters() []string {
	if p.clusters == "" {
		return nil
	}
	return strings.Split(p.clusters, ",")
}
