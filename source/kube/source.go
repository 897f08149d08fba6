package kube

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/source"
)

// Source lists and watches one resource of one API server. It is safe for concurrent use. An
// open list or watch must be used by one goroutine at a time, except for Close.
type Source[T any] struct {
	*server
	codec   codec[T]
	opts    Options
	strings stringTable
	desc    source.Description
}

var _ source.Source[*RawObject] = (*Source[*RawObject])(nil)

// Typed returns a source of objects of a Go type, a pointer such as *corev1.Pod. It uses
// protobuf if the type and the server support it, and JSON otherwise. Objects have their
// apiVersion and kind. Fields that the Go type does not have are dropped.
func Typed[T runtime.Object](cfg *rest.Config, opts *Options) (*Source[T], error) {
	t := reflect.TypeFor[T]()
	fail := func(err error) (*Source[T], error) {
		return nil, fmt.Errorf("make a source of %s: %w", t, err)
	}
	o, err := completed(opts)
	if err != nil {
		return fail(err)
	}
	gvk, gvr, err := resolve(t, o)
	if err != nil {
		return fail(err)
	}
	d := &typed[T]{elem: t.Elem()}
	d.kind.apiVersion, d.kind.kind = gvk.ToAPIVersionAndKind()
	s, err := newSource(cfg, gvr, o, d.codec(o.ForceJSON))
	if err != nil {
		return fail(err)
	}
	return s, nil
}

// Dynamic returns a source of any resource, including custom resources, as maps.
func Dynamic(cfg *rest.Config, gvr schema.GroupVersionResource,
	opts *Options) (*Source[*unstructured.Unstructured], error) {
	return untyped(cfg, gvr, opts, func(*Options) codec[*unstructured.Unstructured] { return unstructuredCodec() })
}

// Metadata returns a source of the metadata of any resource. The server sends nothing else.
// The objects are of kind PartialObjectMetadata.
func Metadata(cfg *rest.Config, gvr schema.GroupVersionResource,
	opts *Options) (*Source[*metav1.PartialObjectMetadata], error) {
	return untyped(cfg, gvr, opts,
		func(o *Options) codec[*metav1.PartialObjectMetadata] { return metadataCodec(o.ForceJSON) })
}

// Raw returns a source of any resource as the JSON that the server sends. Objects are not
// decoded: one scan validates each and finds its key, version and UID.
func Raw(cfg *rest.Config, gvr schema.GroupVersionResource, opts *Options) (*Source[*RawObject], error) {
	return untyped(cfg, gvr, opts, func(*Options) codec[*RawObject] { return rawCodec() })
}

func untyped[T any](cfg *rest.Config, gvr schema.GroupVersionResource, opts *Options,
	makeCodec func(*Options) codec[T]) (*Source[T], error) {
	o, err := completed(opts)
	if err == nil && !o.Resource.Empty() {
		err = errors.New("Options.Resource is for kube.Typed; here the resource is an argument")
	}
	var s *Source[T]
	if err == nil {
		s, err = newSource(cfg, gvr, o, makeCodec(o))
	}
	if err != nil {
		return nil, fmt.Errorf("make a source of %q: %w", gvr.GroupResource(), err)
	}
	return s, nil
}

func newSource[T any](cfg *rest.Config, gvr schema.GroupVersionResource, o *Options, c codec[T]) (*Source[T], error) {
	if gvr.Resource == "" || gvr.Version == "" || strings.ContainsAny(gvr.Group+gvr.Version+gvr.Resource, "/?#%") {
		return nil, fmt.Errorf("the resource %q is not one that can be listed; give group, version and the plural name, "+
			"as in {Group: \"apps\", Version: \"v1\", Resource: \"deployments\"}", gvr)
	}
	srv, err := newServer(cfg, gvr, o)
	if err != nil {
		return nil, err
	}
	return &Source[T]{
		server: srv,
		codec:  c,
		opts:   *o,
		desc: source.Description{
			Cluster:      o.Cluster,
			Resource:     gvr.GroupResource().String(),
			Scope:        o.scope(),
			InitialState: !o.WithoutInitialState,
		},
	}, nil
}

// Describe returns the description of the source.
func (s *Source[T]) Describe() source.Description { return s.desc }

// resolve returns the kind and the resource of the Go type t.
func resolve(t reflect.Type, o *Options) (gvk schema.GroupVersionKind, gvr schema.GroupVersionResource, err error) {
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return gvk, gvr, errors.New("the type must be a pointer to a struct, such as *corev1.Pod; use kube.Dynamic for " +
			"objects of any kind")
	}
	zero := reflect.New(t.Elem()).Interface().(runtime.Object)
	switch zero.(type) {
	case runtime.Unstructured:
		return gvk, gvr, errors.New("use kube.Dynamic for unstructured objects")
	case *metav1.PartialObjectMetadata:
		return gvk, gvr, errors.New("use kube.Metadata for the metadata alone")
	}
	if _, ok := zero.(metav1.ObjectMetaAccessor); !ok || meta.IsListType(zero) {
		return gvk, gvr, errors.New("the type has no ObjectMeta of its own; give the type of one object, not of a list " +
			"or an option")
	}
	kinds, _, err := o.Scheme.ObjectKinds(zero)
	if err != nil {
		return gvk, gvr, fmt.Errorf("the type is not registered; register it with its AddToScheme and pass that scheme "+
			"with Options.Scheme: %w", err)
	}
	if o.Resource.Empty() {
		gvr, _ = meta.UnsafeGuessKindToResource(kinds[0])
		return kinds[0], gvr, nil
	}
	for _, k := range kinds {
		if k.GroupVersion() == o.Resource.GroupVersion() {
			return k, o.Resource, nil
		}
	}
	return gvk, gvr, fmt.Errorf("Options.Resource asks for %s, but the type is registered as %s; use the type of that "+
		"version", o.Resource.GroupVersion(), kinds[0].GroupVersion())
}
