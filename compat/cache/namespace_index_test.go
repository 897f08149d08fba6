package cache_test

import (
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// client-go's index by namespace, which is taken from the keys, is what the function itself
// would make of the objects: given at the start and added later, by either name, and beside a function of
// somebody's own.
func TestTheIndexByNamespaceIsWhatItsFunctionSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other, none := pod("b", "2"), pod("c", "3")
		other.Namespace, none.Namespace = "other", ""
		f := holding("10", pod("a", "1"), other, none)
		calls := 0
		i := cache.NewSharedIndexInformer(f, &corev1.Pod{}, 0, cache.Indexers{
			cache.NamespaceIndex: clientgo.MetaNamespaceIndexFunc,
			"called":             func(obj any) ([]string, error) { calls++; return clientgo.MetaNamespaceIndexFunc(obj) },
		})
		started(t, i)
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
					t.Errorf("%s of %q: %q, want %q; %v", index, namespace, got, want, err)
				}
			}
		}
		if got := in.ListIndexFuncValues("late"); len(got) != 3 {
			t.Errorf("namespaces %q", got)
		}
		if like, err := in.Index(cache.NamespaceIndex, moved); err != nil || len(like) != 1 || like[0] != any(moved) {
			t.Errorf("beside the pod are %v, %v", like, err)
		}
		if calls == 0 {
			t.Error("a function of somebody's own was not called")
		}
	})
}

// A store whose keys are its owner's affair asks the function.
func TestAStoreWithKeysOfItsOwnIsNotIndexedByThem(t *testing.T) {
	in := cache.NewIndexer(func(obj any) (string, error) { return "odd/" + obj.(*corev1.Pod).Name, nil },
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := in.Add(pod("a", "1")); err != nil {
		t.Fatal(err)
	}
	if got := in.ListIndexFuncValues(cache.NamespaceIndex); !slices.Equal(got, []string{"web"}) {
		t.Errorf("namespaces %q", got)
	}
}
