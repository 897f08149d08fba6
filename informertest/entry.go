package informertest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mirador-k8s/mirador/object"
)

// entry is one state of one object. It never changes after it was made, so any number of requests may read it without
// a lock.
type entry struct {
	resource        *resource
	key             object.Key
	namespace, name string
	uid             string
	version         uint64
	labels          labels.Set
	finalizers      bool
	deleting        bool
	// corrupt objects are sent in a form that no client can decode, like an object that a broken webhook stored.
	corrupt bool
	// body is the object's JSON without apiVersion and kind, which are spliced in for the verbs that include them.
	body []byte
	// protobuf is encoded from body when it is first needed.
	protobuf atomic.Pointer[[]byte]
}

// newEntry encodes an object. The object is not kept.
func newEntry(r *resource, obj metav1.Object) (*entry, error) {
	version, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %q: version %q: %w", r.kind, obj.GetName(), obj.GetResourceVersion(), err)
	}
	body, err := bodyOf(obj)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %q: %w", r.kind, obj.GetName(), err)
	}
	return &entry{
		resource: r, body: body, version: version,
		key:       object.NewKey(obj.GetNamespace(), obj.GetName()),
		namespace: obj.GetNamespace(), name: obj.GetName(), uid: string(obj.GetUID()),
		labels: labels.Set(obj.GetLabels()), finalizers: len(obj.GetFinalizers()) > 0,
		deleting: obj.GetDeletionTimestamp() != nil,
	}, nil
}

// bodyOf returns an object's JSON without apiVersion and kind.
func bodyOf(obj metav1.Object) ([]byte, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		content := make(map[string]any, len(u.Object))
		for k, v := range u.Object {
			if k != "apiVersion" && k != "kind" {
				content[k] = v
			}
		}
		return json.Marshal(content)
	}
	if o, ok := obj.(runtime.Object); ok {
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return json.Marshal(obj)
}

// decode returns the object: typed if the scheme knows its kind, unstructured otherwise. The caller owns it.
func (e *entry) decode() (metav1.Object, error) {
	if !e.resource.typed {
		return e.unstructured()
	}
	obj, err := scheme.Scheme.New(e.resource.gvk())
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(e.body, obj); err != nil {
		return nil, err
	}
	return meta.Accessor(obj)
}

func (e *entry) unstructured() (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(e.document(form{})); err != nil {
		return nil, fmt.Errorf("decoding %s %q: %w", e.resource.kind, e.key, err)
	}
	return u, nil
}

// withVersion returns the same state with another version.
func (e *entry) withVersion(version uint64) (*entry, error) {
	obj, err := e.decode()
	if err != nil {
		return nil, err
	}
	obj.SetResourceVersion(strconv.FormatUint(version, 10))
	return newEntry(e.resource, obj)
}

// message returns the object as protobuf, without the envelope.
func (e *entry) message() []byte {
	if b := e.protobuf.Load(); b != nil {
		return *b
	}
	obj, err := e.decode()
	if err != nil {
		panic(fmt.Sprintf("informertest: stored %s %q does not decode: %v", e.resource.kind, e.key, err))
	}
	b := marshal(obj.(runtime.ProtobufMarshaller))
	e.protobuf.Store(&b)
	return b
}

// metadata returns the object's metadata, for PartialObjectMetadata.
func (e *entry) metadata() (raw json.RawMessage, decoded metav1.ObjectMeta) {
	var part struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(e.body, &part); err != nil {
		panic(fmt.Sprintf("informertest: stored %s %q does not decode: %v", e.resource.kind, e.key, err))
	}
	if err := json.Unmarshal(part.Metadata, &decoded); err != nil {
		panic(fmt.Sprintf("informertest: metadata of stored %s %q does not decode: %v", e.resource.kind, e.key, err))
	}
	return part.Metadata, decoded
}

// bookmark returns the object of a bookmark, which has only a kind and a version.
func bookmark(r *resource, version uint64, initialEnd bool) (*entry, error) {
	var obj metav1.Object = &unstructured.Unstructured{Object: map[string]any{}}
	if r.typed {
		typed, err := scheme.Scheme.New(r.gvk())
		if err != nil {
			return nil, err
		}
		if obj, err = meta.Accessor(typed); err != nil {
			return nil, err
		}
	}
	obj.SetResourceVersion(strconv.FormatUint(version, 10))
	if initialEnd {
		obj.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return newEntry(r, obj)
}

func marshal(m runtime.ProtobufMarshaller) []byte {
	b := make([]byte, m.Size())
	n, err := m.MarshalTo(b)
	if err != nil {
		panic(fmt.Sprintf("informertest: encoding %T as protobuf: %v", m, err))
	}
	return b[:n]
}
