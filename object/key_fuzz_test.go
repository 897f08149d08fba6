package object_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mirador-k8s/mirador/object"
)

// FuzzKeySplitUndoesJoin: a key gives back what it was made of, as far as a namespace
// has no slash, which no server allows; and any text at all is a key that splits and
// joins into itself, but for one that begins with a slash, whose namespace is none.
func FuzzKeySplitUndoesJoin(f *testing.F) {
	f.Add("web", "nginx-0")
	f.Add("", "node-1")
	f.Add("a", "b/c")
	f.Add("", "/x")
	f.Add("a/b", "")
	f.Fuzz(func(t *testing.T, namespace, name string) {
		k := object.NewKey(namespace, name)
		ns, n := k.Split()
		if ns != k.Namespace() || n != k.Name() {
			t.Fatalf("Split(%q) = %q, %q; Namespace and Name are %q, %q", k, ns, n, k.Namespace(), k.Name())
		}
		plain := !strings.Contains(namespace, "/") && (namespace != "" || !strings.Contains(name, "/"))
		if plain && (ns != namespace || n != name) {
			t.Fatalf("NewKey(%q, %q).Split() = %q, %q", namespace, name, ns, n)
		}
		if strings.Contains(ns, "/") {
			t.Fatalf("the namespace of %q is %q", k, ns)
		}
		if again := object.NewKey(ns, n); again != k && !strings.HasPrefix(string(k), "/") {
			t.Fatalf("%q splits and joins into %q", k, again)
		}
	})
}

// FuzzVersionsAreInOneOrder: Before is a strict order on what has a place in it, and
// says nothing of anything else.
func FuzzVersionsAreInOneOrder(f *testing.F) {
	f.Add("1", "2", "10")
	f.Add("99999999999999999999999999", "9", "10")
	f.Add("0", "", "01")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		v := []object.Version{object.Version(a), object.Version(b), object.Version(c)}
		for _, x := range v {
			if x.Before(x) {
				t.Fatalf("%q is before itself", x)
			}
			for _, y := range v {
				order, ok := x.Compare(y)
				if x.Before(y) && y.Before(x) || x.Before(y) != (ok && order < 0) {
					t.Fatalf("Compare(%q, %q) = %d, %v; before: %v and %v", x, y, order, ok, x.Before(y), y.Before(x))
				}
				if x.Ordered() && y.Ordered() && x != y && x.Before(y) == y.Before(x) {
					t.Fatalf("%q and %q have no order", x, y)
				}
				if x != y && ok && !(x.Ordered() && y.Ordered()) {
					t.Fatalf("%q and %q have an order, and are not both numbers", x, y)
				}
			}
		}
		if v[0].Before(v[1]) && v[1].Before(v[2]) && !v[0].Before(v[2]) {
			t.Fatalf("%q is before %q, which is before %q, but not before that", a, b, c)
		}
		ordered := slices.DeleteFunc(v, func(x object.Version) bool { return !x.Ordered() })
		slices.SortFunc(ordered, func(x, y object.Version) int { order, _ := x.Compare(y); return order })
		for i := 1; i < len(ordered); i++ {
			if ordered[i].Before(ordered[i-1]) {
				t.Fatalf("sorted: %q", ordered)
			}
		}
	})
}
