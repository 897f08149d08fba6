package query

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// blob is an object as a mirror stores it: its bytes.
type blob struct{ raw []byte }

var blobCodec = &object.Codec[*blob]{
	Encode: func(dst []byte, b *blob) ([]byte, error) { return append(dst, b.raw...), nil },
	Decode: func(encoded []byte) (*blob, error) { return &blob{encoded}, nil },
	Lends:  true,
}

// blobBytes appends an entry's bytes to dst, in any layout.
func blobBytes(e *store.Entry[*blob], dst []byte) []byte {
	if out, ok := e.AppendEncoded(dst); ok {
		return out
	}
	return append(dst, e.Object().raw...)
}

// testStore is a store with one resource of one cluster.
type testStore struct {
	*store.Writer[*blob]
	version int
}

func newStore(t testing.TB, layout store.Layout, indexed bool) *testStore {
	t.Helper()
	o := store.Options[*blob]{Layout: layout, Codec: blobCodec}
	if indexed {
		o.Indexes = map[string]store.IndexFunc[*blob]{namespaceIndex: func(b *blob) ([]string, error) {
			ns, _ := NewDoc(b.raw).Lookup(mustPath(t, "metadata.namespace"))
			text, _ := ns.(string)
			return []string{text}, nil
		}, labelIndex: func(b *blob) (values []string, _ error) {
			for name, value := range NewDoc(b.raw).Labels() {
				values = append(values, name+"="+value)
			}
			return values, nil
		}}
	}
	w, err := store.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return &testStore{Writer: w}
}

func (s *testStore) put(key object.Key, raw []byte) {
	s.version++
	s.Put(object.Item[*blob]{Key: key, Version: object.Version(strconv.Itoa(s.version)),
		Size: len(raw), Value: &blob{raw}})
}

func (s *testStore) snapshot() *store.Snapshot[*blob] { return s.Reader().Snapshot() }

// podStore returns a store with n pods of testPod.
func podStore(t testing.TB, n int, layout store.Layout) *testStore {
	t.Helper()
	s := newStore(t, layout, true)
	s.Begin()
	for i := range n {
		s.put(object.NewKey(fmt.Sprintf("ns-%d", i%10), fmt.Sprintf("web-%d", i)), testPod(i))
	}
	s.Commit()
	return s
}

func newEngine(t testing.TB, o options) *Engine[*blob] {
	t.Helper()
	e, err := newEngineWith(blobBytes, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func mustSelect(t testing.TB, labels, fields, where string) Selection {
	t.Helper()
	s, err := ParseSelection(labels, fields, where)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustOrder(t testing.TB, text string) Order {
	t.Helper()
	o, err := ParseOrder(text)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func mustList(t testing.TB, e *Engine[*blob], req Request, views ...View[*blob]) *Result[*blob] {
	t.Helper()
	res, err := e.List(context.Background(), req, views)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func wantError(t testing.TB, e *Engine[*blob], is error, req Request, views ...View[*blob]) error {
	t.Helper()
	res, err := e.List(context.Background(), req, views)
	if !errors.Is(err, is) || res != nil {
		t.Fatalf("List returned %v, %v, want %v", res, err, is)
	}
	return err
}

func names(res *Result[*blob]) (out []string) {
	for _, it := range res.Items {
		out = append(out, it.Cluster+":"+string(it.Entry.Key))
	}
	return out
}
