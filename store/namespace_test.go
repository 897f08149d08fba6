package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mirador-k8s/mirador/object"
)

// In every layout and after every kind of write, ByNamespace equals an index function on the objects.
func TestByNamespaceIndexesTheNamespacesOfKeys(t *testing.T) {
	byName := func(v *thing) ([]string, error) {
		namespace, _ := object.Key(v.Name).Split()
		return []string{namespace}, nil
	}
	for _, layout := range []Layout{Live, Shared, Packed} {
		w, err := New(Options[*thing]{Layout: layout, Codec: jsonThings,
			Indexes: map[string]IndexFunc[*thing]{"keys": ByNamespace[*thing](), "objects": byName}})
		if err != nil {
			t.Fatal(err)
		}
		item := func(n, version int) object.Item[*thing] {
			key := fmt.Sprintf("ns-%d/thing-%d", n%7, n)
			if n%11 == 0 {
				key = fmt.Sprintf("thing-%d", n)
			}
			return object.Item[*thing]{Key: object.Key(key), Version: object.Version(fmt.Sprint(version)),
				Value: &thing{Name: key, Color: fmt.Sprint(version)}}
		}
		w.BeginReplace()
		for n := range 300 {
			w.Stage(item(n, 1))
		}
		w.CommitReplace("1", nil)
		w.Begin()
		for n := 200; n < 500; n++ {
			w.Put(item(n, 2))
		}
		for n := 0; n < 500; n += 3 {
			w.Delete(item(n, 0).Key, "3")
		}
		w.Commit()
		if err := w.AddIndexes(map[string]IndexFunc[*thing]{"late": ByNamespace[*thing]()}); err != nil {
			t.Fatal(err)
		}
		snap := w.Reader().Snapshot()
		names := func(index, value string) (list []string) {
			for v := range snap.ByIndex(index, value) {
				list = append(list, v.Name)
			}
			slices.Sort(list)
			return list
		}
		x, err := snap.Index("objects")
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Collect(x.Values())
		for _, index := range []string{"keys", "late"} {
			x, err := snap.Index(index)
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Collect(x.Values()); !slices.Equal(got, want) || len(want) != 8 {
				t.Fatalf("%v, %s: values %q, want %q", layout, index, got, want)
			}
			for _, value := range want {
				if got, want := names(index, value), names("objects", value); !slices.Equal(got, want) || len(got) == 0 {
					t.Errorf("%v, %s of %q: %q, want %q", layout, index, value, got, want)
				}
			}
		}
	}
}

// ByNamespace reads only keys.
func TestAddingByNamespaceDecodesNoObject(t *testing.T) {
	decoded := 0
	codec := &object.Codec[*thing]{Encode: jsonThings.Encode,
		Decode: func(b []byte) (*thing, error) { decoded++; return jsonThings.Decode(b) }}
	w, err := New(Options[*thing]{Layout: Packed, Codec: codec, ReadCache: -1})
	if err != nil {
		t.Fatal(err)
	}
	w.Begin()
	for n := range 50 {
		key := fmt.Sprintf("ns-%d/thing-%d", n%5, n)
		w.Put(object.Item[*thing]{Key: object.Key(key), Version: "1", Value: &thing{Name: key}})
	}
	w.Commit()
	decoded = 0
	if err := w.AddIndexes(map[string]IndexFunc[*thing]{"namespace": ByNamespace[*thing]()}); err != nil {
		t.Fatal(err)
	}
	if x, err := w.Reader().Snapshot().Index("namespace"); err != nil || x.Len("ns-3") != 10 || decoded != 0 {
		t.Errorf("%d objects in the index, %d decoded, %v", x.Len("ns-3"), decoded, err)
	}
	if err := w.AddIndexes(map[string]IndexFunc[*thing]{"color": func(v *thing) ([]string,
		error) {
		return []string{v.Color}, nil
	}}); err != nil || decoded != 50 {
		t.Errorf("%d were decoded for an index of objects, %v", decoded, err)
	}
}
