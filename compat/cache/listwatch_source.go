package cache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientfeatures "k8s.io/client-go/features"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// lwSource adapts a ListerWatcher to the engine's source. It never writes to the
// objects of the ListerWatcher.
type lwSource struct {
	lw          ListerWatcherWithContext
	description source.Description
	expected    reflect.Type             // nil: any
	expectedGVK *schema.GroupVersionKind // of unstructured objects; nil: any
	plain       bool                     // the type alone decides whether an object is expected
	key         KeyFunc                  // for objects that do not implement metav1.Object
	// transform returns the function that is applied to each object, or nil.
	transform func() TransformFunc
	// pageSize returns the page size that the caller chose, or 0.
	pageSize func() int64
	// sizes reports that object sizes are needed for a bound in bytes, so they are estimated.
	sizes bool
	// recovers reports whether panics of the caller's functions are recovered.
	recovers func() bool
	// retriesInternalErrors reports whether a watch resumes after an internal error.
	retriesInternalErrors func() bool

	// paged: the server answered a list of any version in pages, so it has no watch
	// cache for this resource, and later lists use pages too.
	paged bool
	// whole, if set, are the options of a list whose pages expired before it was
	// complete; the next list repeats it without a limit.
	whole *metav1.ListOptions
	// cutShort counts the consecutive initial streams that ended without a bookmark.
	cutShort int
}

var _ source.Source[any] = &lwSource{}

func newSource(lw ListerWatcher, example any, describe string) *lwSource {
	s := &lwSource{
		lw:          ToListerWatcherWithContext(lw),
		description: source.Description{Resource: describe, InitialState: streams(lw)},
		expected:    reflect.TypeOf(example),
		key:         DeletionHandlingMetaNamespaceKeyFunc,
		transform:   func() TransformFunc { return nil },
		pageSize:    func() int64 { return 0 },

		retriesInternalErrors: func() bool { return false },
		recovers:              func() bool { return true },
	}
	if lw == nil {
		s.lw = noListerWatcher{}
	}
	switch example.(type) {
	case nil, *unstructured.Unstructured, *unstructured.UnstructuredList:
	default:
		s.plain = true
	}
	if u, ok := example.(*unstructured.Unstructured); ok && u != nil {
		if gvk := u.GroupVersionKind(); !gvk.Empty() {
			s.expectedGVK = &gvk
		}
	}
	return s
}

// streams reports whether a ListerWatcher supports a watch with an initial state. It has
// to state so, because it may be a fake watcher that never sends the bookmark at the
// end. Client-go's environment variable, if set, applies to all of them.
func streams(lw ListerWatcher) bool {
	if !clientfeatures.FeatureGates().Enabled(clientfeatures.WatchListClient) {
		return false
	}
	if says, ok := lw.(interface{ IsWatchListSemanticsUnSupported() bool }); ok {
		return !says.IsWatchListSemanticsUnSupported()
	}
	all, _ := strconv.ParseBool(os.Getenv("KUBE_FEATURE_" + string(clientfeatures.WatchListClient)))
	return all
}

// noListerWatcher is used in place of a nil ListerWatcher. It always fails.
type noListerWatcher struct{}

var errNoListerWatcher = errors.New("there is no ListerWatcher; pass one to the constructor")

func (noListerWatcher) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return nil, errNoListerWatcher
}

// Describe returns the description of the source.
func (s *lwSource) Describe() source.Description { return s.description }

// item fills in the item of an object. An object that cannot be transformed becomes an
// item that cannot be decoded, under its original key, so that the failure is reported
// and the store keeps its previous state.
func (s *lwSource) item(it *object.Item[any], obj runtime.Object) {
	var value any = obj
	var failed error
	if t := s.transform(); t != nil {
		if value, failed = transformed(t, obj); failed != nil {
			value = obj
		}
	}
	it.Value = value
	if m, ok := value.(metav1.Object); ok { // almost always: one type assertion for all four fields
		it.Key = object.NewKey(m.GetNamespace(), m.GetName())
		it.Version, it.UID = object.Version(m.GetResourceVersion()), string(m.GetUID())
	} else {
		key, err := s.key(value)
		if err != nil && failed == nil {
			failed = KeyError{Obj: value, Err: err}
			key, _ = s.key(obj)
		}
		it.Key = object.Key(key)
		if m, err := meta.Accessor(value); err == nil {
			it.Version, it.UID = object.Version(m.GetResourceVersion()), string(m.GetUID())
		}
	}
	if s.sizes {
		it.Size = sizeOf(value)
	}
	if err := failed; err != nil { // a new variable: failed, if captured, would be allocated for every object
		it.Value, it.Decode = nil, func([]byte) (any, error) { return nil, err }
	}
}

// transformed applies a transform. It is an error if the transform panics or returns nil.
func transformed(t TransformFunc, obj any) (out any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the transform panicked: %v", p)
		}
	}()
	out, err = t(obj)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the transform failed: %w", err)
	case isNil(out):
		return nil, errors.New("the transform returned nil; return the object, or an error")
	}
	return out, nil
}

// isNil reports whether there is no object, or a nil pointer in its place.
func isNil(obj any) bool {
	v := reflect.ValueOf(obj)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// call runs one of the caller's functions, which may ignore contexts, and stops waiting
// for it when ctx ends. If the function returns a result after that, late receives it.
// A panic is passed to the caller.
func call[R any](ctx context.Context, f func() (R, error), late func(R)) (R, error) {
	type outcome struct {
		r        R
		err      error
		panicked any
	}
	done := make(chan outcome, 1)
	var abandoned atomic.Bool
	go func() {
		var o outcome
		defer func() {
			o.panicked = recover()
			done <- o
			if abandoned.Load() && o.err == nil && o.panicked == nil && late != nil {
				select {
				case <-done:
					defer utilruntime.HandleCrashWithContext(ctx)
					late(o.r)
				default: // call returned it after all
				}
			}
		}()
		o.r, o.err = f()
	}()
	take := func(o outcome) (R, error) {
		if o.panicked != nil {
			panic(o.panicked)
		}
		return o.r, o.err
	}
	select {
	case o := <-done:
		return take(o)
	case <-ctx.Done():
	}
	abandoned.Store(true)
	select {
	case o := <-done:
		return take(o)
	default:
		var none R
		return none, context.Cause(ctx)
	}
}
