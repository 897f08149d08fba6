package share

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/dev/testpods"
)

// stored is an object in a store.
type stored struct {
	obj  any
	uses Uses
}

// audit counts all uses by stored objects and by entries, and compares them with the table's counts. It also checks
// that every part that the table hands out equals the part that it compares with.
func (t *Table) audit(tb testing.TB, all []stored) {
	tb.Helper()
	counts := make([]int, len(t.entries))
	for _, s := range all {
		s.uses.each(func(id uint32) { counts[id]++ })
	}
	used := 0
	for _, e := range t.entries {
		if e.plan == nil {
			continue
		}
		used++
		e.uses.each(func(id uint32) { counts[id]++ })
	}
	var w walker
	for id, e := range t.entries {
		if e.plan == nil {
			continue
		}
		if int(e.refs) != counts[id] {
			tb.Fatalf("an entry of %v counts %d uses and has %d", e.plan.typ, e.refs, counts[id])
		}
		handedOut := part{plan: e.plan, at: e.at, n: int(e.n)}
		if e.n == 0 {
			handedOut.value = e.value()
		}
		if !w.equalPart(e.own, handedOut) {
			tb.Fatalf("an entry of %v hands out a part that differs from the one it compares with", e.plan.typ)
		}
	}
	if used != t.used || len(all) != t.objects {
		tb.Fatalf("the table counts %d entries and %d objects, and has %d and %d", t.used, t.objects, used, len(all))
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
	Same     *leaf // sometimes the same as Leaf
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
	x.Free = []any{nil, word(), newLeaf(), *newLeaf(), []any{word(), int64(5)},
		map[string]any{word(): word()}, x.Leaf}[r.IntN(7)]
	if depth > 0 {
		for range r.IntN(3) {
			x.Children = append(x.Children, randomTree(r, depth-1))
		}
		child := randomTree(r, depth-1)
		x.ByNumber = map[int]*tree{r.IntN(3): &child, 7: nil}
	}
	return x
}

func TestUsesAreCountedExactlyUnderRandomChanges(t *testing.T) {
	seeds := uint64(4)
	if UnderRace {
		seeds = 1
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		table := NewTable()
		var all []stored
		keep := func(obj any, uses Uses) stored { return stored{obj, uses} }
		for step := range 1500 {
			switch k := r.IntN(10); {
			case k < 5 || len(all) == 0:
				x := randomTree(r, 2)
				all = append(all, keep(table.Share(&x, r.IntN(2) == 0)))
			case k < 6: // the same object again
				all = append(all, keep(table.Share(all[r.IntN(len(all))].obj, false)))
			case k < 7: // a changed copy that still points at the table's parts
				x := *all[r.IntN(len(all))].obj.(*tree)
				x.Name = "changed"
				at := r.IntN(len(all))
				all[at] = keep(table.replace(all[at].uses, &x, false))
			default:
				at := r.IntN(len(all))
				table.Release(all[at].uses)
				all[at] = all[len(all)-1]
				all = all[:len(all)-1]
			}
			if step%50 == 0 {
				table.audit(t, all)
			}
		}
		if table.used == 0 {
			t.Fatal("nothing was shared")
		}
		for len(all) > 0 {
			table.Release(all[len(all)-1].uses)
			all = all[:len(all)-1]
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
	var all []stored
	for i := range 300 {
		obj, uses := table.Share(set.Pod(i), true)
		all = append(all, stored{obj, uses})
	}
	for i, s := range all {
		obj, uses := table.replace(s.uses, set.Changed(s.obj.(*corev1.Pod), 1), true)
		all[i] = stored{obj, uses}
	}
	table.audit(t, all)
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
		id := x.find(&w, hash, part{plan: text, at: p, n: size})
		if (id != 0) != (kept[i] != nil) {
			t.Fatalf("text %d: found %v, stored %v", i, id != 0, kept[i] != nil)
		}
		if id == 0 {
			x.add(hash, text, p, p, size, "")
			kept[i] = p
			continue
		}
		if x.entries[id].at != kept[i] {
			t.Fatalf("text %d: found another one", i)
		}
		x.remove(id)
		x.shrink()
		delete(kept, i)
	}
}

// replace stores an object in place of another that had the uses old, as a store does.
func (t *Table) replace(old Uses, obj any, owned bool) (any, Uses) {
	shared, uses := t.Share(obj, owned)
	t.Release(old)
	return shared, uses
}
