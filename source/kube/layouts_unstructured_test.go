package kube

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

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

// TestP15_UnstructuredObjectsOfAnyShapeComeBack replaces and deletes objects that are maps while
// readers compare them. Half of them are like one that is there, and there are floats with no
// fraction among them, which JSON cannot tell from integers.
func TestP15_UnstructuredObjectsOfAnyShapeComeBack(t *testing.T) {
	for _, layout := range []store.Layout{store.Shared, store.Packed} {
		t.Run(layout.String(), func(t *testing.T) {
			var kept []object.Key
			m := newModelled(t, store.Options[*unstructured.Unstructured]{Layout: layout, ReadCache: -1, Codec: dynamicCodec,
				OnError: func(key object.Key, _ string, _ error) { kept = append(kept, key) }})
			stopReaders := m.readAlong()
			defer stopReaders()
			rnd := rand.New(rand.NewPCG(3, 4))
			for i := range 600 {
				key := object.Key(fmt.Sprint("object-", rnd.IntN(150)))
				if rnd.IntN(5) == 0 {
					m.delete(key)
				} else {
					m.put(anyShape(m, rnd, key, i%2 == 0))
				}
				m.commit()
			}
			stopReaders()
			m.end()
			if m.replaced < 100 || m.deleted < 20 || m.read.Load() == 0 {
				t.Errorf("%d were replaced, %d deleted and %d read", m.replaced, m.deleted, m.read.Load())
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

// anyShape gives an object for a key, and a copy of it.
func anyShape(m *modelled[*unstructured.Unstructured], rnd *rand.Rand, key object.Key,
	owned bool) (item object.Item[*unstructured.Unstructured], want *unstructured.Unstructured) {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Thing",
		"spec": randomValue(rnd, 5), "status": randomValue(rnd, 4)}}
	near := object.Key(fmt.Sprint("object-", rnd.IntN(150)))
	if was, had := m.states.Load(state{near, m.now[near]}); had && rnd.IntN(2) == 0 {
		obj = was.(*unstructured.Unstructured).DeepCopy()
		obj.Object["status"] = randomValue(rnd, 2)
	}
	return object.Item[*unstructured.Unstructured]{Key: key, Version: m.next(), Value: obj, Owned: owned}, obj.DeepCopy()
}

// The fuzzer chooses the shapes of the objects.
func FuzzP15_UnstructuredObjectsOfAnyShapeComeBack(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5,null,true,"text"],"b":{"a":1e3,"a":-0}}`), []byte(`"\u2028\ud800"`))
	f.Add([]byte(`[[[[{}]]],[]]`), []byte(` 12345678901234567890 `))
	f.Add([]byte(`{"text":"`+strings.Repeat("seven wagging dogs ", 30)+`"}`),
		[]byte(`{"text":"`+strings.Repeat("seven wagging dogs ", 29)+`"}`))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		if !json.Valid(first) || !json.Valid(second) {
			return
		}
		for _, layout := range []store.Layout{store.Shared, store.Packed} {
			m := newModelled(t, store.Options[*unstructured.Unstructured]{Layout: layout, ReadCache: -1})
			stopReaders := m.readAlong()
			defer stopReaders()
			for n, spec := range [][]byte{first, second, second, first, first, second} {
				key, version := object.Key(fmt.Sprint("object-", n%3)), m.next()
				raw := fmt.Sprintf(`{"metadata":{"name":"%s","resourceVersion":"%s"},"spec":%s}`, key, version, spec)
				item, want, err := decodedTwice(t, unstructuredCodec(), jsonWire{}, typeMeta{"v1", "Thing"}, []byte(raw))
				if err != nil { // a number that is too large for any
					break
				}
				if n%4 == 3 {
					item.Encoded, item.Owned = nil, false
				}
				m.put(item, want)
				if n%2 == 1 {
					m.commit()
				}
			}
			m.delete("object-1")
			m.commit()
			stopReaders()
			m.end()
		}
	})
}
