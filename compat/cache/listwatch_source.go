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

// lwSource is a ListerWatcher as a source of the engine.
//
// The objects are the caller's: they are handed on as they are, and nothing here
// writes to them.
type lwSource struct {
	lw          ListerWatcherWithContext
	description source.Description
	expected    reflect.Type             // nil: any
	expectedGVK *schema.GroupVersionKind // of unstructured objects; nil: any
	plain       bool                     // what is of the expected type is what is expected
	key         KeyFunc                  // of what has no metadata of its own
	// transform gives what is applied to each object, or nil. It may be nil itself.
	transform func() TransformFunc
	// pageSize is what the caller asked for; 0 leaves it to the rules below.
	pageSize func() int64
	// sizes says that something is bounded by the sizes of objects, so that they are estimated.
	sizes bool
	// contains says whether a panic of the caller's functions is handled here; otherwise it passes.
	contains func() bool
	// bearsInternal: a stream that ends with an internal error is opened again where
	// it was.
	bearsInternal func() bool

	// paged: a list that any version would have done for came in pages, so this
	// server has no watch cache to spare and later lists are asked for in pages too.
	paged bool
	// whole, if set, is the list whose pages expired under way; it is taken again
	// in one piece.
	whole *metav1.ListOptions
	// cutShort counts the initial streams in a row that ended without a bookmark.
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

		bearsInternal: func() bool { return false },
		contains:      func() bool { return true },
	}
	if lw == nil {
		s.lw = nothing{}
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

// streams reports whether a ListerWatcher may be asked for its state by a watch. It
// has to say so: one that says nothing may be a fake watcher that never sends the
// bookmark at the end. Whoever sets client-go's own switch by hand means all.
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

// nothing stands for a ListerWatcher that is nil.
type nothing struct{}

var errNoListerWatcher = errors.New("there is no ListerWatcher; give one when the informer or reflector is made")

func (nothing) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return nil, errNoListerWatcher
}

// Describe names the source.
func (s *lwSource) Describe() source.Description { return s.description }

// item fills in the item of an object. One that cannot be transformed becomes an item
// that cannot be decoded, under the name it came with: so what is stored of it
// stays, and the failure is reported.
func (s *lwSource) item(it *object.Item[any], obj runtime.Object) {
	var value any = obj
	var failed error
	if t := s.transform(); t != nil {
		if value, failed = transformed(t, obj); failed != nil {
			value = obj
		}
	}
	it.Value = value
	if m, ok := value.(metav1.Object); ok { // the way of nearly everything: one look at what it is, for all four
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
	if err := failed; err != nil { // a name of its own: failed would be allocated for every object
		it.Value, it.Decode = nil, func([]byte) (any, error) { return nil, err }
	}
}

// transformed contains a transform that panics or gives nothing.
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

// call runs one of the caller's functions, which may know nothing of contexts, and
// does not wait for it once ctx has ended; late gets what comes then. A panic
// passes through.
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
				default: // somebody took it after all
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
