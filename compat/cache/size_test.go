package cache_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/object"
)

// plainObject is a type without generated code, like those of many custom resources.
type plainObject struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec struct {
		Notes map[string][]string
	}
}

func (o *plainObject) DeepCopyObject() runtime.Object { c := *o; return &c }

// TestHistoryIsBoundedByBytes sends changes of large objects of every kind and counts the changes in the history.
func TestHistoryIsBoundedByBytes(t *testing.T) {
	const text, bound, changes = 10_000, 64 << 10, 200
	large := strings.Repeat("x", text)
	for name, make := range map[string]func(rv string) runtime.Object{
		"generated": func(rv string) runtime.Object {
			p := pod("a", rv)
			p.Annotations = map[string]string{"text": large}
			return p
		},
		"unstructured": func(rv string) runtime.Object {
			return &unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"namespace": "web", "name": "a", "resourceVersion": rv},
				"spec":     map[string]any{"notes": []any{large}},
			}}
		},
		"plain": func(rv string) runtime.Object {
			o := &plainObject{ObjectMeta: pod("a", rv).ObjectMeta}
			o.Spec.Notes = map[string][]string{"text": {large}}
			return o
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake("10")
				i := cache.With(cache.Options{HistoryBytes: bound}).NewSharedIndexInformer(f, make(""), 0, nil)
				start(t, i)
				for n := range changes {
					f.current().Modify(make(fmt.Sprint(100 + n)))
					synctest.Wait()
				}
				engine, _ := cache.Engine(i)
				entries := 0
				for v := 100 + changes - 1; v >= 100; v-- { // find the oldest version in the history
					since, err := engine.Reader().Since(object.Version(fmt.Sprint(v)))
					if err != nil {
						break
					}
					entries = 0
					for range since {
						entries++
					}
				}
				if entries == 0 || entries*text > bound {
					t.Errorf("a history of %d bytes has %d changes of an object of %d bytes", bound, entries, text)
				}
			})
		})
	}
}
