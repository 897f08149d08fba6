package object_test

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/mirador-k8s/mirador/object"
)

func ExampleKey() {
	k := object.NewKey("web", "nginx-0")
	ns, name := k.Split()
	fmt.Println(k, ns, name, object.NewKey("", "node-1"))
	// Output: web/nginx-0 web nginx-0 node-1
}

func ExampleVersion_Compare() {
	order, ok := object.Version("99").Compare("100")
	fmt.Println(order < 0, ok)
	_, ok = object.Version("99").Compare("not-a-number")
	fmt.Println(ok)
	// Output:
	// true true
	// false
}

func TestKeysSortAsTheServerSortsAList(t *testing.T) {
	// etcd sorts /registry/pods/<namespace>/<name> byte by byte, and '-' sorts before '/'.
	keys := []object.Key{"b/a", "a/z", "a-b/a", "a/a-b", "a/a"}
	slices.Sort(keys)
	want := []object.Key{"a-b/a", "a/a", "a/a-b", "a/z", "b/a"}
	if !slices.Equal(keys, want) {
		t.Errorf("sorted keys = %v, want %v", keys, want)
	}
}

func TestKeySplitKeepsLaterSlashesInTheName(t *testing.T) {
	ns, name := object.Key("a/b/c").Split()
	if ns != "a" || name != "b/c" {
		t.Errorf("Split = %q, %q, want a, b/c", ns, name)
	}
	if object.Key("x").Namespace() != "" || object.Key("x").Name() != "x" {
		t.Error("a key without a slash is all name")
	}
}

func TestVersionsThatAreNoNumbersHaveNoOrder(t *testing.T) {
	for _, v := range []object.Version{"", "0", "01", "-1", "+1", "1.5", "abc", "1 "} {
		if v.Ordered() {
			t.Errorf("%q is ordered", v)
		}
		if _, ok := v.Compare("5"); ok {
			t.Errorf("%q compares with 5", v)
		}
		if v.Before("5") {
			t.Errorf("%q is before 5", v)
		}
	}
	if order, ok := object.Version("abc").Compare("abc"); order != 0 || !ok {
		t.Error("a version is the same point as itself, number or not")
	}
	if _, ok := object.Version("").Compare(""); ok {
		t.Error("two unknown versions are not known to be the same point")
	}
}

// Every length is compared by its own way; of each, every byte at every place.
func TestVersionsOfEveryLengthAreComparedByTheirDigits(t *testing.T) {
	for n := 1; n <= 20; n++ {
		base := strings.Repeat("5", n)
		for at := range n {
			for c := range 256 {
				other := base[:at] + string([]byte{byte(c)}) + base[at+1:]
				want, comparable := c-'5', c >= '0' && c <= '9' && (at > 0 || c != '0')
				if order, ok := object.Version(other).Compare(object.Version(base)); ok != comparable ||
					ok && (order < 0 != (want < 0) || order > 0 != (want > 0)) {
					t.Fatalf("Compare(%q, %q) = %d, %v", other, base, order, ok)
				}
				if order, ok := object.Version(base).Compare(object.Version(other)); ok != comparable ||
					ok && (order < 0 != (want > 0) || order > 0 != (want < 0)) {
					t.Fatalf("Compare(%q, %q) = %d, %v", base, other, order, ok)
				}
				if at+1 < n && comparable && want != 0 { // what comes first counts
					later := base[:at+1] + "9" + base[at+2:]
					if order, ok := object.Version(other).Compare(object.Version(later)); !ok || order < 0 != (want < 0) {
						t.Fatalf("Compare(%q, %q) = %d, %v", other, later, order, ok)
					}
				}
			}
		}
	}
}

func FuzzVersionCompareAgreesWithBigNumbers(f *testing.F) {
	f.Add("1", "2")
	f.Add("18446744073709551616", "9")
	f.Add("0", "1")
	f.Add("x", "1")
	f.Fuzz(func(t *testing.T, a, b string) {
		order, ok := object.Version(a).Compare(object.Version(b))
		back, backOK := object.Version(b).Compare(object.Version(a))
		if ok != backOK || (order < 0) != (back > 0) {
			t.Fatalf("Compare(%q, %q) = %d, %v but the other way round %d, %v", a, b, order, ok, back, backOK)
		}
		if !object.Version(a).Ordered() || !object.Version(b).Ordered() {
			return
		}
		x, _ := new(big.Int).SetString(a, 10)
		y, _ := new(big.Int).SetString(b, 10)
		if want := x.Cmp(y); (want < 0) != (order < 0) || (want > 0) != (order > 0) {
			t.Fatalf("Compare(%q, %q) = %d, as numbers %d", a, b, order, want)
		}
	})
}

func TestItemDecodesOnDemand(t *testing.T) {
	calls := 0
	it := object.Item[string]{Encoded: []byte("x"), Decode: func(b []byte) (string, error) {
		calls++
		if string(b) != "x" {
			return "", errors.New("other bytes")
		}
		return "decoded", nil
	}}
	if calls != 0 {
		t.Fatal("decoded before Object was called")
	}
	got, err := it.Object()
	if err != nil || got != "decoded" || calls != 1 {
		t.Errorf("Object = %q, %v after %d calls", got, err, calls)
	}
	plain := object.Item[string]{Value: "v"}
	if got, err := plain.Object(); err != nil || got != "v" {
		t.Errorf("Object = %q, %v", got, err)
	}
}

func TestAnUnknownUIDMayBeAnyObject(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{{"", "", true}, {"a", "", true}, {"", "b", true}, {"a", "a", true}, {"a", "b", false}} {
		if got := object.SameObject(c.a, c.b); got != c.same {
			t.Errorf("SameObject(%q, %q) = %v", c.a, c.b, got)
		}
	}
}

func TestChangeTypesHaveNames(t *testing.T) {
	for typ, want := range map[object.ChangeType]string{
		object.Added: "Added", object.ReplaceAbort: "ReplaceAbort", 0: "ChangeType(0)", 99: "ChangeType(99)",
	} {
		if got := typ.String(); got != want {
			t.Errorf("the change type %d is named %q, want %q", uint8(typ), got, want)
		}
	}
}
