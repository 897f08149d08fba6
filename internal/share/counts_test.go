package share

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/internal/testpods"
)

// audit counts all uses anew, from the stored objects and from the entries, and compares.
func (t *Table) audit(tb testing.TB, stored []any) {
	tb.Helper()
	counts := make([]int, len(t.entries))
	var mem func(nodes []op, at unsafe.Pointer)
	block := func(p *plan, at unsafe.Pointer, n int) {
		if id := t.locate(p, at, n); id != 0 {
			counts[id]++
			return
		}
		for i := range n {
			mem(p.nodes, unsafe.Add(at, uintptr(i)*p.size))
		}
	}
	mapping := func(p *plan, slot unsafe.Pointer) {
		m := reflect.NewAt(p.typ, slot).Elem()
		for it := m.MapRange(); it.Next(); {
			k, v := reflect.New(p.key.typ), reflect.New(p.val.typ)
			k.Elem().Set(it.Key())
			v.Elem().Set(it.Value())
			if p.key.kind == reflect.String {
				mem(p.key.nodes, k.UnsafePointer())
			}
			mem(p.val.nodes, v.UnsafePointer())
		}
	}
	mem = func(nodes []op, at unsafe.Pointer) {
		for _, o := range nodes {
			slot := unsafe.Add(at, o.off)
			switch o.kind {
			case opString:
				if s := *(*str)(slot); s.len >= minText {
					block(text, s.data, s.len)
				}
			case opPointer:
				if to := *(*unsafe.Pointer)(slot); to != nil {
					block(o.elem, to, 1)
				}
			case opSlice:
				block(o.elem, (*slice)(slot).data, (*slice)(slot).len)
			case opMap:
				if m := *(*unsafe.Pointer)(slot); m == nil {
				} else if id := t.locate(o.elem, m, 0); id != 0 {
					counts[id]++
				} else {
					mapping(o.elem, slot)
				}
			case opArray:
				for i := range o.size {
					mem(o.elem.nodes, unsafe.Add(slot, i*o.elem.size))
				}
			case opEface, opIface:
				e := (*eface)(slot)
				if e.typ == nil {
					continue
				}
				if p := dynamic(&o, slot); p.direct {
					mem(p.nodes, unsafe.Pointer(&e.data))
				} else if p.kind == reflect.String {
					if id := t.locate(p, e.data, 1); id != 0 {
						counts[id]++
					}
				} else {
					block(p, e.data, 1)
				}
			}
		}
	}
	for _, obj := range stored {
		p := planOf(reflect.TypeOf(obj))
		mem(p.ops[0].elem.nodes, reflect.ValueOf(obj).UnsafePointer())
	}
	used := 0
	for _, e := range t.entries {
		if e.plan == nil {
			continue
		}
		used++
		if e.n > 0 {
			for i := range int(e.n) {
				mem(e.plan.nodes, unsafe.Add(e.at, uintptr(i)*e.plan.size))
			}
		} else {
			mapping(e.plan, unsafe.Pointer(&e.at))
		}
	}
	for id, e := range t.entries {
		if e.plan != nil && int(e.refs) != counts[id] {
			tb.Fatalf("an entry of %v says %d uses and has %d", e.plan.typ, e.refs, counts[id])
		}
	}
	if used != t.used || len(stored) != t.objects {
		tb.Fatalf("the table says %d entries and %d objects, and has %d and %d", t.used, t.objects, used, len(stored))
	}
}

type leaf struct {
	Name  string
	Sizes []int32
}

type tree struct {
	Name     string
	Twice    string
	Leaf     *leaf
	Same     *leaf // now and then the same as Leaf
	Children []tree
	Free     any
	Labels   map[string]string
	ByName   map[string]leaf
	ByNumber map[int]*tree
	Words    map[string][]string
	Array    [5]leaf
}

func randomTree(r *rand.Rand, depth int) tree {
	word := func() string { return fmt.Sprint("word", r.IntN(12)) }
	newLeaf := func() *leaf { return &leaf{word(), []int32{int32(r.IntN(3))}} }
	x := tree{Name: word(), Leaf: newLeaf(), Labels: map[string]string{word(): word()}}
	x.Twice = x.Name
	x.Same = x.Leaf
	if r.IntN(2) == 0 {
		x.Same = newLeaf()
	}
	x.ByName = map[string]leaf{word(): *newLeaf(), word(): *newLeaf()}
	x.Words = map[string][]string{word(): {word(), word()}}
	x.Array[r.IntN(5)] = *newLeaf()
	x.Free = []any{nil, word(), newLeaf(), *newLeaf(), []any{word(), int64(5)}, map[string]any{word(): word()}, x.Leaf}[r.IntN(7)]
	if depth > 0 {
		for range r.IntN(3) {
			x.Children = append(x.Children, randomTree(r, depth-1))
		}
		child := randomTree(r, depth-1)
		x.ByNumber = map[int]*tree{r.IntN(3): &child, 7: nil}
	}
	return x
}

func TestUsesAreCountedExactlyWhateverComesAndGoes(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 1))
		table := NewTable()
		var stored []any
		for step := range 1500 {
			switch k := r.IntN(10); {
			case k < 5 || len(stored) == 0:
				x := randomTree(r, 2)
				stored = append(stored, table.Share(&x, r.IntN(2) == 0))
			case k < 6: // the same object again
				stored = append(stored, table.Share(stored[r.IntN(len(stored))], false))
			case k < 7: // a changed copy that still points at the table's parts
				x := *stored[r.IntN(len(stored))].(*tree)
				x.Name = "changed"
				at := r.IntN(len(stored))
				stored[at] = table.Update(stored[at], &x, false)
			default:
				at := r.IntN(len(stored))
				table.Release(stored[at])
				stored[at] = stored[len(stored)-1]
				stored = stored[:len(stored)-1]
			}
			if step%50 == 0 {
				table.audit(t, stored)
			}
		}
		if table.used == 0 {
			t.Fatal("nothing was shared")
		}
		for len(stored) > 0 {
			table.Release(stored[len(stored)-1])
			stored = stored[:len(stored)-1]
		}
		table.audit(t, nil)
		if table.used != 0 {
			t.Fatalf("seed %d: %d entries are left", seed, table.used)
		}
	}
}

func TestUsesOfPodsAreCountedExactly(t *testing.T) {
	set := testpods.New(3, 10)
	table := NewTable()
	var stored []any
	for i := range 300 {
		stored = append(stored, table.Share(set.Pod(i), true))
	}
	for i, obj := range stored {
		stored[i] = table.Update(obj, set.Changed(obj.(*corev1.Pod), 1), true)
	}
	table.audit(t, stored)
}

func TestCollidingHashesAreHarmless(t *testing.T) {
	var x index
	var w walker
	const n = 300
	at := func(i int) (unsafe.Pointer, int) {
		s := fmt.Sprint("text ", i)
		return unsafe.Pointer(unsafe.StringData(s)), len(s)
	}
	kept := map[int]unsafe.Pointer{}
	r := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		i := r.IntN(n)
		hash := uint64(i % 3)
		p, size := at(i)
		id := x.find(&w, hash, text, p, size)
		if (id != 0) != (kept[i] != nil) {
			t.Fatalf("text %d: found %v, stored %v", i, id != 0, kept[i] != nil)
		}
		if id == 0 {
			x.add(hash, text, p, size)
			kept[i] = p
			continue
		}
		if x.entries[id].at != kept[i] || x.locate(text, kept[i], size) != id {
			t.Fatalf("text %d: found another one", i)
		}
		x.remove(id)
		x.shrink()
		delete(kept, i)
	}
}
