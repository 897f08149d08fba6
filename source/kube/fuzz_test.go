package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// fuzzList checks a list of arbitrary bytes: reading ends, an error has a reason, and the sizes of reads make no
// difference.
func fuzzList(f *testing.F, enc encoding) {
	whole := enc.object(f, podList("42", "", pod("a", "7"), pod("b", "8")))
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add(enc.object(f, podList("", "")))
	f.Add([]byte("k8s\x00\x0a\x04\x0a\x02v1\x12\x04\x0a\x02\x12\x00"))
	f.Add([]byte(`{"metadata":{},"items":[{"metadata":{"name":"x"}},null,1,"s",[]],"other":[{}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		read := func(r io.Reader) (string, error) {
			in := &inbox{}
			in.reset(r)
			w, _ := wireFor(enc.contentType)
			pages := w.list(in)
			d := &typed[*corev1.Pod]{elem: podType, kind: typeMeta{"v1", "Pod"}}
			src := &Source[*corev1.Pod]{codec: d.codec(false)}
			decode, _ := src.decoder(w, encoded)
			var got string
			for {
				raw, ok, err := pages.next(true)
				if err != nil {
					return got, err
				}
				if !ok {
					t.Fatal("a blocking call gave neither an item nor an error")
				}
				kind, err := pages.head().item()
				if err != nil {
					return got, garbled(err)
				}
				item, err := decode(kind, raw)
				if err == nil && (item.Key == "" || item.Value == nil || item.Value.Kind != "Pod") {
					t.Fatalf("decoded to %+v", item)
				}
				if err == nil {
					if again, err := item.Codec.Decode(item.Encoded); err != nil || !reflect.DeepEqual(again, item.Value) {
						t.Fatalf("P15: the bytes kept decode to %+v, %v; the object was %+v", again, err, item.Value)
					}
				}
				got += string(item.Key) + ";"
			}
		}
		got, err := read(bytes.NewReader(b))
		if err != io.EOF {
			wantReason(t, err, source.Garbled)
		}
		again, err2 := read(iotest.OneByteReader(bytes.NewReader(b)))
		if got != again || (err == io.EOF) != (err2 == io.EOF) {
			t.Fatalf("byte by byte: %q, %v; at once: %q, %v", again, err2, got, err)
		}
	})
}

func FuzzListProtobuf(f *testing.F) { fuzzList(f, encodings[0]) }
func FuzzListJSON(f *testing.F)     { fuzzList(f, encodings[1]) }

// fuzzWatch checks the same of a watch.
func fuzzWatch(f *testing.F, enc encoding) {
	whole := join(aWatch(f, enc))
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add(enc.frame(f, "ERROR", enc.object(f, statusObject(410, "Expired", "old"))))
	f.Add([]byte("\x00\x00\x00\x09\x0a\x03ADD\x12\x02\x0a\x00"))
	f.Add([]byte(`{"type":"ADDED","object":{"metadata":{"name":"x"}}} {"type":"ADDED","object":null}{`))
	f.Fuzz(func(t *testing.T, b []byte) {
		read := func(r io.Reader) (n int, err error) {
			s := typedPods(t, answering(enc, r))
			changes, err := watchAll(t, s, source.WatchOptions{})
			for _, c := range changes {
				switch c.Type {
				case object.Added, object.Updated, object.Deleted:
					p, err := c.Item.Object()
					if err != nil && c.Type == object.Deleted && c.Item.Key != "" {
						continue // it is gone, whatever its last state was
					}
					if err != nil || c.Item.Key == "" || p == nil || p.Kind != "Pod" {
						t.Fatalf("decoded to %+v, %v", c, err)
					}
				case object.Bookmark:
					if c.Item.Version == "" {
						t.Fatal("a bookmark without a version")
					}
				case object.Undecodable:
					if c.Err == nil {
						t.Fatal("undecodable without a reason")
					}
				default:
					t.Fatalf("a change of type %d", c.Type)
				}
			}
			return len(changes), err
		}
		n, err := read(bytes.NewReader(b))
		if _, classified := errors.AsType[*source.Error](err); err != io.EOF && !classified {
			t.Fatalf("ended with %v", err)
		}
		n2, err2 := read(iotest.OneByteReader(bytes.NewReader(b)))
		if n != n2 || (err == io.EOF) != (err2 == io.EOF) {
			t.Fatalf("byte by byte: %d, %v; at once: %d, %v", n2, err2, n, err)
		}
	})
}

func FuzzWatchProtobuf(f *testing.F) { fuzzWatch(f, encodings[0]) }
func FuzzWatchJSON(f *testing.F)     { fuzzWatch(f, encodings[1]) }

// FuzzScanHeader holds the one-pass scan against encoding/json: both call the
// same bytes an object, both find the same header, and splicing keeps it valid.
func FuzzScanHeader(f *testing.F) {
	f.Add(encodeJSON(f, pod("a", "7")))
	f.Add([]byte(` { "metadata" : { "name" : "a\u0062\n", "uid":7, "namespace":null } , "x":[-0.5e+3,true,{}] } `))
	f.Add([]byte(`{"metadata":{"name":"a"},"metadata":{"name":"b"}}`))
	f.Add([]byte(`{"metadata":[],"kind":"K","a":"\ud800"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := scanHeader(b)
		trimmed := bytes.TrimLeft(b, " \t\r\n")
		want := json.Valid(b) && len(trimmed) > 0 && trimmed[0] == '{'
		if (err == nil) != want {
			t.Fatalf("scan says %v, encoding/json valid: %v", err, want)
		}
		if err != nil {
			return
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(b, &members); err != nil {
			t.Fatal(err)
		}
		if _, ok := members["kind"]; ok != h.hasKind {
			t.Fatalf("kind: %v, %v", ok, h.hasKind)
		}
		if len(members) == 0 {
			return
		}
		spliced, err := splice(b, typeMeta{"v1", "Pod"}, !h.hasAPIVersion, !h.hasKind)
		if err != nil {
			t.Fatal(err)
		}
		after := map[string]json.RawMessage{}
		if err := json.Unmarshal(spliced, &after); err != nil {
			t.Fatalf("%v in %s", err, spliced)
		}
		for k, v := range members {
			if !bytes.Equal(after[k], v) {
				t.Fatalf("%q changed from %s to %s", k, v, after[k])
			}
		}
		if _, ok := after["kind"]; !ok || len(after["apiVersion"]) == 0 {
			t.Fatalf("no kind in %s", spliced)
		}
	})
}

// TestScanFindsWhatDecodingFinds checks the header by value.
func TestScanFindsWhatDecodingFinds(t *testing.T) {
	h, err := scanHeader([]byte(`{"metadata":{"name":"first"},"spec":{"metadata":{"name":"no"}},` +
		`"metadata":{"labels":{"name":"no"},"n\u0061me":"a\"b\u00e9","namespace":"ns","uid":"u","resourceVersion":"12"}}`))
	if err != nil || string(h.name) != "a\"bé" || string(h.namespace) != "ns" || string(h.uid) != "u" ||
		string(h.version) != "12" || h.hasKind || h.hasAPIVersion {
		t.Errorf("%+v, %v", h, err)
	}
	deep := bytes.Repeat([]byte("["), 20_000)
	if _, err := scanHeader(append([]byte(`{"a":`), deep...)); !errors.Is(err, errSyntax) {
		t.Errorf("nested deep: %v", err)
	}
}
