package store_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/dev/testpods"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// rawJSON is an object as its JSON.
type rawJSON []byte

var rawCodec = &object.Codec[rawJSON]{
	Encode: func(dst []byte, v rawJSON) ([]byte, error) { return append(dst, v...), nil },
	Decode: func(b []byte) (rawJSON, error) { return b, nil },
	Lends:  true,
}

// appOf is an index function that reads the object.
func appOf(v rawJSON) ([]string, error) {
	var p corev1.Pod
	err := json.Unmarshal(v, &p)
	return []string{p.Labels["app"]}, err
}

func packedPods(t testing.TB, logBytes int) *store.Writer[rawJSON] {
	w, err := store.New(store.Options[rawJSON]{Layout: store.Packed, Codec: rawCodec, LogBytes: logBytes,
		Indexes: map[string]store.IndexFunc[rawJSON]{"app": appOf, "namespace": store.ByNamespace[rawJSON]()},
		OnError: func(key object.Key, index string, err error) { t.Errorf("%s %s: %v", key, index, err) }})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func podItem(t testing.TB, p *corev1.Pod) object.Item[rawJSON] {
	encoded, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return object.Item[rawJSON]{Key: object.NewKey(p.Namespace, p.Name), Version: object.Version(p.ResourceVersion),
		UID: string(p.UID), Size: len(encoded), Value: encoded, Encoded: encoded, Codec: rawCodec}
}

// keptBase and keptEntry are what code outside of the process would write.
type keptBase struct {
	id, parent  uint64
	data, shape string
	length      int
}

type keptEntry struct {
	entry   store.PackedEntry
	base    uint64
	data    string
	indexed []store.IndexValues
}

// keepEntries copies what is needed to make the entries again, so that nothing refers to their store.
func keepEntries(t testing.TB, s *store.Snapshot[rawJSON]) (bases map[uint64]keptBase, entries []keptEntry) {
	t.Helper()
	bases = map[uint64]keptBase{}
	apps := map[object.Key][]string{}
	x, err := s.Index("app")
	if err != nil {
		t.Fatal(err)
	}
	for v := range x.Values() {
		for e := range x.Entries(v) {
			apps[e.Key] = append(apps[e.Key], v)
		}
	}
	for e := range s.Entries() {
		obj, ok := e.Packed()
		if !ok {
			t.Fatalf("%s is not packed", e.Key)
		}
		k := keptEntry{data: strings.Clone(obj.Data()), indexed: []store.IndexValues{{Index: "app", Values: apps[e.Key]}},
			entry: store.PackedEntry{Key: object.Key(strings.Clone(string(e.Key))), Version: e.Version, UID: e.UID,
				Size: e.Size}}
		for b := obj.Base(); b != nil; b = b.Parent() {
			kept := keptBase{id: b.ID(), data: strings.Clone(b.Data()), shape: strings.Clone(b.Shape()), length: b.Len()}
			if b.Parent() != nil {
				kept.parent = b.Parent().ID()
			}
			bases[b.ID()] = kept
		}
		if obj.Base() != nil {
			k.base = obj.Base().ID()
		}
		entries = append(entries, k)
	}
	return bases, entries
}

// restore yields the entries with bases of their own.
func restore(t testing.TB, bases map[uint64]keptBase, entries []keptEntry) iter.Seq[store.PackedEntry] {
	t.Helper()
	set := store.NewPackedBases()
	made := map[uint64]*store.PackedBase{}
	var base func(id uint64) *store.PackedBase
	base = func(id uint64) *store.PackedBase {
		if id == 0 || made[id] != nil {
			return made[id]
		}
		k := bases[id]
		b, err := set.Restore(k.id, base(k.parent), k.data, k.shape, k.length)
		if err != nil {
			t.Fatal(err)
		}
		made[id] = b
		return b
	}
	return func(yield func(store.PackedEntry) bool) {
		for _, k := range entries {
			e := k.entry
			e.Object, e.Indexed = set.Packed(base(k.base), k.data), k.indexed
			if !yield(e) {
				return
			}
		}
	}
}

func restored(t testing.TB, bases map[uint64]keptBase, entries []keptEntry,
	version object.Version) *store.Writer[rawJSON] {
	t.Helper()
	w := packedPods(t, 0)
	w.BeginReplace()
	for e := range restore(t, bases, entries) {
		if err := w.StagePacked(&e); err != nil {
			t.Fatal(err)
		}
	}
	w.CommitReplace(version, nil)
	return w
}

// contents returns the JSON of every object, and their keys by index value.
func contents(t testing.TB, s *store.Snapshot[rawJSON]) map[string]string {
	t.Helper()
	out := map[string]string{}
	for e := range s.Entries() {
		b, ok := e.AppendEncoded(nil)
		if !ok {
			t.Fatalf("%s cannot be read", e.Key)
		}
		out[string(e.Key)] = fmt.Sprintf("%s %s %d %s", e.Version, e.UID, e.Size, b)
	}
	for _, name := range []string{"app", "namespace"} {
		x, err := s.Index(name)
		if err != nil {
			t.Fatal(err)
		}
		for v := range x.Values() {
			var keys []string
			for e := range x.Entries(v) {
				keys = append(keys, string(e.Key))
			}
			slices.Sort(keys)
			out[name+"="+v] = strings.Join(keys, " ")
		}
	}
	return out
}

func TestPackedEntriesAreRestoredExactly(t *testing.T) {
	const pods = 120
	set := testpods.New(1, 6)
	w := packedPods(t, 0)
	w.BeginReplace()
	for i := range pods {
		w.Stage(podItem(t, set.Pod(i)))
	}
	w.CommitReplace("1000000", nil)
	want := contents(t, w.Reader().Snapshot())
	bases, entries := keepEntries(t, w.Reader().Snapshot())

	again := restored(t, bases, entries, "1000000")
	snap := again.Reader().Snapshot()
	if got := contents(t, snap); !maps.Equal(got, want) || snap.Version() != "1000000" {
		t.Fatalf("restored %d objects and index values at %s, want %d", len(got), snap.Version(), len(want))
	}
	// The restored bases serve further objects: the store does not grow as an empty one would.
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range pods {
		p := set.Pod(i)
		p.ResourceVersion = fmt.Sprint(2_000_000 + i)
		p.Status.Message = fmt.Sprint("changed ", rnd.Uint64())
		for _, w := range []*store.Writer[rawJSON]{w, again} {
			w.Begin()
			w.Put(podItem(t, p))
			w.Commit()
		}
	}
	if filled, got := w.Reader().Layout().Bytes, again.Reader().Layout().Bytes; got > filled*5/4 {
		t.Errorf("after each object has changed, the restored store needs %d bytes and the other one %d", got, filled)
	}
	for e := range again.Reader().Snapshot().Entries() {
		if b, _ := e.AppendEncoded(nil); !bytes.Contains(b, []byte("changed ")) {
			t.Fatalf("%s has not changed: %.200s", e.Key, b)
		}
	}
	// Nothing is left of objects that are deleted.
	again.Begin()
	for i := range pods {
		p := set.Pod(i)
		again.Delete(object.NewKey(p.Namespace, p.Name), "3000000")
	}
	again.Commit()
	if left := again.Reader().Layout().Bytes; left > 1<<20 { // scratch and caches
		t.Errorf("%d bytes are left without objects", left)
	}
}

func TestADamagedPackedEntryIsAnError(t *testing.T) {
	set := testpods.New(1, 2)
	w := packedPods(t, 0)
	w.Begin()
	for i := range 20 {
		w.Put(podItem(t, set.Pod(i)))
	}
	w.Commit()
	bases, entries := keepEntries(t, w.Reader().Snapshot())
	for i := range entries {
		entries[i].indexed = nil // so that the object is decoded
		damaged := []byte(entries[i].data)
		damaged[len(damaged)/2] ^= 4
		entries[i].data = string(damaged)
	}
	again := packedPods(t, 0)
	again.BeginReplace()
	failed := 0
	for e := range restore(t, bases, entries) {
		if err := again.StagePacked(&e); err != nil {
			failed++
		}
	}
	again.AbortReplace()
	if failed != len(entries) {
		t.Errorf("%d of %d damaged objects were accepted", len(entries)-failed, len(entries))
	}
	live, err := store.New(store.Options[rawJSON]{Codec: rawCodec})
	if err != nil {
		t.Fatal(err)
	}
	live.BeginReplace()
	if err := live.StagePacked(&store.PackedEntry{Key: "a"}); err == nil {
		t.Error("a store in the live layout accepts a packed entry")
	}
}

func BenchmarkRestorePacked(b *testing.B) {
	set := testpods.New(1, 200)
	w := packedPods(b, 0)
	w.BeginReplace()
	const pods = 20000
	for i := range pods {
		w.Stage(podItem(b, set.Pod(i)))
	}
	w.CommitReplace("1000000", nil)
	bases, entries := keepEntries(b, w.Reader().Snapshot())
	b.ReportMetric(float64(len(bases)), "bases")
	for b.Loop() {
		restored(b, bases, entries, "1")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pods), "ns/object")
}
