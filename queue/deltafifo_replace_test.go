package queue_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/queue"
)

func TestReplaceDeletesQueuedAndKnownObjectsNotInList(t *testing.T) {
	f := newFIFO(t, tombstones(queue.Options[Pod]{
		EmitReplaced: true,
		Known:        known{"kept": {"kept", 1}, "lost": {"lost", 7}, "queued": {"queued", 1}},
	}))
	ok(t, f.Update(Pod{"queued", 3}))
	ok(t, f.Replace([]Pod{{"new", 1}, {"kept", 2}}, "9"))
	same(t, "popped", popAll(t, f), []string{
		"queued: Updated queued/3 Deleted queued/-3",
		"new: Replaced new/1",
		"kept: Replaced kept/2",
		"lost: Deleted lost/-7",
	})
	f = newFIFO(t, queue.Options[Pod]{})
	ok(t, f.Add(Pod{"a", 1}))
	ok(t, f.Replace([]Pod{{"b", 1}}, "9"))
	same(t, "by default", popAll(t, f), []string{"a: Added a/1 Deleted a/1", "b: Resynced b/1"})
}

func TestReplaceAfterADeleteKeepsBoth(t *testing.T) {
	f := newFIFO(t, queue.Options[Pod]{EmitReplaced: true, Known: known{"a": {"a", 1}}})
	ok(t, f.Delete(Pod{"a", 1}))
	ok(t, f.Replace([]Pod{{"a", 2}}, "9"))
	same(t, "popped", popAll(t, f), []string{"a: Deleted a/1 Replaced a/2"})
}

func TestReplaceDeletesKeysWhoseKnownObjectIsMissing(t *testing.T) {
	var reported []error
	f := newFIFO(t, tombstones(queue.Options[Pod]{
		Known:   failingKnown{known{"a": {}}},
		OnError: func(err error) { reported = append(reported, err) },
	}))
	ok(t, f.Replace(nil, "9"))
	ok(t, f.Resync())
	same(t, "popped", popAll(t, f), []string{"a: Deleted a/0"})
	if len(reported) != 2 || !errors.Is(reported[0], errBroken) || !strings.Contains(reported[0].Error(), `"a"`) {
		t.Errorf("OnError received %v", reported)
	}
}

func TestFailedReplaceChangesNothing(t *testing.T) {
	f := newFIFO(t, queue.Options[Pod]{Transform: func(p Pod) (Pod, error) {
		if p.Value == 13 {
			return p, errBroken
		}
		return p, nil
	}})
	err := f.Replace([]Pod{{"a", 1}, {"", 2}}, "9")
	if e, isKey := errors.AsType[queue.KeyError](err); !isKey || e.Obj != (Pod{"", 2}) {
		t.Errorf("Replace with an object without a key: %v", err)
	}
	if err := f.Replace([]Pod{{"a", 1}, {"b", 13}}, "9"); !errors.Is(err, errBroken) {
		t.Errorf("Replace with a failing transform: %v", err)
	}
	if keys, deltas := f.Depth(); keys+deltas != 0 || f.HasSynced() {
		t.Errorf("after failures: %d keys, %d deltas, synced %v", keys, deltas, f.HasSynced())
	}
}

func TestResyncQueuesKnownObjectsThatAreNotQueued(t *testing.T) {
	f := newFIFO(t, queue.Options[Pod]{Known: known{"a": {"a", 1}, "b": {"b", 1}}})
	ok(t, f.Update(Pod{"b", 2}))
	ok(t, f.Resync())
	ok(t, f.Resync())
	same(t, "popped", popAll(t, f), []string{"b: Updated b/2", "a: Resynced a/1"})
	f = newFIFO(t, queue.Options[Pod]{})
	ok(t, f.Resync())
	same(t, "without known objects", popAll(t, f), []string(nil))
}

func TestTransformSeesEachObjectOnce(t *testing.T) {
	f := newFIFO(t, tombstones(queue.Options[Pod]{
		EmitReplaced: true,
		Known:        known{"known": {"known", 100}, "gone": {"gone", 100}},
		Transform:    func(p Pod) (Pod, error) { p.Value += 1000; return p, nil },
	}))
	ok(t, f.Add(Pod{"a", 1}))
	ok(t, f.Update(Pod{"a", 2}))
	ok(t, f.Delete(Pod{"a", 3}))
	ok(t, f.Delete(Pod{"known", -5})) // a tombstone that the caller made
	ok(t, f.Resync())
	ok(t, f.Replace([]Pod{{"known", 4}}, "9"))
	same(t, "popped", popAll(t, f), []string{
		"a: Added a/1001 Updated a/1002 Deleted a/1003",
		"known: Deleted known/-5 Replaced known/1004",
		"gone: Resynced gone/100 Deleted gone/-100",
	})
}

func TestSyncedWhenTheFirstListWasPopped(t *testing.T) {
	f := newFIFO(t, queue.Options[Pod]{Known: known{"gone": {"gone", 1}}})
	if f.HasSynced() {
		t.Error("synced before the first list")
	}
	ok(t, f.Replace([]Pod{{"a", 1}, {"a", 2}, {"b", 1}}, "9"))
	ok(t, f.Add(Pod{"later", 1}))
	var initial []bool
	for range 4 {
		select {
		case <-f.Synced():
			if len(initial) < 3 {
				t.Errorf("synced after %d of 3 keys", len(initial))
			}
		default:
			if f.HasSynced() || len(initial) >= 3 {
				t.Errorf("after %d keys: HasSynced %v", len(initial), f.HasSynced())
			}
		}
		_, err := f.Pop(func(_ string, _ podDeltas, in bool) error { initial = append(initial, in); return nil })
		ok(t, err)
	}
	same(t, "in initial list", initial, []bool{true, true, true, false})
}

func TestEmptyFirstListIsSyncedAtOnce(t *testing.T) {
	f := newFIFO(t, queue.Options[Pod]{})
	ok(t, f.Replace(nil, "9"))
	if !f.HasSynced() {
		t.Error("not synced")
	}
}

func TestDeltaBeforeFirstListMakesQueueSynced(t *testing.T) {
	for name, do := range map[string]func(*queue.DeltaFIFO[Pod]) error{
		"Add":    func(f *queue.DeltaFIFO[Pod]) error { return f.Add(Pod{"a", 1}) },
		"Update": func(f *queue.DeltaFIFO[Pod]) error { return f.Update(Pod{"a", 1}) },
		"AddIfNotPresent": func(f *queue.DeltaFIFO[Pod]) error {
			return f.AddIfNotPresent("a", podDeltas{{object.Added, Pod{"a", 1}}})
		},
	} {
		f := newFIFO(t, queue.Options[Pod]{})
		ok(t, do(f))
		ok(t, f.Replace([]Pod{{"b", 1}}, "9"))
		if !f.HasSynced() {
			t.Errorf("%s: not synced", name)
		}
	}
}
