package share_test

import (
	"math"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unique"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/dev/testpods"
	"github.com/mirador-k8s/mirador/internal/share"
)

func TestEqualPartsOfDifferentObjectsAreShared(t *testing.T) {
	table := share.NewTable()
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: strings.Clone("web"),
				Labels: map[string]string{"app": "shop"}},
			Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: strings.Clone("node"), Operator: "Exists"}}},
		}
	}
	table.Share(pod("a1"), true) // seen once
	b, c := shared[*corev1.Pod](table, pod("b1"), true), shared[*corev1.Pod](table, pod("c1"), true)
	if unsafe.StringData(b.Namespace) != unsafe.StringData(c.Namespace) {
		t.Error("equal strings are not shared")
	}
	if &b.Spec.Tolerations[0] != &c.Spec.Tolerations[0] {
		t.Error("equal slices are not shared")
	}
	if reflect.ValueOf(b.Labels).Pointer() != reflect.ValueOf(c.Labels).Pointer() {
		t.Error("equal maps are not shared")
	}
}

func TestP15_NilAndEmptyStayDifferent(t *testing.T) {
	type all struct {
		NilSlice, Empty, Roomy []string
		NilMap, EmptyMap       map[string]string
		Nothing                *struct{}
		Something              *struct{}
		Nothings               []struct{}
	}
	table := share.NewTable()
	for range 3 {
		in := &all{Empty: []string{}, Roomy: make([]string, 0, 9), EmptyMap: map[string]string{}, Something: new(struct{}),
			Nothings: make([]struct{}, 3, 5)}
		out := shared[*all](table, in, false)
		if !reflect.DeepEqual(in, out) || cap(out.Roomy) != 0 || cap(out.Nothings) != 3 {
			t.Errorf("%#v became %#v", in, out)
		}
	}
}

func TestP15_RootsOfAnyTypeAreReturnedUnchanged(t *testing.T) {
	table := share.NewTable()
	roots := func() []any {
		return []any{
			nil, (*ring)(nil), &struct{}{}, struct{}{}, 5, "text", []string{"one", "two"}, map[string]string{"key": "value"},
			ring{Name: "ring", Any: "text"}, map[string]any(nil), []any{[]any{"text"}}, new(any), [2]*ring{{Name: "ring"}},
		}
	}
	var stored []share.Uses
	for range 3 {
		for i, in := range roots() {
			out, uses := table.Share(in, i%2 == 0)
			if !reflect.DeepEqual(out, roots()[i]) || share.Diff(out, roots()[i]) != "" {
				t.Errorf("%#v became %#v", in, out)
			}
			stored = append(stored, uses)
		}
	}
	for _, uses := range stored {
		table.Release(uses)
	}
	if s := table.Stats(); s.Objects != 0 || s.Entries != 0 {
		t.Errorf("after the last release the table reports %+v", s)
	}
}

type ring struct {
	Name string
	Next *ring
	Any  any
}

// keptWhole fails unless the table stores the object itself instead of parts of it.
func keptWhole(t *testing.T, table *share.Table, obj any) []share.Uses {
	t.Helper()
	var stored []share.Uses
	for range 2 {
		out, uses := table.Share(obj, true)
		stored = append(stored, uses)
		if reflect.ValueOf(out).Pointer() != reflect.ValueOf(obj).Pointer() {
			t.Errorf("%T was copied", obj)
		}
	}
	first, second := share.Hash(obj), share.Hash(obj)
	if !share.Equal(obj, obj) || first != second || share.Diff(obj, obj) != "" {
		t.Errorf("%T does not equal itself", obj)
	}
	share.NewStrings(16).Share(obj)
	return stored
}

func TestObjectsWithCyclesAreKeptWholeAndCounted(t *testing.T) {
	table := share.NewTable()
	circle := &ring{Name: "circle"}
	circle.Next = &ring{Name: "other", Next: circle}
	loop := map[string]any{}
	loop["self"] = []any{loop}
	var stored []share.Uses
	for _, obj := range []any{circle, loop} {
		stored = append(stored, keptWhole(t, table, obj)...)
	}
	other := &ring{Name: "circle"}
	other.Next = &ring{Name: "another", Next: other}
	if share.Equal(circle, other) || share.Diff(circle, other) == "" {
		t.Error("different circles are equal")
	}
	if s := table.Stats(); s.Kept != 4 || s.Objects != 4 {
		t.Errorf("four objects were kept whole, the table reports %+v", s)
	}
	for _, uses := range stored {
		table.Release(uses)
	}
	if s := table.Stats(); s.Kept != 0 || s.Objects != 0 || s.Entries != 0 {
		t.Errorf("after the last release the table reports %+v", s)
	}
}

func TestValuesComparedByAddressAreKept(t *testing.T) {
	type holder struct {
		Name   string
		Lock   *sync.Mutex
		Done   chan struct{}
		Func   func()
		Zone   *time.Location
		Handle unique.Handle[string]
		Type   reflect.Type
		Locks  []sync.Mutex
		Guards map[string]struct{ sync.Mutex }
		Free   any
	}
	make1 := func() *holder {
		return &holder{"name", new(sync.Mutex), make(chan struct{}), func() {}, time.FixedZone("here", 60),
			unique.Make("text"),
			reflect.TypeFor[holder](), make([]sync.Mutex, 2), map[string]struct{ sync.Mutex }{"x1": {}}, new(sync.WaitGroup)}
	}
	table := share.NewTable()
	for range 3 {
		in := make1()
		out := shared[*holder](table, in, false)
		if out.Lock != in.Lock || out.Done != in.Done || out.Zone != in.Zone || out.Handle != in.Handle ||
			out.Type != in.Type ||
			&out.Locks[0] != &in.Locks[0] || reflect.ValueOf(out.Guards).Pointer() != reflect.ValueOf(in.Guards).Pointer() ||
			out.Free != in.Free {
			t.Fatalf("%+v became %+v", in, out)
		}
		if other := make1(); share.Equal(in, other) || share.Diff(in, other) != "Lock" {
			t.Errorf("an object with another lock is equal: %q", share.Diff(in, other))
		}
	}
	lock := new(sync.Mutex)
	if shared[*sync.Mutex](table, lock, true) != lock || share.Equal(lock, new(sync.Mutex)) || !share.Equal(lock, lock) {
		t.Error("a lock was compared by its contents or copied")
	}
}

func TestEqualIsExact(t *testing.T) {
	nan, other := math.Float64frombits(0x7ff8000000000001), math.Float64frombits(0x7ff8000000000002)
	type number int64
	for _, c := range []struct {
		a, b  any
		equal bool
		diff  string
	}{
		{nil, nil, true, ""},
		{nil, 1, false, "."},
		{nan, nan, true, ""},
		{nan, other, false, "."},
		{0.0, math.Copysign(0, -1), false, "."},
		{int64(1), number(1), false, "."},
		{[]any{}, []any(nil), false, "."},
		{[]any{1, "x"}, []any{1, "y"}, false, "[1]"},
		{[]any{1}, []any{1, 2}, false, "[1]"},
		{map[string]any{"a": nil}, map[string]any{"b": nil}, false, `["a"]`},
		{map[string]any{"a": map[string]any{}}, map[string]any{"a": map[string]any(nil)}, false, `["a"]`},
		{map[int][]string{1: {"a"}}, map[int][]string{1: {"b"}}, false, "[1][0]"},
		{time.Unix(1, 2), time.Unix(1, 3), false, "wall"},
		{&ring{Any: "x"}, &ring{Any: "x"}, true, ""},
		{&ring{Next: &ring{Any: []string{"x"}}}, &ring{Next: &ring{Any: []string{"z"}}}, false, "Next.Any[0]"},
		{metav1.NewTime(time.Unix(1, 0)), metav1.NewTime(time.Unix(1, 0)), true, ""},
	} {
		if got := share.Equal(c.a, c.b); got != c.equal {
			t.Errorf("Equal(%#v, %#v) is %v", c.a, c.b, got)
		}
		if got := share.Diff(c.a, c.b); got != c.diff {
			t.Errorf("Diff(%#v, %#v) is %q, want %q", c.a, c.b, got, c.diff)
		}
		if (share.Hash(c.a) == share.Hash(c.b)) != c.equal {
			t.Errorf("Hash(%#v), Hash(%#v): %x %x", c.a, c.b, share.Hash(c.a), share.Hash(c.b))
		}
	}
}

func TestEntryDoesNotKeepTheBufferOfAString(t *testing.T) {
	table := share.NewTable()
	freed := make(chan struct{})
	func() {
		buffer := new([1 << 20]byte)
		copy(buffer[:], "namespace")
		runtime.AddCleanup(buffer, func(c chan struct{}) { close(c) }, freed)
		piece := unsafe.String(&buffer[0], 9)
		table.Share(&metav1.ObjectMeta{Namespace: piece}, false)
		table.Share(&metav1.ObjectMeta{Namespace: piece, Labels: map[string]string{"in": piece}}, false)
	}()
	stored, _ := table.Share(&metav1.ObjectMeta{Namespace: "namespace"}, true)
	for range 20 {
		runtime.GC()
		select {
		case <-freed:
			runtime.KeepAlive(stored)
			return
		default:
			runtime.Gosched()
		}
	}
	t.Error("the table keeps a whole buffer because of nine bytes of it")
}

func TestReadersNeedNoLock(t *testing.T) {
	set := testpods.New(2, 5)
	table := share.NewTable()
	published := make(chan *corev1.Pod, 64)
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for pod := range published {
				if copied := pod.DeepCopy(); !share.Equal(copied, pod) {
					t.Errorf("a copy of %s differs at %s", pod.Name, share.Diff(copied, pod))
				}
			}
		})
	}
	var stored []share.Uses
	for i := range 300 {
		obj, uses := table.Share(set.Pod(i), i%3 > 0)
		for range 2 {
			published <- obj.(*corev1.Pod)
		}
		if stored = append(stored, uses); len(stored) > 50 {
			table.Release(stored[0])
			stored = stored[1:]
		}
	}
	close(published)
	readers.Wait()
}

// shared returns a shared object that is never released.
func shared[T any](table *share.Table, obj T, owned bool) T {
	out, _ := table.Share(obj, owned)
	return out.(T)
}
