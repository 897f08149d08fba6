package store

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"weak"

	"github.com/mirador-k8s/mirador/object"
)

// tracked is a store of pointers and knows which of them are still alive.
type tracked struct {
	w    *Writer[*thing]
	weak map[object.Key]weak.Pointer[thing]
	rv   int
}

func newTracked(t *testing.T) *tracked {
	w, err := New(Options[*thing]{
		Indexes:  map[string]IndexFunc[*thing]{"color": func(o *thing) ([]string, error) { return []string{o.Color}, nil }},
		LogBytes: 1 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &tracked{w: w, weak: map[object.Key]weak.Pointer[thing]{}}
}

func (x *tracked) put(keys ...object.Key) {
	x.w.Begin()
	for _, key := range keys {
		x.rv++
		o := &thing{Name: string(key), Color: "c" + string(key)}
		x.weak[key] = weak.Make(o)
		x.w.Put(object.Item[*thing]{Key: key, Version: object.Version(strconv.Itoa(x.rv)), Size: 1000, Value: o})
	}
	x.w.Commit()
}

// alive returns the keys of the objects that the garbage collector has not freed.
func (x *tracked) alive() (keys []object.Key) {
	runtime.GC()
	runtime.GC()
	for key, p := range x.weak {
		if p.Value() != nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func TestResetReleasesEveryObject(t *testing.T) {
	x := newTracked(t)
	var keys []object.Key
	for i := range 500 {
		keys = append(keys, object.Key(fmt.Sprint("k", i)))
	}
	x.put(keys...)
	x.put("k1", "k2")
	snap := x.w.Reader().Snapshot()
	x.put("k3")
	x.w.Reset()
	if n := len(x.alive()); n < 498 {
		t.Errorf("while a snapshot is held, %d objects are alive", n)
	}
	if o, ok := snap.Get("k7"); !ok || o.Name != "k7" || snap.Len() != 500 ||
		len(slices.Collect(snap.ByIndex("color", "ck7"))) != 1 {
		t.Error("Reset changed a snapshot")
	}
	runtime.KeepAlive(snap)
	snap = nil
	if got := x.alive(); len(got) != 0 {
		t.Errorf("after Reset these are still alive: %v", got)
	}
	s := x.w.Reader().Snapshot()
	if s.Len() != 0 || s.Version() != "" || x.w.objects.n != 0 || x.w.Reader().Len() != 0 || s.Seq() != 4 {
		t.Errorf("after Reset there are %d objects, version %q, number %d", s.Len(), s.Version(), s.Seq())
	}
	if len(x.w.sh.set.Load().sorted()) != 1 {
		t.Error("Reset dropped the indexes")
	}
	x.w.check(t)
	x.put("again")
	if _, ok := x.w.Reader().Get("again"); !ok {
		t.Error("objects cannot be stored after Reset")
	}
	x.w.check(t)
	runtime.KeepAlive(x)
}

func TestResetAbortsAnOpenReplace(t *testing.T) {
	x := newTracked(t)
	x.put("a")
	x.w.BeginReplace()
	x.w.Stage(object.Item[*thing]{Key: "b", Value: &thing{}})
	x.w.Reset()
	x.put("c")
	if x.w.objects.n != 1 {
		t.Errorf("%d objects", x.w.objects.n)
	}
	runtime.KeepAlive(x)
}

func TestADeletedObjectIsReleasedOnceNoSnapshotNorLogHasIt(t *testing.T) {
	x := newTracked(t)
	x.put("a", "b", "c")
	snap := x.w.Reader().Snapshot()
	x.w.Begin()
	x.w.Delete("b", "")
	x.w.Commit()
	if got := x.alive(); len(got) != 3 {
		t.Errorf("a snapshot has three objects, but only %v are alive", got)
	}
	runtime.KeepAlive(snap)
	// After a later batch the store no longer has the snapshot, and after a second list no log.
	for range 2 {
		x.w.BeginReplace()
		x.w.Keep("a")
		x.w.Keep("c")
		x.w.CommitReplace("90", nil)
	}
	if got := x.alive(); !slices.Equal(got, []object.Key{"a", "c"}) {
		t.Errorf("alive are %v, want a and c", got)
	}
	runtime.KeepAlive(x)
}

func TestIterationIsNotProportionalToAPastHighWaterMark(t *testing.T) {
	x := newTracked(t)
	var keys []object.Key
	for i := range 5000 {
		keys = append(keys, object.Key(fmt.Sprint("k", i)))
	}
	x.put(keys...)
	x.w.Begin()
	for _, k := range keys[:4990] {
		x.w.Delete(k, "")
	}
	x.w.Commit()
	x.w.check(t) // fails if there are nodes after the end
	if s := x.w.Reader().Snapshot(); s.objects.pages != nil || s.objects.n != 10 {
		t.Errorf("10 objects are left in a tree of %d slots", s.objects.n)
	}
}
