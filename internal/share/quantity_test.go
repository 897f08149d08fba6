package share

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestStringsSharesKeysOfResourceLists(t *testing.T) {
	s := NewStrings(1 << 16)
	const many = 12 // more than a small map has room for
	list := func() corev1.ResourceList {
		l := corev1.ResourceList{}
		for i := range many {
			q := resource.MustParse("1500m")
			if i%3 == 0 {
				q = resource.MustParse("123456789012345678901234567890") // has an exact part
			}
			_ = q.String() // which it remembers
			l[corev1.ResourceName(strings.Clone("example.com/device-"+string(rune('a'+i))))] = q
		}
		return l
	}
	one, two, untouched := list(), list(), list()
	s.Share(&corev1.Container{Resources: corev1.ResourceRequirements{Limits: one}})
	s.Share(&corev1.Container{Resources: corev1.ResourceRequirements{Limits: two}})
	if !reflect.DeepEqual(one, untouched) || !reflect.DeepEqual(two, untouched) {
		t.Fatalf("sharing changed a list: %v and %v, not %v", one, two, untouched)
	}
	at := map[string]unsafe.Pointer{}
	for k := range one {
		at[string(k)] = unsafe.Pointer(unsafe.StringData(string(k)))
	}
	same := 0
	for k := range two {
		if at[string(k)] == unsafe.Pointer(unsafe.StringData(string(k))) {
			same++
		}
	}
	if same < many-2 { // two strings may fall on one place of the cache
		t.Errorf("%d of %d keys are one string", same, many)
	}
	for k, q := range two {
		if other := one[k]; q.Cmp(other) != 0 || q.String() != other.String() {
			t.Errorf("%s is %s, not %s", k, q.String(), other.String())
		}
	}
}
