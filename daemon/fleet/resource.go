package fleet

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/source/kube"
	"github.com/mirador-k8s/mirador/store"
)

// Object is an object as its cluster sent it: JSON with apiVersion and kind.
type Object = kube.RawObject

// Entry is one mirrored object.
type Entry = store.Entry[*Object]

// Snapshot is a resource at one moment.
type Snapshot = store.Snapshot[*Object]

// Event is one change, told to a handler.
type Event = object.Event[*Entry]

// Subscription is a handler's tie to a resource: Remove ends it, HasSynced says whether
// the handler has been given the initial state.
type Subscription = *informer.Subscription[*Object]

// HandlerOptions configure a subscription.
type HandlerOptions = informer.HandlerOptions

// Bytes appends the JSON of an entry to dst.
func Bytes(e *Entry, dst []byte) []byte {
	if out, ok := e.AppendEncoded(dst); ok {
		return out
	}
	return append(dst, e.Object().Bytes...)
}

// Resource is one mirrored resource of one cluster. Reading it asks nothing of the
// cluster. It stays readable, and is empty, when it is no longer mirrored.
type Resource struct {
	gvr  schema.GroupVersionResource
	info atomic.Pointer[metav1.APIResource]
	inf  *mirror[*Object]
	hide *hider
}

// openResource begins to mirror a resource.
func openResource(l *link, info *metav1.APIResource) (*Resource, error) {
	r := &Resource{gvr: gvrOf(info), hide: l.hide}
	r.info.Store(info)
	values := noNamespace
	if info.Namespaced {
		values = byNamespace
	}
	var err error
	r.inf, err = openMirror(l, r.gvr, "raw", kube.Raw, func(inf *informer.Informer[*Object]) error {
		return cmp.Or(inf.AddIndex(NamespaceIndex, values), inf.AddIndex(LabelIndex, byLabel))
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// close ends the mirror.
func (r *Resource) close() { r.inf.stop() }

// Info is what discovery says of the resource, with the verbs get, list and watch.
func (r *Resource) Info() metav1.APIResource { return *r.info.Load().DeepCopy() }

// GVR is the resource's name.
func (r *Resource) GVR() schema.GroupVersionResource { return r.gvr }

// GVK is the kind of its objects.
func (r *Resource) GVK() schema.GroupVersionKind {
	return r.gvr.GroupVersion().WithKind(r.info.Load().Kind)
}

// Synced reports whether the initial state is there.
func (r *Resource) Synced() bool { return r.inf.HasSynced() }

// Refused reports whether the cluster has answered that it will not show the resource: it denies the request, or does
// not serve it after all. To wait for such a resource is of little use.
func (r *Resource) Refused() bool {
	err := r.health().Reflector.Err
	if err == nil {
		return false
	}
	switch source.ReasonOf(err) {
	case source.Denied, source.NotServed, source.Unsupported:
		return true
	}
	return false
}

// Done is closed when the resource is no longer mirrored: the cluster does not serve it
// any more, or has left, or there was more of it than the limits allow. In the last case
// the cluster has another Resource of its name soon, which tries again after a while.
func (r *Resource) Done() <-chan struct{} { return r.inf.over }

// Snapshot gives one consistent moment. It has the indexes NamespaceIndex and
// LabelIndex.
func (r *Resource) Snapshot() *Snapshot { return r.inf.Snapshot() }

// Entry gives one object.
func (r *Resource) Entry(key object.Key) (*Entry, bool) { return r.inf.Reader().Entry(key) }

// Since replays the changes after a version; its error wraps store.ErrGone where they
// are not known any more.
func (r *Resource) Since(v object.Version) (iter.Seq[store.LogEntry[*Object]], error) {
	seq, err := r.inf.Reader().Since(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.gvr.GroupResource(), err)
	}
	return seq, nil
}

// WaitVersion waits until the mirror has everything up to a version.
func (r *Resource) WaitVersion(ctx context.Context, v object.Version) error {
	return r.inf.WaitVersion(ctx, v)
}

// Subscribe adds a handler. It first gets what is mirrored, marked initial, then
// everything that happens, in order. The event is good for the time of the call; its
// entries may be kept. The subscription ends with the resource, without a word to the
// handler: see Done.
func (r *Resource) Subscribe(handle func(*Event), opts *HandlerOptions) (Subscription, error) {
	return r.inf.SubscribeEntries(handle, opts)
}

// Health tells how the mirror is doing. The text of its error is fit to be shown to anybody: it says what
// kind of failure it was, and nothing that the cluster sent.
func (r *Resource) Health() informer.Health {
	h := r.health()
	if h.Reflector.Err != nil {
		h.Reflector.Err = r.hide.error(r.hide.fault("", h.Reflector.Err))
	}
	return h
}

// health is Health with errors as they are.
func (r *Resource) health() informer.Health {
	h := r.inf.Health()
	if err := r.inf.gauge.overrun(); err != nil {
		h.Reflector.Err = err // it has ended, and another is on its way
	}
	return h
}
