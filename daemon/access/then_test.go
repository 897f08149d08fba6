package access

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
	"github.com/mirador-k8s/mirador/object"
)

// An object is in the intersection of two sets if it is in both, and equal intersections are described equally.
func TestAnIntersectionHasWhatIsInBothSets(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	var keys []object.Key
	for _, namespace := range []string{"", "a", "b", "c"} {
		for _, name := range []string{"x", "y", "z"} {
			keys = append(keys, object.NewKey(namespace, name))
		}
	}
	some := func() *query.Visible {
		v := &query.Visible{}
		for range rnd.IntN(3) {
			v.Namespaces = append(v.Namespaces, []string{"a", "b", "c"}[rnd.IntN(3)])
		}
		for range rnd.IntN(4) {
			v.Keys = append(v.Keys, keys[rnd.IntN(len(keys))])
		}
		for range rnd.IntN(3) {
			v.Names = append(v.Names, []string{"x", "y", "z"}[rnd.IntN(3)])
		}
		simplify(v)
		return v
	}
	for range 5000 {
		a, b := some(), some()
		both := intersect(a, b)
		for _, key := range keys {
			if both.Contains(key) != (a.Contains(key) && b.Contains(key)) {
				t.Fatalf("seed %d: %s: %+v and %+v have %+v", seed, key, a, b, both)
			}
		}
		if other := intersect(b, a); !other.Equal(both) || !slices.IsSorted(both.Keys) {
			t.Fatalf("seed %d: %+v and %+v have %+v, and %+v", seed, a, b, both, other)
		}
	}
}

func TestRightsOfThenAreNotKnownWithoutRoles(t *testing.T) {
	fl, err := fleet.New(fleet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[Mode]string{ModeReview: "not those of its roles", ModeRules: "not those of its roles",
		ModeRBAC: "not known yet", ModeNone: "<nil>"} {
		a, err := New(fl, Options{Mode: mode, Config: &Config{Clusters: []ClusterConfig{{Name: "eu", Authorization: mode}}}})
		if err != nil {
			t.Fatal(err)
		}
		then, err := a.Then(t.Context(), "eu", time.Now(), nil)
		if then != nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("mode %s: %v, want %q", mode, err, want)
		}
	}
}
