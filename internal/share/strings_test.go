package share_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/dev/testpods"
	"github.com/mirador-k8s/mirador/internal/share"
)

// decoded returns a copy of a pod that has each string in memory of its own.
func decoded(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	copied := &corev1.Pod{}
	if err := json.Unmarshal(text, copied); err != nil {
		t.Fatal(err)
	}
	return copied
}

func TestStringsReplacesEqualStringsByOne(t *testing.T) {
	strings := share.NewStrings(4000)
	set := testpods.New(1, 1)
	a, b := decoded(t, set.Pod(1)), decoded(t, set.Pod(2))
	want := b.DeepCopy()
	strings.Share(a)
	strings.Share(b)
	if !reflect.DeepEqual(b, want) {
		t.Fatalf("Strings.Share changed the pod at %s", share.Diff(b, want))
	}
	// A string may take the place of another one, depending on the hash's seed. So not each one is shared.
	equal, shared := 0, 0
	for key, value := range a.Labels {
		if value == b.Labels[key] && len(value) > 4 {
			equal++
			if unsafe.StringData(value) == unsafe.StringData(b.Labels[key]) {
				shared++
			}
		}
	}
	for i := range min(len(a.Spec.Volumes), len(b.Spec.Volumes)) {
		first, second := a.Spec.Volumes[i].Name, b.Spec.Volumes[i].Name
		if first == second {
			equal++
			if unsafe.StringData(first) == unsafe.StringData(second) {
				shared++
			}
		}
	}
	if equal == 0 || shared < equal/2 {
		t.Errorf("%d of %d equal strings are shared", shared, equal)
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
