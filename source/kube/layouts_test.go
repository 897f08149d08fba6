package kube

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// kindOfScheme is a kind of the client-go scheme that is an object of its own, with its codec.
type kindOfScheme struct {
	name string
	*typed[runtime.Object]
	codec    codec[runtime.Object]
	unpacked *atomic.Int64 // how often a store had to decode one
}

// everyKind returns all kinds, always in the same order.
func everyKind(t testing.TB) []kindOfScheme {
	t.Helper()
	var kinds []kindOfScheme
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		zero := reflect.New(typ).Interface()
		if _, ok := zero.(metav1.ObjectMetaAccessor); !ok || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		kind := &typed[runtime.Object]{elem: typ}
		kind.kind.apiVersion, kind.kind.kind = gvk.ToAPIVersionAndKind()
		k := kindOfScheme{gvk.String(), kind, kind.codec(false), new(atomic.Int64)}
		decode := k.codec.kept.Decode
		k.codec.kept.Decode = func(encoded []byte) (runtime.Object, error) {
			k.unpacked.Add(1)
			return decode(encoded)
		}
		kinds = append(kinds, k)
	}
	if len(kinds) < 80 {
		t.Fatalf("the scheme has %d kinds only", len(kinds))
	}
	slices.SortFunc(kinds, func(a, b kindOfScheme) int { return strings.Compare(a.name, b.name) })
	return kinds
}

// randomObject returns a random object of the kind.
func (k kindOfScheme) randomObject(seed int64) runtime.Object {
	obj := reflect.New(k.elem).Interface().(runtime.Object)
	randfill.NewWithSeed(seed).NilChance(0.4).NumElements(0, 2).MaxDepth(12).Funcs(
		func(s *string, c randfill.Continue) { *s = strings.Repeat("text ", c.Intn(4)) + fmt.Sprint(c.Intn(30)) },
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse([]string{"100m", "1Gi", "1.5", "12345678901234567890123", "0"}[c.Intn(5)])
		},
		func(f *metav1.FieldsV1, c randfill.Continue) { f.SetRawString(fmt.Sprintf(`{"f:%d":{}}`, c.Intn(9))) },
		func(r *runtime.RawExtension, c randfill.Continue) { r.Raw = []byte(fmt.Sprintf(`{"n":%d}`, c.Intn(9))) },
		func(o *runtime.Object, _ randfill.Continue) { *o = nil },
	).Fill(obj)
	obj.GetObjectKind().SetGroupVersionKind(k.kind.gvk())
	metaOf(obj).SetNamespace("default")
	return obj
}

func metaOf(obj runtime.Object) metav1.Object {
	return obj.(metav1.ObjectMetaAccessor).GetObjectMeta()
}

// wireItem is an object as a source delivers it, and another decoding of the same bytes to
// compare with.
func wireItem(t testing.TB, codec codec[runtime.Object], obj runtime.Object,
	asJSON bool) (item object.Item[runtime.Object], want runtime.Object) {
	t.Helper()
	wire := wire(protobufWire{})
	raw, err := appendObject(nil, obj)
	if asJSON || codec.protobuf == nil {
		wire = jsonWire{}
		raw, err = json.Marshal(obj)
	}
	if err != nil {
		t.Fatal(err)
	}
	item, want, err = decodedTwice(t, codec, wire, typeMeta{}, raw)
	if err != nil {
		t.Fatalf("%T does not decode from its own encoding: %v", obj, err)
	}
	return item, want
}

// decodedTwice returns the item that a source makes of an object, and another decoding of the object.
func decodedTwice[T any](t testing.TB, codec codec[T], w wire, kind typeMeta,
	raw []byte) (item object.Item[T], again T, err error) {
	t.Helper()
	src := &Source[T]{codec: codec}
	decode, err := src.decoder(w, encoded)
	if err != nil {
		t.Fatal(err)
	}
	if item, err = decode(kind, raw); err != nil {
		return item, again, err
	}
	other, err := decode(kind, raw)
	return item, other.Value, err
}

// A step of a script says what happens to which object, and in which encoding it arrives.
const (
	stepObject  = 3 << 0
	stepDo      = 3 << 2
	stepChange  = 1 << 2 // an annotation of what is there
	stepReplace = 2 << 2 // by another at random
	stepRemove  = 3 << 2
	stepJSON    = 1 << 4 // comes as JSON
	stepBare    = 1 << 5 // comes without its bytes, as after a transform
	stepCommit  = 1 << 6 // ends the batch
)

// aLife is a script in which objects of a kind are added, updated and deleted, in each encoding.
var aLife = []byte{
	stepReplace | 1, stepReplace | 2 | stepJSON, stepReplace | 3 | stepBare | stepCommit,
	stepChange | 1, stepReplace | 2, stepRemove | 3 | stepCommit,
	stepChange | 1 | stepBare, stepRemove | 2, stepReplace | 3 | stepJSON | stepCommit,
}

// anEnd is a script that deletes the remaining objects.
var anEnd = []byte{stepRemove | 1, stepRemove | 3 | stepCommit}

// play runs a script with objects of a kind.
func (k kindOfScheme) play(m *modelled[runtime.Object], seed int64, script []byte) {
	m.t.Helper()
	var random [4]runtime.Object // making one takes longer than all else
	for n, step := range script {
		name := fmt.Sprint("object-", step&stepObject)
		key := object.Key(k.name + "/" + name)
		if step&stepDo == stepRemove {
			m.delete(key)
		} else {
			if random[n%4] == nil {
				random[n%4] = k.randomObject(seed + int64(n))
			}
			obj := random[n%4].DeepCopyObject()
			metaOf(obj).SetName(name)
			if was, had := m.states.Load(state{key, m.now[key]}); had && step&stepDo == stepChange {
				obj = was.(runtime.Object).DeepCopyObject()
				metaOf(obj).SetAnnotations(map[string]string{"step": fmt.Sprint(n)})
			}
			metaOf(obj).SetResourceVersion(string(m.next()))
			item, want := wireItem(m.t, k.codec, obj, step&stepJSON != 0)
			item.Key = key
			if step&stepBare != 0 {
				item.Encoded, item.Owned = nil, false
			}
			m.put(item, want)
		}
		if step&stepCommit != 0 {
			m.commit()
		}
	}
	m.commit()
}

// Objects of every kind, decoded from both encodings, are put into stores of each layout, a few kinds into each. Some
// are replaced and deleted, and every object that is read meanwhile must equal another decoding of the stored version.
func TestP15_EveryKindComesBackFromEveryLayout(t *testing.T) {
	for _, layout := range []store.Layout{store.Shared, store.Packed} {
		t.Run(layout.String(), func(t *testing.T) {
			seed, read := int64(0), int64(0)
			for kinds := range slices.Chunk(everyKind(t), 12) {
				m := newModelled(t, store.Options[runtime.Object]{Layout: layout, ReadCache: -1})
				stopReaders := m.readAlong()
				defer stopReaders()
				for n, kind := range kinds {
					replaced, deleted, bare := m.replaced, m.deleted, m.bare
					kind.play(m, seed, aLife)
					seed += 100
					if m.replaced == replaced || m.deleted == deleted {
						t.Fatalf("%s: %d were replaced and %d deleted", kind.name, m.replaced-replaced, m.deleted-deleted)
					}
					// when they were encoded
					if tried := int64(m.bare - bare); layout == store.Packed && kind.unpacked.Load() <= tried {
						t.Fatalf("%s: none was ever unpacked", kind.name)
					}
					if n%3 == 0 { // including bases that other objects are encoded against
						kind.play(m, 0, anEnd)
					}
				}
				stopReaders()
				m.end()
				read += m.read.Load()
			}
			t.Logf("readers compared %d states", read)
			if read == 0 {
				t.Error("there were no reads")
			}
		})
	}
}

// The same with objects and scripts that the fuzzer chooses.
func FuzzP15_EveryKindComesBackFromEveryLayout(f *testing.F) {
	kinds := everyKind(f)
	for n := range 4 {
		f.Add(uint16(n*len(kinds)/4), int64(n), aLife)
	}
	f.Add(uint16(7), int64(7), append(slices.Clone(aLife), anEnd...))
	f.Fuzz(func(t *testing.T, which uint16, seed int64, script []byte) {
		for _, layout := range []store.Layout{store.Shared, store.Packed} {
			m := newModelled(t, store.Options[runtime.Object]{Layout: layout, ReadCache: 2})
			stopReaders := m.readAlong()
			defer stopReaders()
			kinds[int(which)%len(kinds)].play(m, seed, script[:min(len(script), 40)])
			stopReaders()
			m.end()
		}
	})
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
	item, want := wireItem(t, kind.codec(false), p, false)
	got, err := item.Codec.Decode(item.Encoded)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("came back as %+v, %v", got, err)
	}
}
