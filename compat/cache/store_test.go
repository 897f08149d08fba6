package cache_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/compat/cache"
)

func byName(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Name}, nil }

func TestObjectIsStoredThoughAnIndexFunctionFailsOrPanics(t *testing.T) {
	s := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		"fails":  func(any) ([]string, error) { return nil, errors.New("no") },
		"panics": func(any) ([]string, error) { panic("no") },
		"works":  byName,
	})
	if err := s.Add(pod("a", "1")); err != nil {
		t.Fatal(err)
	}
	for index, want := range map[string]int{"fails": 0, "panics": 0, "works": 1} {
		if got, err := s.ByIndex(index, "a"); err != nil || len(got) != want {
			t.Errorf("ByIndex(%s) = %d objects, %v; want %d", index, len(got), err, want)
		}
	}
	if _, exists, _ := s.GetByKey("web/a"); !exists {
		t.Error("the object is not stored")
	}
}

func TestIndexWithoutNameOrFunctionIsIgnored(t *testing.T) {
	s := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"": byName, "nil": nil, "works": byName})
	if got := s.GetIndexers(); len(got) != 1 || got["works"] == nil {
		t.Errorf("indexers = %v", got)
	}
}

func TestReadByAnUnknownIndexIsAnError(t *testing.T) {
	s := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	_, err1 := s.ByIndex("x", "a")
	_, err2 := s.IndexKeys("x", "a")
	_, err3 := s.Index("x", pod("a", "1"))
	for _, err := range []error{err1, err2, err3} {
		if err == nil || err.Error() != "Index with name x does not exist" {
			t.Errorf("error = %v", err)
		}
	}
	if got := s.ListIndexFuncValues("x"); len(got) != 0 {
		t.Errorf("values of an unknown index = %v", got)
	}
}

func TestAddIndexersAddsAllOrNone(t *testing.T) {
	s := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"name": byName})
	if err := s.Add(pod("a", "1")); err != nil {
		t.Fatal(err)
	}
	if err := s.AddIndexers(cache.Indexers{"new": byName, "name": byName}); err == nil {
		t.Error("an existing name was accepted")
	}
	if err := s.AddIndexers(cache.Indexers{"new": byName, "nil": nil}); err == nil {
		t.Error("an index without a function was accepted")
	}
	if got := s.GetIndexers(); len(got) != 1 {
		t.Errorf("indexers after failures = %v", got)
	}
	if err := s.AddIndexers(cache.Indexers{"new": byName}); err != nil {
		t.Fatal(err)
	}
	if keys, err := s.IndexKeys("new", "a"); err != nil || !slices.Equal(keys, []string{"web/a"}) {
		t.Errorf("keys of the stored object in the new index: %v, %v", keys, err)
	}
}

func TestStoreHasTheVersionOfTheLastWrite(t *testing.T) {
	s := cache.NewStore(cache.MetaNamespaceKeyFunc)
	check := func(doing string, err error, want string) {
		t.Helper()
		if got := s.LastStoreSyncResourceVersion(); err != nil || got != want {
			t.Errorf("after %s: version %q, %v; want %q", doing, got, err, want)
		}
	}
	check("nothing", nil, "")
	check("add", s.Add(pod("a", "7")), "7")
	check("update", s.Update(pod("a", "3")), "3") // it may decrease
	check("delete", s.Delete(pod("a", "9")), "9")
	check("replace", s.Replace([]any{pod("b", "1")}, "20"), "20")
	s.Bookmark("25")
	check("bookmark", nil, "25")
}

func TestStoreReturnsAKeyErrorForAnObjectWithoutAKey(t *testing.T) {
	s := cache.NewStore(cache.MetaNamespaceKeyFunc)
	for doing, err := range map[string]error{
		"add": s.Add("x"), "update": s.Update("x"), "delete": s.Delete("x"), "replace": s.Replace([]any{"x"}, "1"),
	} {
		if k, ok := errors.AsType[cache.KeyError](err); !ok || k.Obj != "x" {
			t.Errorf("%s: error %v", doing, err)
		}
	}
	if _, _, err := s.Get("x"); err == nil {
		t.Error("get: no error")
	}
}

func TestReaderNeverSeesAnIncompleteTransaction(t *testing.T) {
	s := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"rv": func(obj any) ([]string, error) {
		return []string{obj.(*corev1.Pod).ResourceVersion}, nil
	}})
	write := func(rv string) {
		if err := s.(cache.TransactionStore).Transaction(
			cache.Transaction{Type: cache.TransactionTypeUpdate, Object: pod("a", rv)},
			cache.Transaction{Type: cache.TransactionTypeUpdate, Object: pod("b", rv)},
		); err != nil {
			t.Error(err)
		}
	}
	write("0")
	var readers sync.WaitGroup
	over := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				list := s.List()
				if a, b := list[0].(*corev1.Pod), list[1].(*corev1.Pod); a.ResourceVersion != b.ResourceVersion {
					t.Errorf("read version %s together with %s", a.ResourceVersion, b.ResourceVersion)
					return
				}
			}
		})
	}
	for i := range 500 {
		write(fmt.Sprint(i))
	}
	close(over)
	readers.Wait()
}
