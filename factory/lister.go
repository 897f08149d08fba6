package factory

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source/kube"
	"github.com/mirador-k8s/mirador/store"
)

// ErrNotSynced is wrapped by the error of a read before the initial state is stored: a missing object may exist.
var ErrNotSynced = errors.New("the mirror is not synced yet, or is stopped; WaitForSync waits for it")

// namespaceIndex is the name of the index by namespace. The index is added when it is first needed.
const namespaceIndex = "mirador:namespace"

// Lister reads the objects that a handle mirrors. Objects are shared by all readers: treat them as read-only. A lister
// stays valid after a stop and a new start.
type Lister[T any] struct{ h *Handle[T] }

// Get returns one object. If the object does not exist, the error satisfies apierrors.IsNotFound; before the sync it
// wraps ErrNotSynced instead.
func (l *Lister[T]) Get(namespace, name string) (T, error) {
	var none T
	parts, err := l.h.use("read")
	if err != nil {
		return none, err
	}
	p, err := covering(parts, namespace)
	if err != nil {
		return none, l.fail("get", object.NewKey(namespace, name), err)
	}
	inf := p.current.Load()
	key := object.NewKey(namespace, name)
	if obj, ok := inf.Get(key); ok {
		return obj, nil
	}
	if !inf.HasSynced() {
		return none, l.fail("get", key, ErrNotSynced)
	}
	// The object may have been stored between Get and HasSynced.
	if obj, ok := inf.Get(key); ok {
		return obj, nil
	}
	return none, l.fail("get", key, apierrors.NewNotFound(l.h.gvr.GroupResource(), name))
}

// List returns the objects whose labels match, in no particular order. A nil selector means labels.Everything().
func (l *Lister[T]) List(selector labels.Selector) ([]T, error) {
	parts, err := l.h.use("read")
	if err != nil {
		return nil, err
	}
	var out []T
	for _, p := range parts {
		snap, err := p.snapshot()
		if err != nil {
			return nil, l.fail("list", "", err)
		}
		if out == nil {
			out = make([]T, 0, snap.Len())
		}
		for _, obj := range snap.All() {
			if out, err = appendMatching(out, obj, selector); err != nil {
				return nil, l.fail("list", "", err)
			}
		}
	}
	return out, nil
}

// ByIndex returns the objects with a value in an index, in no particular order. If the index does not exist, the error
// names the existing ones.
func (l *Lister[T]) ByIndex(name, value string) ([]T, error) {
	parts, err := l.h.use("read")
	if err != nil {
		return nil, err
	}
	var out []T
	for _, p := range parts {
		snap, err := p.snapshot()
		if err != nil {
			return nil, l.fail("list", "", err)
		}
		x, err := snap.Index(name)
		if err != nil {
			return nil, l.fail("list", "", err)
		}
		for obj := range x.Get(value) {
			out = append(out, obj)
		}
	}
	return out, nil
}

// InNamespace returns a lister of the objects of one namespace.
func (l *Lister[T]) InNamespace(namespace string) *NamespaceLister[T] {
	return &NamespaceLister[T]{all: l, namespace: namespace}
}

// NamespaceLister reads the objects of one namespace.
type NamespaceLister[T any] struct {
	all       *Lister[T]
	namespace string
}

// Get is Lister.Get within the namespace.
func (l *NamespaceLister[T]) Get(name string) (T, error) { return l.all.Get(l.namespace, name) }

// List is Lister.List within the namespace.
func (l *NamespaceLister[T]) List(selector labels.Selector) ([]T, error) {
	if l.namespace == metav1.NamespaceAll {
		return l.all.List(selector)
	}
	fail := func(err error) ([]T, error) { return nil, l.all.fail("list", object.Key(l.namespace+"/*"), err) }
	parts, err := l.all.h.use("read")
	if err != nil {
		return nil, err
	}
	p, err := covering(parts, l.namespace)
	if err != nil {
		return fail(err)
	}
	x, err := p.byNamespace()
	if err != nil {
		return fail(err)
	}
	out := make([]T, 0, x.Len(l.namespace))
	for obj := range x.Get(l.namespace) {
		if out, err = appendMatching(out, obj, selector); err != nil {
			return fail(err)
		}
	}
	return out, nil
}

func (l *Lister[T]) fail(verb string, key object.Key, err error) error {
	return fmt.Errorf("%s from the mirror of %s: %w", strings.TrimSpace(verb+" "+string(key)), fullName(l.h.gvr), err)
}

// covering returns the informer that covers a namespace.
func covering[T any](parts []*shared[T], namespace string) (*shared[T], error) {
	for _, p := range parts {
		if p.key.namespace == metav1.NamespaceAll || p.key.namespace == namespace {
			return p, nil
		}
	}
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.key.namespace
	}
	return nil, fmt.Errorf("namespace %q is not mirrored here, only %s; open the resource with a scope that includes it",
		namespace, strings.Join(names, ", "))
}

// snapshot returns a snapshot, or ErrNotSynced if the state is not complete.
func (s *shared[T]) snapshot() (*store.Snapshot[T], error) {
	inf := s.current.Load()
	if !inf.HasSynced() {
		return nil, ErrNotSynced
	}
	return inf.Snapshot(), nil
}

// byNamespace returns the index by namespace of a snapshot. The first call adds the index.
func (s *shared[T]) byNamespace() (x store.Index[T], err error) {
	snap, err := s.snapshot()
	if err != nil {
		return x, err
	}
	if x, err := snap.Index(namespaceIndex); err == nil {
		return x, nil
	}
	s.mu.Lock()
	err = s.addIndex(namespaceIndex, index[T]{values: store.ByNamespace[T]()})
	s.mu.Unlock()
	if err != nil {
		return x, err
	}
	if snap, err = s.snapshot(); err != nil {
		return x, err
	}
	return snap.Index(namespaceIndex)
}

// appendMatching appends an object if the selector matches it.
func appendMatching[T any](to []T, obj T, selector labels.Selector) ([]T, error) {
	if selector == nil || selector.Empty() {
		return append(to, obj), nil
	}
	set, err := labelsOf(obj)
	if err != nil {
		return to, err
	}
	if selector.Matches(labels.Set(set)) {
		to = append(to, obj)
	}
	return to, nil
}

// labelsOf returns the labels of an object. Those of raw JSON are decoded each time: prefer an index to select raw
// objects.
func labelsOf(obj any) (labels map[string]string, err error) {
	switch o := obj.(type) {
	case metav1.Object:
		return o.GetLabels(), nil
	case *kube.RawObject:
		var head struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
		}
		err := json.Unmarshal(o.Bytes, &head)
		return head.Metadata.Labels, err
	}
	return nil, fmt.Errorf("a %T has no metadata", obj)
}
