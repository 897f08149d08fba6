package kube

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// everyKind gives each kind of the client-go scheme that is an object of its own, with
// its codec, and a function that makes one at random as it would come off the wire.
func everyKind(t *testing.T) map[string]*typed[runtime.Object] {
	kinds := map[string]*typed[runtime.Object]{}
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		zero := reflect.New(typ).Interface()
		if _, ok := zero.(metav1.ObjectMetaAccessor); !ok || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		kind := &typed[runtime.Object]{elem: typ}
		kind.kind.apiVersion, kind.kind.kind = gvk.ToAPIVersionAndKind()
		kinds[gvk.String()] = kind
	}
	if len(kinds) < 80 {
		t.Fatalf("the scheme has %d kinds only", len(kinds))
	}
	return kinds
}

func randomObject(t *testing.T, kind *typed[runtime.Object], seed int64) runtime.Object {
	t.Helper()
	obj := reflect.New(kind.elem).Interface().(runtime.Object)
	randfill.NewWithSeed(seed).NilChance(0.4).NumElements(0, 3).MaxDepth(12).Funcs(
		func(s *string, c randfill.Continue) { *s = strings.Repeat("text ", c.Intn(4)) + fmt.Sprint(c.Intn(30)) },
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse([]string{"100m", "1Gi", "1.5", "12345678901234567890123", "0"}[c.Intn(5)])
		},
		func(f *metav1.FieldsV1, c randfill.Continue) { f.SetRawString(fmt.Sprintf(`{"f:%d":{}}`, c.Intn(9))) },
		func(r *runtime.RawExtension, c randfill.Continue) { r.Raw = []byte(fmt.Sprintf(`{"n":%d}`, c.Intn(9))) },
		func(o *runtime.Object, _ randfill.Continue) { *o = nil },
	).Fill(obj)
	obj.GetObjectKind().SetGroupVersionKind(kind.kind.gvk())
	meta := obj.(metav1.ObjectMetaAccessor).GetObjectMeta()
	meta.SetName(fmt.Sprint("object-", seed))
	meta.SetNamespace("default")
	meta.SetResourceVersion(fmt.Sprint(seed + 1))
	return obj
}

// wireItem is an object as a source delivers it, and another decoding of the same bytes to
// compare with.
func wireItem(t *testing.T, kind *typed[runtime.Object], obj runtime.Object, asJSON bool) (item object.Item[runtime.Object], want runtime.Object) {
	t.Helper()
	codec, wire := kind.codec(false), wire(protobufWire{})
	raw, err := appendObject(nil, obj)
	if asJSON || codec.protobuf == nil {
		wire = jsonWire{}
		raw, err = json.Marshal(obj)
	}
	if err != nil {
		t.Fatal(err)
	}
	src := &Source[runtime.Object]{codec: codec}
	for _, into := range []any{&item, &want} {
		decode, err := src.decoder(wire, encoded)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(kind.kind, raw)
		if err != nil {
			t.Fatalf("%s does not decode from its own encoding: %v", kind.kind.kind, err)
		}
		switch into := into.(type) {
		case *object.Item[runtime.Object]:
			*into = got
		case *runtime.Object:
			*into = got.Value
		}
	}
	return item, want
}

// TestP15_EveryKindComesBackFromEveryLayout puts objects of every kind into one store of
// each layout, as they come off both wires, replaces and deletes some while readers look,
// and compares each that is read with its own decoding.
func TestP15_EveryKindComesBackFromEveryLayout(t *testing.T) {
	for _, layout := range []store.Layout{store.Shared, store.Packed} {
		t.Run(layout.String(), func(t *testing.T) {
			bare := map[object.Key]bool{}
			w, err := store.New(store.Options[runtime.Object]{Layout: layout, ReadCache: 8,
				OnError: func(key object.Key, _ string, err error) {
					if !bare[key] { // what came with its bytes can be packed
						t.Errorf("%s: %v", key, err)
					}
				}})
			if err != nil {
				t.Fatal(err)
			}
			stopReaders := keepReading(w.Reader())
			want := map[object.Key]runtime.Object{}
			seed := int64(0)
			rnd := rand.New(rand.NewPCG(1, 2))
			for name, kind := range everyKind(t) {
				w.Begin()
				for range 4 {
					item, decoded := wireItem(t, kind, randomObject(t, kind, seed), seed%3 == 0)
					item.Key = object.Key(name + "/" + string(item.Key))
					if seed%4 == 3 { // not with its bytes, as after a transform
						item.Encoded, item.Owned = nil, false
						bare[item.Key] = true
					}
					w.Put(item)
					want[item.Key] = decoded
					seed++
				}
				for key := range want { // some go, and what others were told from with them
					if rnd.IntN(8) == 0 {
						w.Delete(key, "")
						delete(want, key)
					}
					break
				}
				w.Commit()
			}
			stopReaders()
			snap := w.Reader().Snapshot()
			if snap.Len() != len(want) {
				t.Fatalf("%d objects, want %d", snap.Len(), len(want))
			}
			for key, obj := range want {
				got, ok := snap.Get(key)
				if !ok || !reflect.DeepEqual(got, obj) {
					t.Errorf("%s came back as %+v, want %+v", key, got, obj)
				}
			}
		})
	}
}

// keepReading reads whatever there is, from three goroutines, until the returned function is called.
func keepReading[T any](r *store.Reader[T]) (stop func()) {
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				for e := range r.Snapshot().Entries() {
					_ = reflect.DeepEqual(e.Object(), nil)
					select {
					case <-done:
						return
					default:
					}
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	return sync.OnceFunc(func() { close(done); readers.Wait() })
}

// randomValue is a JSON value of any shape.
func randomValue(rnd *rand.Rand, depth int) any {
	switch n := rnd.IntN(9); {
	case n < 2 && depth > 0:
		m := map[string]any{}
		for range rnd.IntN(5) {
			m[fmt.Sprint("key", rnd.IntN(12))] = randomValue(rnd, depth-1)
		}
		return m
	case n < 4 && depth > 0:
		list := make([]any, rnd.IntN(4))
		for i := range list {
			list[i] = randomValue(rnd, depth-1)
		}
		return list
	case n == 4:
		return rnd.Int64() - rnd.Int64()
	case n == 5:
		return []float64{0.5, -1e300, 1, 1e21, 3.25}[rnd.IntN(5)]
	case n == 6:
		return rnd.IntN(2) == 0
	case n == 7:
		return nil
	}
	return []string{"", "text", "ünï\u2028code", strings.Repeat("long ", 50), fmt.Sprint(rnd.IntN(1000))}[rnd.IntN(5)]
}

// TestP15_UnstructuredObjectsOfAnyShapeComeBack does the same for objects that are maps,
// floats with no fraction among them, which JSON cannot tell from integers.
func TestP15_UnstructuredObjectsOfAnyShapeComeBack(t *testing.T) {
	for _, layout := range []store.Layout{store.Shared, store.Packed} {
		t.Run(layout.String(), func(t *testing.T) {
			var kept []object.Key
			w, err := store.New(store.Options[*unstructured.Unstructured]{Layout: layout, ReadCache: -1, Codec: dynamicCodec,
				OnError: func(key object.Key, _ string, _ error) { kept = append(kept, key) }})
			if err != nil {
				t.Fatal(err)
			}
			defer keepReading(w.Reader())()
			rnd := rand.New(rand.NewPCG(3, 4))
			want := map[object.Key]map[string]any{}
			for i := range 600 {
				key := object.Key(fmt.Sprint("object-", rnd.IntN(150)))
				w.Begin()
				if rnd.IntN(5) == 0 {
					w.Delete(key, "")
					delete(want, key)
				} else {
					obj := map[string]any{"apiVersion": "v1", "kind": "Thing", "spec": randomValue(rnd, 5), "status": randomValue(rnd, 4)}
					want[key] = runtime.DeepCopyJSON(obj)
					w.Put(object.Item[*unstructured.Unstructured]{Key: key, Version: object.Version(fmt.Sprint(i + 1)),
						Value: &unstructured.Unstructured{Object: obj}, Owned: i%2 == 0})
				}
				w.Commit()
			}
			for key, obj := range want {
				got, ok := w.Reader().Get(key)
				if !ok || !reflect.DeepEqual(got.Object, obj) {
					t.Errorf("%s came back as %v, want %v", key, got, obj)
				}
			}
			if layout == store.Packed && len(kept) == 0 {
				t.Error("a float without a fraction cannot be packed, and none was reported")
			}
			if slices.Contains(kept, "") {
				t.Error("an object that is kept live was reported without its key")
			}
		})
	}
}

// TestP15_AMessageThatLooksLikeJSONIsAMessage: the first byte of a message is a line feed
// and the second the length of its metadata, which may be that of a brace.
func TestP15_AMessageThatLooksLikeJSONIsAMessage(t *testing.T) {
	kind := &typed[runtime.Object]{elem: podType, kind: typeMeta{"v1", "Pod"}}
	p := pod("a", "7")
	for p.ObjectMeta.Size() < '{' {
		p.Name += "a"
	}
	if p.ObjectMeta.Size() != '{' {
		t.Fatalf("the metadata takes %d bytes", p.ObjectMeta.Size())
	}
	item, want := wireItem(t, kind, p, false)
	got, err := item.Codec.Decode(item.Encoded)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("came back as %+v, %v", got, err)
	}
}
