package queue_test

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/queue"
)

type (
	podDeltas = queue.Deltas[Pod]
	podDelta  = queue.Delta[Pod]
)

// known is a KnownObjects that lists its keys in order.
type known map[string]Pod

func (k known) ListKeys() []string { return slices.Sorted(maps.Keys(k)) }

func (k known) GetByKey(key string) (Pod, bool, error) {
	p, ok := k[key]
	return p, ok, nil
}

func newFIFO(t *testing.T, opts queue.Options[Pod]) *queue.DeltaFIFO[Pod] {
	t.Helper()
	if opts.Key == nil {
		opts.Key = podName
	}
	f, err := queue.NewDeltaFIFO(opts)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// popAll empties the queue; each line is a key with its deltas.
func popAll(t *testing.T, f *queue.DeltaFIFO[Pod]) []string {
	t.Helper()
	var out []string
	for keys, _ := f.Depth(); keys > 0; keys, _ = f.Depth() {
		_, err := f.Pop(func(key string, d podDeltas, _ bool) error {
			line := key + ":"
			for _, one := range d {
				line += fmt.Sprintf(" %s %s/%d", one.Type, one.Object.Name, one.Object.Value)
			}
			out = append(out, line)
			return nil
		})
		ok(t, err)
	}
	if keys, deltas := f.Depth(); keys != 0 || deltas != 0 {
		t.Errorf("Depth of an empty queue = %d, %d", keys, deltas)
	}
	return out
}

// tombstones gives inferred deletions a negative value.
func tombstones(opts queue.Options[Pod]) queue.Options[Pod] {
	opts.Inferred = func(p Pod) bool { return p.Value < 0 }
	opts.Tombstone = func(key string, last Pod) Pod {
		if last.Value > 0 {
			last.Value = -last.Value
		}
		return Pod{key, last.Value}
	}
	return opts
}

func TestDeltasOfAKeyGatherAndKeysKeepTheirOrder(t *testing.T) {
	f := newFIFO(t, queue.Options[Pod]{})
	ok(t, f.Add(Pod{"a", 1}))
	ok(t, f.Add(Pod{"b", 1}))
	ok(t, f.Update(Pod{"a", 2}))
	ok(t, f.Delete(Pod{"a", 3}))
	ok(t, f.Add(Pod{"a", 4}))
	if keys, deltas := f.Depth(); keys != 2 || deltas != 5 {
		t.Errorf("Depth = %d keys, %d deltas, want 2, 5", keys, deltas)
	}
	same(t, "List", f.List(), []Pod{{"a", 4}, {"b", 1}})
	same(t, "ListKeys", f.ListKeys(), []string{"a", "b"})
	same(t, "popped", popAll(t, f), []string{"a: Added a/1 Updated a/2 Deleted a/3 Added a/4", "b: Added b/1"})
}

func TestDeleteOfUnknownObjectIsIgnored(t *testing.T) {
	f := newFIFO(t, queue.Options[Pod]{})
	ok(t, f.Delete(Pod{"a", 1}))
	same(t, "without known objects", popAll(t, f), []string(nil))
	if !f.HasSynced() {
		t.Error("not synced after a Delete, although it ends the wait for a first list")
	}
	f = newFIFO(t, queue.Options[Pod]{Known: known{"a": {"a", 1}}})
	ok(t, f.Delete(Pod{"a", 2}))
	ok(t, f.Delete(Pod{"b", 2}))
	same(t, "with known objects", popAll(t, f), []string{"a: Deleted a/2"})
}

type failingKnown struct{ known }

var errBroken = errors.New("broken")

func (failingKnown) GetByKey(string) (Pod, bool, error) { return Pod{}, false, errBroken }

func TestDeleteIsQueuedIfKnownFails(t *testing.T) {
	f := newFIFO(t, queue.Options[Pod]{Known: failingKnown{}})
	ok(t, f.Delete(Pod{"a", 1}))
	same(t, "popped", popAll(t, f), []string{"a: Deleted a/1"})
}

func TestObservedDeleteTakesPrecedenceOverInferred(t *testing.T) {
	for name, opts := range map[string]queue.Options[Pod]{
		"tombstones":          tombstones(queue.Options[Pod]{}),
		"without a tombstone": {},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFIFO(t, opts)
			ok(t, f.Add(Pod{"a", 1}))
			ok(t, f.Delete(Pod{"a", 2}))
			ok(t, f.Delete(Pod{"a", 3}))
			ok(t, f.Replace(nil, "9"))
			same(t, "seen first", popAll(t, f), []string{"a: Added a/1 Deleted a/2"})

			ok(t, f.Add(Pod{"a", 1}))
			ok(t, f.Replace(nil, "9"))
			ok(t, f.Delete(Pod{"a", 5}))
			same(t, "inferred first", popAll(t, f), []string{"a: Added a/1 Deleted a/5"})
		})
	}
}

func TestObjectWithoutKeyIsKeyError(t *testing.T) {
	f := newFIFO(t, queue.Options[Pod]{})
	_, _, getErr := f.Get(Pod{})
	_, keyErr := f.KeyOf(Pod{})
	for call, err := range map[string]error{
		"Add": f.Add(Pod{}), "Update": f.Update(Pod{}), "Delete": f.Delete(Pod{}),
		"Replace": f.Replace([]Pod{{}}, ""), "Get": getErr, "KeyOf": keyErr,
	} {
		if _, isKey := errors.AsType[queue.KeyError](err); !isKey || !strings.Contains(err.Error(), "the pod has no name") {
			t.Errorf("%s: %v", call, err)
		}
	}
	if f.HasSynced() {
		t.Error("HasSynced is true after calls that failed")
	}
}

func TestPopReturnsDeltasIfProcessFails(t *testing.T) {
	f := newFIFO(t, queue.Options[Pod]{})
	ok(t, f.Add(Pod{"a", 1}))
	d, err := f.Pop(func(string, podDeltas, bool) error { return errBroken })
	if !errors.Is(err, errBroken) {
		t.Errorf("Pop = %v", err)
	}
	ok(t, f.AddIfNotPresent("a", d))
	same(t, "popped", popAll(t, f), []string{"a: Added a/1"})

	ok(t, f.Add(Pod{"a", 2}))
	ok(t, f.AddIfNotPresent("a", d))
	same(t, "popped", popAll(t, f), []string{"a: Added a/2"})

	if err := f.AddIfNotPresent("a", nil); err == nil {
		t.Error("AddIfNotPresent accepts empty deltas")
	}
	if err := f.AddIfNotPresent("a", podDeltas{{object.Bookmark, Pod{}}}); err == nil {
		t.Error("AddIfNotPresent accepts a bookmark")
	}
}

func TestGetReturnsCopy(t *testing.T) {
	f := newFIFO(t, queue.Options[Pod]{})
	ok(t, f.Add(Pod{"a", 1}))
	d, exists, err := f.Get(Pod{"a", 0})
	ok(t, err)
	d[0].Object.Value = 99
	again, _, _ := f.GetByKey("a")
	if !exists || again[0].Object.Value != 1 {
		t.Errorf("exists %v; after a change to the copy: %v", exists, again)
	}
	if _, exists, _ := f.GetByKey("b"); exists {
		t.Error("b exists")
	}
}

func TestOldestAndNewest(t *testing.T) {
	if _, some := (podDeltas)(nil).Oldest(); some {
		t.Error("empty deltas have an oldest one")
	}
	if _, some := (podDeltas)(nil).Newest(); some {
		t.Error("empty deltas have a newest one")
	}
	d := podDeltas{{object.Added, Pod{"a", 1}}, {object.Deleted, Pod{"a", 2}}}
	first, _ := d.Oldest()
	last, _ := d.Newest()
	same(t, "ends", []podDelta{first, last}, []podDelta(d))
}

func TestPopWaitsUntilThereIsSomethingOrTheQueueIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFIFO(t, queue.Options[Pod]{})
		results := make(chan error)
		pop := func() {
			_, err := f.Pop(func(string, podDeltas, bool) error { return nil })
			results <- err
		}
		go pop()
		synctest.Wait()
		select {
		case <-results:
			t.Fatal("Pop returned from an empty queue")
		default:
		}
		ok(t, f.Add(Pod{"a", 1}))
		ok(t, <-results)
		for range 10 {
			go pop()
		}
		synctest.Wait()
		f.Close()
		for range 10 {
			if err := <-results; !errors.Is(err, queue.ErrClosed) {
				t.Errorf("Pop = %v", err)
			}
		}
		if !f.IsClosed() {
			t.Error("not closed")
		}
	})
}

func TestQueuedKeysCanBePoppedAfterClose(t *testing.T) {
	f := newFIFO(t, queue.Options[Pod]{})
	ok(t, f.Add(Pod{"a", 1}))
	f.Close()
	same(t, "popped", popAll(t, f), []string{"a: Added a/1"})
}

func TestQueueIsLockedDuringProcess(t *testing.T) {
	f := newFIFO(t, queue.Options[Pod]{})
	ok(t, f.Add(Pod{"a", 1}))
	begun, added := make(chan struct{}), make(chan struct{})
	_, err := f.Pop(func(string, podDeltas, bool) error {
		go func() {
			close(begun)
			_ = f.Add(Pod{"b", 1})
			close(added)
		}()
		<-begun
		for range 1000 { // gives Add many chances
			runtime.Gosched()
			select {
			case <-added:
				t.Error("Add returned while Pop was processing")
				return nil
			default:
			}
		}
		return nil
	})
	ok(t, err)
	<-added
	same(t, "keys", f.ListKeys(), []string{"b"})
}

func TestInvalidOptionsAreRejected(t *testing.T) {
	if _, err := queue.NewDeltaFIFO(queue.Options[Pod]{}); err == nil || !strings.Contains(err.Error(), "Options.Key") {
		t.Errorf("NewDeltaFIFO without Key: %v", err)
	}
	if _, err := newFIFO(t, queue.Options[Pod]{}).Pop(nil); err == nil {
		t.Error("Pop accepts a nil function")
	}
}

func TestManyProducersLoseNothingAndKeepTheirOrder(t *testing.T) {
	f := newFIFO(t, queue.Options[Pod]{})
	const producers, each = 4, 2000
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := range each {
				_ = f.Update(Pod{fmt.Sprintf("%d-%d", p, i%17), i})
			}
		})
	}
	go func() { wg.Wait(); f.Close() }()
	last := map[string]int{}
	total := 0
	for {
		_, err := f.Pop(func(key string, d podDeltas, _ bool) error {
			for _, one := range d {
				if prev, seen := last[key]; seen && one.Object.Value <= prev {
					t.Errorf("%s: %d after %d", key, one.Object.Value, prev)
				}
				last[key] = one.Object.Value
				total++
			}
			return nil
		})
		if errors.Is(err, queue.ErrClosed) {
			break
		}
	}
	if total != producers*each {
		t.Errorf("popped %d deltas of %d", total, producers*each)
	}
}
