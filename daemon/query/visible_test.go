package query

import (
	"testing"

	"github.com/mirador-k8s/mirador/object"
)

func TestVisibleContains(t *testing.T) {
	some := &Visible{Namespaces: []string{"a", "shop"}, Keys: []object.Key{"node-1", "web/front"}, Names: []string{"ca"}}
	for key, want := range map[object.Key]bool{
		"shop/any": true, "a/any": true, "b/any": false, "web/front": true, "web/back": false, "web/ca": true, "ca": true,
		"node-1": true, "node-2": false, "shop": false, "sho/p": false, "": false,
	} {
		if got := some.Contains(key); got != want {
			t.Errorf("%q is visible: %v, want %v", key, got, want)
		}
		if (&Visible{}).Contains(key) || !(&Visible{All: true}).Contains(key) {
			t.Errorf("%q is in the empty set, or not in the whole one", key)
		}
	}
	if some.Empty() || !(&Visible{}).Empty() || (&Visible{All: true}).Empty() {
		t.Error("Empty is wrong")
	}
	if !some.Equal(some) || some.Equal(&Visible{}) || (&Visible{All: true}).Equal(&Visible{}) {
		t.Error("Equal is wrong")
	}
}
