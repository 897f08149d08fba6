package fleet

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/disk"
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

// Snapshot is a resource at one commit.
type Snapshot = store.Snapshot[*Object]

// Event is one change, as a handler receives it.
type Event = object.Event[*Entry]

// Subscription is the subscription of a handler to a resource. Remove ends it, and
// HasSynced reports whether the handler has received the initial state.
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

// Resource is one mirrored resource of one cluster. Reading it sends no request to the
// cluster. When it is no longer mirrored, it is empty and can still be read.
type Resource struct {
	gvr    schema.GroupVersionResource
	info   atomic.Pointer[metav1.APIResource]
	inf    *mirror[*Object]
	redact *redactor

	fingerprint   string           // of the rules by which objects are redacted
	reading       *reading         // of the restored state; nil if there is none
	before        *restoredChanges // the changes that led to the restored state; nil if there is none
	cluster       string
	secretsOnDisk bool
	disk          *disk.Disk // nil if nothing is kept
	writtenSeq    atomic.Uint64
	written       atomic.Pointer[time.Time] // until when the disk has all changes; nil if this process has written nothing
	order         atomic.Pointer[writtenOrder]
}

// The indexes of all mirrors, of resources with and without namespaces.
var (
	namespacedIndexes = informer.Indexes[*Object]{NamespaceIndex: store.ByNamespace[*Object](), labelIndex: byLabel}
	clusterIndexes    = informer.Indexes[*Object]{NamespaceIndex: noNamespace, labelIndex: byLabel}
)

// openResource starts to mirror a resource.
func openResource(l *clusterClient, info *metav1.APIResource) (*Resource, error) {
	r := &Resource{gvr: gvrOf(info), redact: l.redact, cluster: l.cluster, disk: l.options.Disk,
		secretsOnDisk: l.options.DiskSecrets}
	r.info.Store(info)
	values := clusterIndexes
	if info.Namespaced {
		values = namespacedIndexes
	}
	var transform func(*Object) (*Object, error)
	rules := redactionsOf(l.options.redactions, r.gvr.GroupResource())
	if rules != nil {
		transform = rules.transform
	}
	var err error
	r.fingerprint = rules.fingerprint()
	opts := &informer.Options[*Object]{Transform: transform, Indexes: values, Codec: kube.RawCodec()}
	if saved := l.saved.take(r.gvr, r.fingerprint); saved != nil {
		opts.StartFrom, r.reading, r.before = saved.state, saved.reading, saved.changes
	}
	r.inf, err = openMirror(l, r.gvr, "raw", kube.Raw, opts, nil)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// close ends the mirror.
func (r *Resource) close() { r.inf.stop() }

// Info returns the resource's discovery data, with the verbs get, list and watch.
func (r *Resource) Info() metav1.APIResource { return *r.info.Load().DeepCopy() }

// GVR returns the resource's group, version and name.
func (r *Resource) GVR() schema.GroupVersionResource { return r.gvr }

// GVK returns the kind of its objects.
func (r *Resource) GVK() schema.GroupVersionKind {
	return r.gvr.GroupVersion().WithKind(r.info.Load().Kind)
}

// Synced reports whether the initial state has been read.
func (r *Resource) Synced() bool { return r.inf.HasSynced() }

// Restored reports whether the state is from disk and the cluster has not confirmed it yet. The last-event age in Health
// then says how old the state is.
func (r *Resource) Restored() bool { return r.inf.Health().Reflector.Restored }

// watched reports whether the cluster sends the changes at present.
func (r *Resource) watched() bool {
	h := r.inf.Health()
	return h.Synced && follows(&h)
}

// Refused reports whether the cluster refuses to list the resource: it denies the request, or does not serve the
// resource after all. There is little use in waiting for such a resource.
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

// Done returns a channel that is closed when the resource is no longer mirrored: the
// cluster does not serve it any more, or has left, or the resource exceeded a limit. In the
// last case the cluster soon has another Resource of its name, which is retried later.
func (r *Resource) Done() <-chan struct{} { return r.inf.over }

// Snapshot returns a snapshot of the mirror. It has the index NamespaceIndex, and the
// index "label" with values name=value.
func (r *Resource) Snapshot() *Snapshot { return r.inf.Snapshot() }

// Entry returns the entry of one object.
func (r *Resource) Entry(key object.Key) (*Entry, bool) { return r.inf.Reader().Entry(key) }

// restoredSeq returns the sequence number of the commit with the restored state. ok is false if nothing was restored, or
// the changes since then are not known.
func (r *Resource) restoredSeq() (seq uint64, ok bool) {
	if r.before == nil || r.inf.Health().Epoch != 0 {
		return 0, false
	}
	snap := r.inf.Snapshot() // before the log is read
	log, err := r.inf.Reader().Since(r.before.upTo)
	if err != nil || snap.Version().Before(r.before.upTo) {
		return 0, false
	}
	for l := range log {
		return l.Seq - 1, true
	}
	return snap.Seq(), true
}

// Since returns the changes after a version. Its error wraps store.ErrGone if they are no
// longer known.
func (r *Resource) Since(v object.Version) (iter.Seq[store.LogEntry[*Object]], error) {
	log, err := r.inf.Reader().Since(v)
	if errors.Is(err, store.ErrGone) {
		if before, ok := r.before.since(v); ok {
			// After a reset of the cluster's history, what the disk has does not lead to what follows.
			log, err = r.inf.Reader().Since(r.before.upTo)
			if err == nil && r.inf.Health().Epoch == 0 {
				return concat(before, log), nil
			}
			err = errors.Join(err, store.ErrGone)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.gvr.GroupResource(), err)
	}
	return log, nil
}

// After returns the changes of the commits after a sequence number, which is one of a snapshot or of an earlier call.
// Its error wraps store.ErrGone if they are no longer known.
func (r *Resource) After(seq uint64) (store.Commits[*Object], error) {
	commits, err := r.inf.Reader().After(seq)
	if err != nil {
		return commits, fmt.Errorf("%s: %w", r.gvr.GroupResource(), err)
	}
	return commits, nil
}

// WaitVersion waits until the mirror has everything up to a version.
func (r *Resource) WaitVersion(ctx context.Context, v object.Version) error {
	return r.inf.WaitVersion(ctx, v)
}

// Subscribe adds a handler. It first receives the mirrored objects, marked initial, then
// all changes, in order. An event is valid only during the call; its entries may be kept.
// The subscription ends with the resource, and the handler is not notified; see Done.
func (r *Resource) Subscribe(handle func(*Event), opts *HandlerOptions) (Subscription, error) {
	return r.inf.SubscribeEntries(handle, opts)
}

// Health returns the health of the mirror. The text of its error has only the kind of the failure and nothing that
// the cluster sent, so it may be shown to every client.
func (r *Resource) Health() informer.Health {
	h := r.health()
	if h.Reflector.Err != nil {
		h.Reflector.Err = r.redact.error(r.redact.requestError("", h.Reflector.Err))
	}
	return h
}

// health is Health with the original error.
func (r *Resource) health() informer.Health {
	h := r.inf.Health()
	if err := r.inf.usage.limitError(); err != nil {
		h.Reflector.Err = err // the mirror has ended and will be replaced
	}
	return h
}
