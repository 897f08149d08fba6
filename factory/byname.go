package factory

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/source/kube"
)

// named is a source of a resource as the Go type that a scheme has for it, which is known only at run time. It
// decodes JSON. A generic source for each type of the scheme would also work, but would be compiled into every
// program that uses a factory.
type named struct {
	*kube.Source[*kube.RawObject]
	decode func(encoded []byte) (runtime.Object, error)
}

func openNamed(f *Factory, gvk schema.GroupVersionKind, gvr schema.GroupVersionResource,
	opts *kube.Options) (source.Source[runtime.Object], error) {
	raw, err := kube.Raw(f.cfg, gvr, opts)
	if err != nil {
		return nil, err
	}
	return &named{Source: raw, decode: func(encoded []byte) (runtime.Object, error) {
		obj, err := f.set.Scheme.New(gvk)
		if err == nil {
			err = json.Unmarshal(encoded, obj)
		}
		if err != nil {
			return nil, fmt.Errorf("decode %s: %w", gvk.Kind, err)
		}
		return obj, nil
	}}, nil
}

// List opens a list.
func (n *named) List(ctx context.Context, opts source.ListOptions) (source.Lister[runtime.Object], error) {
	l, err := n.Source.List(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &namedLister{Lister: l, decode: n.decode}, nil
}

// Watch opens a watch.
func (n *named) Watch(ctx context.Context, opts source.WatchOptions) (source.Watcher[runtime.Object], error) {
	w, err := n.Source.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &namedWatcher{Watcher: w, decode: n.decode}, nil
}

// namedLister is an open list. Each Read reuses the buffer.
type namedLister struct {
	source.Lister[*kube.RawObject]
	decode func([]byte) (runtime.Object, error)
	buf    []object.Item[*kube.RawObject]
}

// Read appends the items that are available.
func (l *namedLister) Read(to []object.Item[runtime.Object]) ([]object.Item[runtime.Object], error) {
	var err error
	l.buf, err = l.Lister.Read(l.buf[:0])
	for i := range l.buf {
		to = append(to, withDecoder(&l.buf[i], l.decode))
	}
	clear(l.buf)
	return to, err
}

// namedWatcher is an open watch.
type namedWatcher struct {
	source.Watcher[*kube.RawObject]
	decode func([]byte) (runtime.Object, error)
	buf    []source.Change[*kube.RawObject]
}

// Read appends the changes that are available.
func (w *namedWatcher) Read(to []source.Change[runtime.Object]) ([]source.Change[runtime.Object], error) {
	var err error
	w.buf, err = w.Watcher.Read(w.buf[:0])
	for i := range w.buf {
		c := &w.buf[i]
		to = append(to, source.Change[runtime.Object]{
			Type: c.Type, Item: withDecoder(&c.Item, w.decode), InitialEnd: c.InitialEnd, Err: c.Err,
		})
	}
	clear(w.buf)
	return to, err
}

// withDecoder returns a raw item as a typed one. If the raw object could not be read, decoding the item returns that
// error.
func withDecoder(it *object.Item[*kube.RawObject],
	decode func([]byte) (runtime.Object, error)) object.Item[runtime.Object] {
	out := object.Item[runtime.Object]{Key: it.Key, Version: it.Version, UID: it.UID, Size: it.Size}
	raw, err := it.Object()
	switch {
	case err != nil:
		out.Decode = func([]byte) (runtime.Object, error) { return nil, err }
	case raw != nil: // nil for a bookmark
		out.Encoded, out.Decode = raw.Bytes, decode
	}
	return out
}
