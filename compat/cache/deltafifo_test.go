package cache_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/mirador-k8s/mirador/compat/cache"
)

type item struct {
	name  string
	value int
}

func itemKey(obj any) (string, error) { return obj.(item).name, nil }

func ExampleNewDeltaFIFOWithOptions() {
	q := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KeyFunction: itemKey})
	_ = q.Add(item{"a", 1})
	_ = q.Update(item{"a", 2})
	_ = q.Add(item{"b", 1})
	_ = q.Delete(item{"a", 2})
	fmt.Println(q.ListKeys())
	_, _ = q.Pop(func(obj any, isInInitialList bool) error {
		for _, d := range obj.(cache.Deltas) {
			fmt.Println(d.Type, d.Object)
		}
		return nil
	})
	// Output:
	// [a b]
	// Added {a 1}
	// Updated {a 2}
	// Deleted {a 2}
}

func TestDeltaFIFOAcceptsDeltasAgainAfterProcessingFailed(t *testing.T) {
	q := cache.NewDeltaFIFO(itemKey, nil)
	if err := q.Add(item{"a", 1}); err != nil {
		t.Fatal(err)
	}
	no := errors.New("no")
	popped, err := q.Pop(func(any, bool) error { return no })
	if !errors.Is(err, no) {
		t.Fatalf("Pop returned %v", err)
	}
	if err := q.AddIfNotPresent(popped); err != nil {
		t.Fatal(err)
	}
	queued, exists, err := q.Get(item{name: "a"})
	if err != nil || !exists || len(queued.(cache.Deltas)) != 1 {
		t.Fatalf("queued again: %v, %v, %v", queued, exists, err)
	}
	// A newer delta is queued, so the failed one is outdated.
	if err := q.AddIfNotPresent(cache.Deltas{{Type: cache.Deleted, Object: item{"a", 1}}}); err != nil {
		t.Fatal(err)
	}
	if d, _, _ := q.GetByKey("a"); d.(cache.Deltas).Newest().Type != cache.Added {
		t.Errorf("the queued delta was replaced: %v", d)
	}
	for _, bad := range []any{"x", cache.Deltas{}, cache.Deltas{{Type: cache.SyncAll, Object: item{"z", 1}}}} {
		if err := q.AddIfNotPresent(bad); err == nil {
			t.Errorf("AddIfNotPresent(%v) was accepted", bad)
		}
	}
}

func TestPopOfAClosedQueueReturnsErrFIFOClosed(t *testing.T) {
	for name, q := range map[string]cache.Queue{
		"DeltaFIFO": cache.NewDeltaFIFO(itemKey, nil),
		"FIFO":      cache.NewFIFO(itemKey),
		"RealFIFO":  cache.NewRealFIFO(itemKey, cache.NewStore(itemKey), nil),
	} {
		q.Close()
		if _, err := q.Pop(func(any, bool) error { return nil }); !errors.Is(err, cache.ErrFIFOClosed) {
			t.Errorf("%s: Pop returned %v", name, err)
		}
	}
}

func TestDeltaFIFOReturnsAKeyErrorForAnObjectWithoutAKey(t *testing.T) {
	q := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{})
	if k, ok := errors.AsType[cache.KeyError](q.Add("x")); !ok || k.Obj != "x" {
		t.Errorf("error = %+v", k)
	}
}
