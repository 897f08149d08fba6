package cache_test

import (
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// The index by namespace is derived from the keys if its function is client-go's or this package's. It must have the
// same contents as an index whose function is called, whether it exists from the start or is added later.
func TestNamespaceIndexFromKeysEqualsTheIndexFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other, none := pod("b", "2"), pod("c", "3")
		other.Namespace, none.Namespace = "other", ""
		f := newFake("10", pod("a", "1"), other, none)
		calls := 0
		i := cache.NewSharedIndexInformer(f, &corev1.Pod{}, 0, cache.Indexers{
			cache.NamespaceIndex: clientgo.MetaNamespaceIndexFunc,
			"called":             func(obj any) ([]string, error) { calls++; return clientgo.MetaNamespaceIndexFunc(obj) },
		})
		start(t, i)
		if err := i.AddIndexers(cache.Indexers{"late": cache.MetaNamespaceIndexFunc}); err != nil {
			t.Fatal(err)
		}
		moved := pod("a", "11")
		f.current().Modify(moved)
		synctest.Wait()
		in := i.GetIndexer()
		for _, namespace := range []string{"web", "other", "", "nowhere"} {
			want, err := in.IndexKeys("called", namespace)
			if err != nil {
				t.Fatal(err)
			}
			for _, index := range []string{cache.NamespaceIndex, "late"} {
				got, err := in.IndexKeys(index, namespace)
				if err != nil || !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
					t.Errorf("index %s, namespace %q: %q, %v; want %q", index, namespace, got, err, want)
				}
			}
		}
		if got := in.ListIndexFuncValues("late"); len(got) != 3 {
			t.Errorf("namespaces %q", got)
		}
		if like, err := in.Index(cache.NamespaceIndex, moved); err != nil || len(like) != 1 || like[0] != any(moved) {
			t.Errorf("in the pod's namespace are %v, %v; want only the pod", like, err)
		}
		if calls == 0 {
			t.Error("the caller's index function was not called")
		}
	})
}

func TestNamespaceIndexOfAStoreWithOtherKeysUsesTheFunction(t *testing.T) {
	in := cache.NewIndexer(func(obj any) (string, error) { return "odd/" + obj.(*corev1.Pod).Name, nil },
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := in.Add(pod("a", "1")); err != nil {
		t.Fatal(err)
	}
	if got := in.ListIndexFuncValues(cache.NamespaceIndex); !slices.Equal(got, []string{"web"}) {
		t.Errorf("namespaces %q", got)
	}
}
