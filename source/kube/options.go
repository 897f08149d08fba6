package kube

import (
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mirador-k8s/mirador/source"
)

// defaultPageSize is also the page size of client-go and kubectl.
const defaultPageSize = 500

// Options select the objects of a Source and tune it. The zero value of each field means its default.
type Options struct {
	// Namespace selects the objects of one namespace. The default is all namespaces.
	Namespace string
	// LabelSelector selects objects by their labels, such as "app=web,tier!=db". The server evaluates it.
	LabelSelector string
	// FieldSelector selects objects by their fields, such as "spec.nodeName=n1". The server evaluates it and supports
	// few fields.
	FieldSelector string
	// Tweak changes the options of every request just before it is sent, page by page. It is also called once when the
	// source is made, with empty options, so that its selectors can be checked and described.
	Tweak func(*metav1.ListOptions)

	// Resource is the resource that Typed reads. The default is the plural of the kind.
	Resource schema.GroupVersionResource
	// Scheme is the scheme in which Typed finds the Go type. The default is client-go's, which has the types of
	// Kubernetes itself.
	Scheme *runtime.Scheme
	// ForceJSON asks for JSON where protobuf would be used.
	ForceJSON bool

	// PageSize is the number of objects in one response to a list. The default is 500; source.OnePage asks for all
	// objects in one response. Memory does not depend on it: a response is never held whole.
	PageSize int
	// WithoutInitialState reads the initial state by a list, never by a streaming watch (WatchList).
	WithoutInitialState bool

	// Cluster is the cluster's name in the source's description.
	Cluster string
	// UserAgent is the program's name in requests. The default is the config's.
	UserAgent string
	// HTTPClient sends all requests, with its own TLS and credentials instead of the config's. Its timeout is ignored,
	// because a watch has none. Sources with the same client share its connections.
	HTTPClient *http.Client
	// Buffers bounds the memory that several sources use together for the objects they are reading. The default is no
	// common bound.
	Buffers *Allowance
}

// completed returns a checked copy of the options with the defaults filled in. Nil options mean the defaults.
func completed(opts *Options) (*Options, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	return &o, o.complete()
}

func (o *Options) complete() error {
	if o.Scheme == nil {
		o.Scheme = scheme.Scheme
	}
	switch {
	case o.PageSize == 0:
		o.PageSize = defaultPageSize
	case o.PageSize == source.OnePage:
		o.PageSize = 0
	case o.PageSize < 0:
		return fmt.Errorf("Options.PageSize is %d; use source.OnePage for all objects in one page", o.PageSize)
	}
	if strings.ContainsAny(o.Namespace, "/?#% ") {
		return fmt.Errorf("Options.Namespace is %q, which is not the name of a namespace; leave it empty for all namespaces",
			o.Namespace)
	}
	// Check the selectors as they are sent, after Tweak.
	lo := o.request()
	if o.Tweak != nil {
		o.Tweak(&lo)
	}
	if _, err := labels.Parse(lo.LabelSelector); err != nil {
		return fmt.Errorf("the label selector %q is malformed; write it as in \"app=web,tier!=db\": %w",
			lo.LabelSelector, err)
	}
	if _, err := fields.ParseSelector(lo.FieldSelector); err != nil {
		return fmt.Errorf("the field selector %q is malformed; write it as in \"spec.nodeName=n1\": %w",
			lo.FieldSelector, err)
	}
	return nil
}

// request returns the options that all requests of the source have in common.
func (o *Options) request() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector}
}

// scope describes namespace and selectors in one line.
func (o *Options) scope() string {
	lo := o.request()
	if o.Tweak != nil {
		o.Tweak(&lo)
	}
	var parts []string
	if o.Namespace != "" {
		parts = append(parts, "namespace="+o.Namespace)
	}
	if lo.LabelSelector != "" {
		parts = append(parts, "labels("+lo.LabelSelector+")")
	}
	if lo.FieldSelector != "" {
		parts = append(parts, "fields("+lo.FieldSelector+")")
	}
	return strings.Join(parts, " ")
}
