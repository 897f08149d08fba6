package share_test

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/mirador-k8s/mirador/dev/testpods"
	"github.com/mirador-k8s/mirador/internal/share"
)

func TestStringsReplacesEqualStringsByOne(t *testing.T) {
	strings := share.NewStrings(4000)
	set := testpods.New(1, 1)
	a, b := set.Pod(1), set.Pod(2)
	want := b.DeepCopy()
	strings.Share(a)
	strings.Share(b)
	if !reflect.DeepEqual(b, want) {
		t.Fatalf("Strings.Share changed the pod at %s", share.Diff(b, want))
	}
	if unsafe.StringData(a.Spec.ServiceAccountName) != unsafe.StringData(b.Spec.ServiceAccountName) {
		t.Error("equal strings are not shared")
	}
	x := map[string]any{"name": []any{string([]byte("value")), map[string]any{"key": string([]byte("value"))}}}
	strings.Share(x)
	first, second := x["name"].([]any)[0].(string), x["name"].([]any)[1].(map[string]any)["key"].(string)
	if first != "value" || unsafe.StringData(first) != unsafe.StringData(second) {
		t.Errorf("equal strings in interfaces are not shared: %v", x)
	}
	for i := range uint64(300) {
		obj, want := object(i), object(i)
		strings.Share(obj)
		if !reflect.DeepEqual(obj, want) {
			t.Fatalf("seed %d: differs at %s", i, share.Diff(obj, want))
		}
	}
}
