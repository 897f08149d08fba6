package store

import (
	"slices"
	"testing"
)

func TestVectorKeepsSnapshotsWhileItGrowsAndShrinks(t *testing.T) {
	rnd := seedOf(t)
	type cut struct {
		v    vec[int]
		want []int
	}
	var v vec[int]
	var want []int
	var cuts []cut
	owner := uint64(1)
	verify := func(v *vec[int], want []int) {
		t.Helper()
		if err := checkVec(v); err != nil {
			t.Fatal(err)
		}
		got := []int{}
		for base := 0; base < v.n; base += width {
			got = append(got, v.chunk(base)...)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("vector of %d differs", v.n)
		}
		for i := range want {
			if v.get(i) != want[i] {
				t.Fatalf("get(%d) = %d, want %d", i, v.get(i), want[i])
			}
		}
	}
	// Sizes around every boundary: 16, 32, 2048, 4096.
	for _, size := range []int{5, 33, 16, 17, 31, 40, 0, 2049, 2000, 2048, 15, 5000, 4096, 4095, 2047, 3000, 0} {
		for len(want) < size {
			v.push(owner, len(want)+1)
			want = append(want, len(want)+1)
		}
		for len(want) > size {
			v.pop(owner)
			want = want[:len(want)-1]
		}
		for range min(size, 50) {
			i, x := rnd.IntN(size), 1+rnd.IntN(1000)
			v.set(owner, i, x)
			want[i] = x
		}
		verify(&v, want)
		if rnd.IntN(3) > 0 {
			cuts = append(cuts, cut{v, slices.Clone(want)})
			owner++
		}
	}
	for _, c := range cuts {
		verify(&c.v, c.want)
	}
}

func TestVectorCopiesANodeOncePerSnapshot(t *testing.T) {
	var v vec[int]
	for i := range 40000 {
		v.push(1, i)
	}
	v.set(2, 5, 0) // copies the node for this epoch
	if n := testing.AllocsPerRun(10, func() { v.set(2, 6, 1) }); n != 0 {
		t.Errorf("a second edit of the same node allocates %v times", n)
	}
}
