package query

import (
	"fmt"
	"testing"

	"github.com/mirador-k8s/mirador/object"
)

func TestContainsFuncIsLikeContains(t *testing.T) {
	many := func(n int) (names []string) {
		for i := range n {
			names = append(names, fmt.Sprintf("pod-%04d", 3*i))
		}
		return names
	}
	for _, v := range []*Visible{{}, {All: true}, {Names: many(3)}, {Names: many(100)},
		{Names: many(100), Namespaces: []string{"web"}, Keys: []object.Key{"api/pod-0001"}}} {
		fast, passed := v.containsFunc(), 0
		for _, ns := range []string{"", "api", "web"} {
			for i := range 1000 {
				key := object.NewKey(ns, fmt.Sprintf("pod-%04d", i))
				if fast(key) != v.Contains(key) {
					t.Errorf("%+v: %s: %v, want %v", v, key, fast(key), v.Contains(key))
				}
				if fast(key) {
					passed++
				}
			}
		}
		if !v.Empty() && passed == 0 {
			t.Errorf("%+v contains none of the keys", v)
		}
	}
}

func TestANameFilterPassesFewOtherNames(t *testing.T) {
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprint("in-", i))
	}
	f, passed := newNameFilter(names), 0
	for i, name := range names {
		if !f.passes(name) {
			t.Errorf("%s does not pass", name)
		}
		if f.passes(fmt.Sprint("out-", i)) {
			passed++
		}
	}
	if passed > 200 {
		t.Errorf("%d of 1,000 names that are not in the set pass", passed)
	}
}

func BenchmarkContains(b *testing.B) {
	v := &Visible{}
	for i := range 1000 {
		v.Names = append(v.Names, fmt.Sprintf("checkout-5d9c7b-%05d", 10*i))
	}
	var keys []object.Key
	for i := range 10_000 {
		keys = append(keys, object.NewKey("ns-001", fmt.Sprintf("checkout-5d9c7b-%05d", i)))
	}
	b.Run("Contains", func(b *testing.B) {
		for b.Loop() {
			for _, key := range keys {
				v.Contains(key)
			}
		}
	})
	b.Run("containsFunc", func(b *testing.B) {
		for b.Loop() {
			fast := v.containsFunc()
			for _, key := range keys {
				fast(key)
			}
		}
	})
}
