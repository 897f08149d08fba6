package testpods

import (
	"bytes"
	"encoding/json"
	"reflect"
	"runtime"
	"strconv"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
)

func TestPodsDependOnlyOnSeedAndNumber(t *testing.T) {
	a, b := New(7, 50), New(7, 50)
	for _, i := range []int{0, 1, 49, 50, 12345} {
		if !reflect.DeepEqual(a.Pod(i), b.Pod(i)) {
			t.Errorf("pod %d differs between two sets of the same seed", i)
		}
		if !reflect.DeepEqual(a.Changed(a.Pod(i), i), b.Changed(b.Pod(i), i)) {
			t.Errorf("the change of pod %d differs between two sets of the same seed", i)
		}
	}
	if reflect.DeepEqual(a.Pod(3), New(8, 50).Pod(3)) {
		t.Error("another seed gives the same pod")
	}
}

func TestEveryPodHasItsOwnIdentity(t *testing.T) {
	set := New(1, 40)
	seen := map[string]int{}
	once := func(i int, what, value string) {
		if other, dup := seen[what+value]; dup {
			t.Fatalf("pods %d and %d have the same %s %s", other, i, what, value)
		}
		seen[what+value] = i
	}
	namespaces := map[string]bool{}
	for i := range 4000 {
		p := set.Pod(i)
		if key := p.Namespace + "/" + p.Name; set.Key(i) != key {
			t.Fatalf("the key of pod %d is %s, want %s", i, set.Key(i), key)
		}
		once(i, "key", p.Namespace+"/"+p.Name)
		once(i, "uid", string(p.UID))
		once(i, "version", p.ResourceVersion)
		for _, c := range p.Status.ContainerStatuses {
			once(i, "container", c.ContainerID)
		}
		namespaces[p.Namespace] = true
	}
	if len(namespaces) != namespaceCount {
		t.Errorf("%d namespaces, want %d", len(namespaces), namespaceCount)
	}
}

func TestSuffixesDoNotRepeat(t *testing.T) {
	seen := make(map[string]bool, 1_000_000)
	for i := range 1_000_000 {
		s := suffix(i)
		if seen[s] {
			t.Fatalf("%s comes twice", s)
		}
		seen[s] = true
	}
}

func TestSiblingsAreAlikeAndTemplatesAreNot(t *testing.T) {
	set := New(1, 10)
	a, sibling, other := set.Pod(3), set.Pod(13), set.Pod(4)
	if !reflect.DeepEqual(a.Labels, sibling.Labels) ||
		!reflect.DeepEqual(a.Spec.Containers[0].Env, sibling.Spec.Containers[0].Env) {
		t.Error("pods of one template differ in labels or environment")
	}
	if a.Spec.Volumes[1].Name == sibling.Spec.Volumes[1].Name {
		t.Error("two pods have the same kube-api-access volume")
	}
	for what, same := range map[string]bool{
		"labels": reflect.DeepEqual(a.Labels, other.Labels),
		"image":  a.Spec.Containers[0].Image == other.Spec.Containers[0].Image,
		"env":    reflect.DeepEqual(a.Spec.Containers[0].Env, other.Spec.Containers[0].Env),
		"args":   reflect.DeepEqual(a.Spec.Containers[1].Args, other.Spec.Containers[1].Args),
	} {
		if same {
			t.Errorf("two templates have the same %s", what)
		}
	}
}

func TestPodsShareNoMemory(t *testing.T) {
	set := New(1, 10)
	a, b := stringsOf(set.Pod(3)), stringsOf(set.Pod(3))
	if len(a) < 100 {
		t.Fatalf("found only %d strings in a pod", len(a))
	}
	for p, s := range a {
		if _, both := b[p]; both {
			t.Errorf("two pods share the string %q", s)
		}
	}
	pod := set.Pod(3)
	before := stringsOf(pod)
	for p, s := range stringsOf(set.Changed(pod, 1)) {
		if _, both := before[p]; both && len(s) > 40 { // constants of this package are short
			t.Errorf("a pod and its change share the string %q", s)
		}
	}
}

// stringsOf returns the strings in a value by the addresses of their bytes.
func stringsOf(of any) map[*byte]string {
	found := map[*byte]string{}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			if s := v.String(); len(s) > 1 { // the runtime shares one-byte strings
				found[unsafe.StringData(s)] = s
			}
		case reflect.Pointer, reflect.Interface:
			if !v.IsNil() && v.Type().String() != "*time.Location" {
				walk(v.Elem())
			}
		case reflect.Struct:
			if v.Type().String() == "resource.Quantity" {
				return // its unit is a constant in the decoder
			}
			for i := range v.NumField() {
				walk(v.Field(i))
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Map:
			for _, k := range v.MapKeys() {
				walk(k)
				walk(v.MapIndex(k))
			}
		}
	}
	walk(reflect.ValueOf(of))
	return found
}

func TestPodsLookLikeThoseOfAServer(t *testing.T) {
	p := New(1, DefaultTemplates).Pod(77)
	if len(p.Spec.Containers) != 2 || len(p.Status.Conditions) != 5 || len(p.ManagedFields) != 3 ||
		len(p.OwnerReferences) != 1 {
		t.Errorf("containers %d, conditions %d, managers %d, owners %d",
			len(p.Spec.Containers), len(p.Status.Conditions), len(p.ManagedFields), len(p.OwnerReferences))
	}
	times := map[int64]bool{}
	for _, c := range p.Status.Conditions {
		times[c.LastTransitionTime.Unix()] = true
	}
	if len(times) != 5 {
		t.Errorf("the conditions have %d distinct times, want 5", len(times))
	}
	for _, m := range p.ManagedFields {
		if !json.Valid(m.FieldsV1.GetRawBytes()) {
			t.Errorf("the fields of %s are not JSON: %s", m.Manager, m.FieldsV1)
		}
	}
	if !bytes.Contains(p.ManagedFields[2].FieldsV1.GetRawBytes(), []byte(`k:{\"ip\":\"`+p.Status.PodIP+`\"}`)) {
		t.Errorf("the kubelet's fields do not contain the address: %s", p.ManagedFields[2].FieldsV1)
	}
}

func TestPodsRoundTripByProtobuf(t *testing.T) {
	set := New(1, DefaultTemplates)
	for i := range 200 {
		p := set.Pod(i)
		data, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if back := decode(data); !reflect.DeepEqual(p, back) {
			t.Fatalf("pod %d differs after a round trip", i)
		}
	}
}

func TestChangesAreStatusTransitions(t *testing.T) {
	set := New(1, DefaultTemplates)
	p := set.Pod(5)
	last := version(t, p)
	ready := true
	for n := 1; n < 6; n++ {
		next := set.Changed(p, n)
		if v := version(t, next); v <= last {
			t.Fatalf("version %d after %d", v, last)
		} else {
			last = v
		}
		if next.UID != p.UID || next.Name != p.Name || !reflect.DeepEqual(next.Spec, p.Spec) {
			t.Fatal("a change altered identity or spec")
		}
		if got := next.Status.ContainerStatuses[0].Ready; got == ready {
			t.Fatalf("change %d leaves readiness at %v", n, got)
		} else {
			ready = got
		}
		p = next
	}
	if p.Status.ContainerStatuses[0].RestartCount < 2 {
		t.Error("no restarts were counted")
	}
}

func version(t *testing.T, p *corev1.Pod) int {
	t.Helper()
	v, err := strconv.Atoi(p.ResourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSizesAreThoseOfRealPods(t *testing.T) {
	const n = 2000
	set := New(1, DefaultTemplates)
	size := 0
	for i := range n {
		size += set.Pod(i).Size()
	}
	before := heap()
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = set.Pod(i)
	}
	each := (heap() - before) / n
	runtime.KeepAlive(pods)
	t.Logf("%d bytes of protobuf, %d bytes of heap a pod", size/n, each)
	if size/n < 6000 || size/n > 7500 {
		t.Errorf("a pod has %d bytes of protobuf, want about 6900", size/n)
	}
	if each < 17_000 || each > 21_000 {
		t.Errorf("a pod takes %d bytes of heap, want about 19500", each)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkPod(b *testing.B) {
	set := New(1, DefaultTemplates)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		set.Pod(i)
	}
}
