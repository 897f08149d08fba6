package kube

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// defaultPageSize is what client-go and kubectl ask for too.
const defaultPageSize = 500

// Option narrows or tunes a Source.
type Option func(*options)

type options struct {
	namespace string
	labels    string
	fields    string
	resource  schema.GroupVersionResource
	cluster   string
	scheme    *runtime.Scheme
	tweak     func(*metav1.ListOptions)
	pageSize  int
	userAgent string
	client    *http.Client
	noInitial bool
	forceJSON bool
	buffers   *Allowance
}

// Namespace takes the objects of one namespace only.
func Namespace(name string) Option { return func(o *options) { o.namespace = name } }

// LabelSelector takes the objects whose labels match, such as "app=web,tier!=db".
// The server does the selecting.
func LabelSelector(selector string) Option { return func(o *options) { o.labels = selector } }

// FieldSelector takes the objects whose fields match, such as
// "spec.nodeName=n1". The server does the selecting and knows few fields.
func FieldSelector(selector string) Option { return func(o *options) { o.fields = selector } }

// Resource says which resource Typed reads, where the kind's name does not tell:
// it is guessed as the plural of the kind otherwise.
func Resource(gvr schema.GroupVersionResource) Option {
	return func(o *options) { o.resource = gvr }
}

// Cluster names the cluster in the source's description.
func Cluster(name string) Option { return func(o *options) { o.cluster = name } }

// WithScheme gives Typed the scheme in which T is registered; it is client-go's
// otherwise, which knows what Kubernetes itself serves.
func WithScheme(s *runtime.Scheme) Option { return func(o *options) { o.scheme = s } }

// Tweak changes the options of every request just before it is sent, page by
// page. It is called once more when the source is made, on empty options, so
// that its selectors can be checked and named.
func Tweak(tweak func(*metav1.ListOptions)) Option { return func(o *options) { o.tweak = tweak } }

// PageSize asks for n objects in one response; 0 asks for all in one. It is 500
// otherwise. Memory does not depend on it: a response is never held whole.
func PageSize(n int) Option { return func(o *options) { o.pageSize = n } }

// UserAgent names the program to the server. It is the config's otherwise.
func UserAgent(name string) Option { return func(o *options) { o.userAgent = name } }

// HTTPClient sends all requests through c, as it is: with its own TLS and
// credentials and not the config's. A timeout it has is not kept, since a
// watch has none. Sources that share a client share its connections.
func HTTPClient(c *http.Client) Option { return func(o *options) { o.client = c } }

// WithoutInitialState never asks a watch for the state too (WatchList): the
// state then comes from a list alone.
func WithoutInitialState() Option { return func(o *options) { o.noInitial = true } }

// ForceJSON asks for JSON where protobuf could be had.
func ForceJSON() Option { return func(o *options) { o.forceJSON = true } }

func newOptions(opts []Option) (*options, error) {
	o := &options{pageSize: defaultPageSize, scheme: scheme.Scheme}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("an option is nil; leave it out")
		}
		opt(o)
	}
	if o.scheme == nil {
		return nil, errors.New("kube.WithScheme was given nil; leave it out for client-go's scheme")
	}
	if o.pageSize < 0 {
		return nil, fmt.Errorf("kube.PageSize was given %d; use 0 for all in one page", o.pageSize)
	}
	if strings.ContainsAny(o.namespace, "/?#% ") {
		return nil, fmt.Errorf("kube.Namespace was given %q, which is no namespace; leave the option out for all namespaces",
			o.namespace)
	}
	// What the server will be sent includes the tweak's own selectors.
	lo := o.request()
	if o.tweak != nil {
		o.tweak(&lo)
	}
	if _, err := labels.Parse(lo.LabelSelector); err != nil {
		return nil, fmt.Errorf("the label selector %q is malformed; write it as in \"app=web,tier!=db\": %w",
			lo.LabelSelector, err)
	}
	if _, err := fields.ParseSelector(lo.FieldSelector); err != nil {
		return nil, fmt.Errorf("the field selector %q is malformed; write it as in \"spec.nodeName=n1\": %w",
			lo.FieldSelector, err)
	}
	return o, nil
}

// request gives the options that every request of the source has.
func (o *options) request() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: o.labels, FieldSelector: o.fields}
}

// scope says in one line what the source is narrowed to.
func (o *options) scope() string {
	lo := o.request()
	if o.tweak != nil {
		o.tweak(&lo)
	}
	var parts []string
	if o.namespace != "" {
		parts = append(parts, "namespace="+o.namespace)
	}
	if lo.LabelSelector != "" {
		parts = append(parts, "labels("+lo.LabelSelector+")")
	}
	if lo.FieldSelector != "" {
		parts = append(parts, "fields("+lo.FieldSelector+")")
	}
	return strings.Join(parts, " ")
}
