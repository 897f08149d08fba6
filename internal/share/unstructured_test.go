package share_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mirador-k8s/mirador/internal/share"
)

type odd struct {
	name string
	list []string
	next *odd
}

// shape returns a random value as decoders produce them, and sometimes one that they never produce.
func shape(r *rand.Rand, depth int) any {
	words := []string{"", "a", "name", "metadata", "a somewhat longer value", "kube-api-access-x"}
	switch k := r.IntN(16); {
	case k < 4 && depth > 0:
		m := map[string]any{}
		for range r.IntN(12) {
			m[words[r.IntN(len(words))]+words[r.IntN(len(words))]] = shape(r, depth-1)
		}
		return m
	case k < 6 && depth > 0:
		s := make([]any, 0, r.IntN(3)+4)
		for range r.IntN(4) {
			s = append(s, shape(r, depth-1))
		}
		return s
	case k == 6:
		return int64(r.IntN(3)) * 1000
	case k == 7:
		return []any{0.5, math.Copysign(0, -1), math.Inf(1)}[r.IntN(3)]
	case k == 8:
		return r.IntN(2) == 0
	case k == 9:
		return nil
	case k == 10:
		return json.Number("12.50")
	case k == 11:
		return []any{
			map[string]any(nil), []any(nil), []any{}, map[string]string{"key": "value"}, []string{"one", "two"},
			[]byte("raw bytes"),
			map[int]string{1: "one", 2: "two"}, time.Unix(int64(r.IntN(3)), 0), odd{"odd", []string{"x1", "x2"}, nil},
			&odd{"odd", nil, &odd{name: "next"}}, [2]string{"first", "second"}, struct{}{}, uint8(7),
			map[string]*odd{"key": {name: "odd"}},
			map[string]int32{"five": 5}, [6]string{"in", "a", "row", "of", "six", ""}, map[[2]string]bool{{"a", "bb"}: true},
			map[string][]string{"key": {"value"}}, map[any]any{1: 2},
		}[r.IntN(19)]
	default:
		return words[r.IntN(len(words))]
	}
}

func object(seed uint64) *unstructured.Unstructured {
	r := rand.New(rand.NewPCG(seed, 0))
	m := map[string]any{"apiVersion": "v1", "kind": "Thing"}
	for range 8 {
		m[string(rune('a'+r.IntN(26)))+"Field"] = shape(r, 5)
	}
	return &unstructured.Unstructured{Object: m}
}

func TestP15_UnstructuredObjectsAreReturnedUnchanged(t *testing.T) {
	objects, different := 2000, 700
	if share.UnderRace {
		objects, different = 200, 70
	}
	for _, owned := range []bool{true, false} {
		table := share.NewTable()
		var stored, want []*unstructured.Unstructured
		var uses []share.Uses
		for i := range objects {
			seed := uint64(i % different)
			in, ref := object(seed), object(seed)
			before := bits(in)
			shared, used := table.Share(in, owned)
			out := shared.(*unstructured.Unstructured)
			uses = append(uses, used)
			if !owned && bits(in) != before {
				t.Fatalf("seed %d: an object that is not owned was written to", seed)
			}
			stored, want = append(stored, out), append(want, ref)
		}
		if table.Stats().Entries == 0 {
			t.Fatal("nothing was shared")
		}
		for i, out := range stored {
			// One type of map is compared by address, so Equal is not used here.
			if !reflect.DeepEqual(out, want[i]) {
				t.Fatalf("seed %d, owned %v: differs at %s", i%different, owned, share.Diff(out, want[i]))
			}
			if at := roomy(reflect.ValueOf(out), ""); at != "" {
				t.Fatalf("seed %d: the slice at %s has capacity beyond its length", i%different, at)
			}
			table.Release(uses[i])
		}
		if s := table.Stats(); s.Entries != 0 || s.Objects != 0 {
			t.Errorf("after the last release the table still has %+v", s)
		}
	}
}

func FuzzP15_UnstructuredJSON(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"a":null,"b":[],"c":{},"d":"","e":[{"name":"x1"},{"name":"x1"}]}`, `{"n":1,"f":1.5,"big":1e300,"neg":-0.0}`,
		`{"metadata":{"labels":{"app":"web","tier":"front"}},"spec":{"selector":{"app":"web","tier":"front"}}}`,
		`[["aa","aa"],["aa","aa"],"aa"]`, `"text"`, `12`,
	} {
		f.Add([]byte(text), []byte(text), true)
	}
	f.Fuzz(func(t *testing.T, first, second []byte, owned bool) {
		var objs, want []any
		for _, text := range [][]byte{first, second, first, second, first} {
			var a, b any
			if json.Unmarshal(text, &a) != nil || json.Unmarshal(text, &b) != nil {
				return
			}
			objs, want = append(objs, a), append(want, b)
		}
		table := share.NewTable()
		uses := make([]share.Uses, len(objs))
		for i, obj := range objs {
			before := bits(obj)
			objs[i], uses[i] = table.Share(obj, owned)
			if !owned && bits(obj) != before {
				t.Fatal("an object that is not owned was written to")
			}
		}
		for i, obj := range objs {
			if !reflect.DeepEqual(obj, want[i]) || !share.Equal(obj, want[i]) || share.Hash(obj) != share.Hash(want[i]) {
				t.Fatalf("differs at %q: %v, want %v", share.Diff(obj, want[i]), obj, want[i])
			}
			table.Release(uses[i])
		}
		if s := table.Stats(); s.Entries != 0 || s.Objects != 0 {
			t.Fatalf("after the last release the table still has %+v", s)
		}
		a, errA := json.Marshal(want[0])
		b, errB := json.Marshal(want[1]) // to DeepEqual the two zeros are equal
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if equal := string(a) == string(b); equal != share.Equal(want[0], want[1]) ||
			equal != (share.Diff(want[0], want[1]) == "") {
			t.Fatalf("Equal %v, Diff %q", share.Equal(want[0], want[1]), share.Diff(want[0], want[1]))
		}
	})
}
