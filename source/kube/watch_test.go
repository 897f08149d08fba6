package kube

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// aWatch is a watch with one event of each kind.
func aWatch(t testing.TB, enc encoding) (frames [][]byte) {
	return [][]byte{
		enc.frame(t, "ADDED", enc.object(t, pod("a", "7"))),
		enc.frame(t, "BOOKMARK", enc.object(t, bookmark("8", true))),
		enc.frame(t, "MODIFIED", enc.object(t, pod("a", "9"))),
		enc.frame(t, "BOOKMARK", enc.object(t, bookmark("10", false))),
		enc.frame(t, "DELETED", enc.object(t, pod("a", "11"))),
	}
}

func join(frames [][]byte) []byte { return bytes.Join(frames, nil) }

func TestWatchGivesEveryKindOfEventInBothEncodings(t *testing.T) {
	for _, enc := range encodings {
		t.Run(enc.name, func(t *testing.T) {
			body := join(aWatch(t, enc))
			s := typedPods(t, append(enc.options, canned(enc.contentType+";stream=watch", body))...)
			changes, err := watchAll(t, s, source.WatchOptions{})
			if err != io.EOF {
				t.Fatalf("ended with %v", err)
			}
			type brief struct {
				what    object.ChangeType
				key     string
				version string
				end     bool
			}
			var got []brief
			for _, c := range changes {
				got = append(got, brief{c.Type, string(c.Item.Key), string(c.Item.Version), c.InitialEnd})
			}
			want := []brief{
				{object.Added, "web/a", "7", false},
				{object.Bookmark, "", "8", true},
				{object.Updated, "web/a", "9", false},
				{object.Bookmark, "", "10", false},
				{object.Deleted, "web/a", "11", false},
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
			if want := pod("a", "9"); !reflect.DeepEqual(changes[2].Item.Value, want) {
				t.Errorf("got %+v, want %+v", changes[2].Item.Value, want)
			}
		})
	}
}

func TestP10_ObjectsOfAWatchCarryTheirKind(t *testing.T) {
	enc := encodings[1]
	body := enc.frame(t, "ADDED", enc.object(t, pod("a", "7")))
	raw, err := watchAll(t, mustRaw(t, canned(jsonType, body)), source.WatchOptions{})
	if err != io.EOF || len(raw) != 1 {
		t.Fatal(raw, err)
	}
	obj, err := raw[0].Item.Object()
	if err != nil || string(obj.Bytes) != string(enc.object(t, pod("a", "7"))) {
		t.Errorf("raw: %s, %v", obj.Bytes, err)
	}
	u, err := watchAll(t, mustDynamic(t, canned(jsonType, body)), source.WatchOptions{})
	if err != io.EOF || u[0].Item.Value.GetKind() != "Pod" || u[0].Item.Value.GetAPIVersion() != "v1" {
		t.Errorf("dynamic: %v, %v", u, err)
	}
}

func TestWatchAsksForWhatItNeeds(t *testing.T) {
	for name, c := range map[string]struct {
		opts source.WatchOptions
		want url.Values
	}{
		"from a version": {source.WatchOptions{Version: "9"}, url.Values{"resourceVersion": {"9"}}},
		"with state": {source.WatchOptions{InitialState: true},
			url.Values{"sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"}}},
		"state and a time": {source.WatchOptions{InitialState: true, Version: "9", Timeout: 1500 * time.Millisecond},
			url.Values{"resourceVersion": {"9"}, "sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"},
				"timeoutSeconds": {"2"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got *http.Request
			s := typedPods(t, labelSelector("app=x"), via(func(r *http.Request) (*http.Response, error) {
				got = r
				return answer(r, 200, protobufType+";stream=watch", strings.NewReader("")), nil
			}))
			if _, err := watchAll(t, s, c.opts); err != io.EOF {
				t.Fatal(err)
			}
			c.want.Set("watch", "true")
			c.want.Set("allowWatchBookmarks", "true")
			c.want.Set("labelSelector", "app=x")
			if !reflect.DeepEqual(got.URL.Query(), c.want) {
				t.Errorf("asked %v, want %v", got.URL.Query(), c.want)
			}
			if got.Header.Get("Accept") != protobufType+","+jsonType {
				t.Errorf("Accept: %s", got.Header.Get("Accept"))
			}
		})
	}
}

func TestInitialStateThatWasTurnedOffIsUnsupported(t *testing.T) {
	s := typedPods(t, withoutInitialState, canned(protobufType, nil))
	if s.Describe().InitialState {
		t.Error("described as able to give its state")
	}
	_, err := s.Watch(t.Context(), source.WatchOptions{InitialState: true})
	wantReason(t, err, source.Unsupported)
}

// A burst is one batch, and an incomplete frame does not delay the frames before it.
func TestReadTakesWhatHasArrivedAndNoMore(t *testing.T) {
	for _, enc := range encodings {
		t.Run(enc.name, func(t *testing.T) {
			frames := aWatch(t, enc)
			half := len(frames[3]) / 2
			pr, pw := io.Pipe()
			s := typedPods(t, append(enc.options, via(func(r *http.Request) (*http.Response, error) {
				return answer(r, 200, enc.contentType, pr), nil
			}))...)
			w, err := s.Watch(t.Context(), source.WatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			written := make(chan struct{})
			send := func(b []byte) {
				go func() { pw.Write(b); written <- struct{}{} }()
			}
			read := func() int {
				changes, err := w.Read(nil)
				if err != nil {
					t.Fatal(err)
				}
				return len(changes)
			}
			send(append(join(frames[:3]), frames[3][:half]...))
			if n := read(); n != 3 {
				t.Errorf("the first batch has %d changes, want 3", n)
			}
			<-written
			send(append(bytes.Clone(frames[3][half:]), frames[4]...))
			if n := read(); n != 2 {
				t.Errorf("the second batch has %d changes, want 2", n)
			}
			<-written
			pw.Close()
			if _, err := w.Read(nil); err != io.EOF {
				t.Errorf("ended with %v", err)
			}
			if _, err := w.Read(nil); err != io.EOF {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

func TestWatchArrivingByteByByteIsTheSame(t *testing.T) {
	for _, enc := range encodings {
		body := join(aWatch(t, enc))
		s := typedPods(t, append(enc.options, via(func(r *http.Request) (*http.Response, error) {
			return answer(r, 200, enc.contentType, iotest.OneByteReader(bytes.NewReader(body))), nil
		}))...)
		changes, err := watchAll(t, s, source.WatchOptions{})
		if err != io.EOF || len(changes) != 5 {
			t.Errorf("%s: %d changes, %v", enc.name, len(changes), err)
		}
	}
}

func TestP12_UndecodableObjectDoesNotEndTheWatch(t *testing.T) {
	pb, js := encodings[0], encodings[1]
	// Metadata with a name, then a group, which no Kubernetes message has.
	badProtobuf := protowire.AppendBytes(append(bytes.Clone(magic), 0x12), []byte("\x0a\x03\x0a\x01b\x13"))
	for name, c := range map[string]struct {
		enc  encoding
		bad  []byte
		want string
	}{
		"protobuf: object of a wrong wire type": {pb, pb.frame(t, "ADDED", badProtobuf), "b"},
		"protobuf: no magic":                    {pb, pb.frame(t, "ADDED", []byte("junk")), ""},
		"protobuf: empty object":                {pb, pb.frame(t, "ADDED", []byte{}), ""},
		"protobuf: another kind":                {pb, pb.frame(t, "ADDED", pb.object(t, statusObject(0, "", ""))), ""},
		"protobuf: unknown event":               {pb, pb.frame(t, "MOVED", pb.object(t, pod("b", "8"))), "web/b"},
		"protobuf: bookmark without a version":  {pb, pb.frame(t, "BOOKMARK", pb.object(t, bookmark("", false))), ""},
		"json: a field of a wrong type": {js,
			js.frame(t, "ADDED",
				[]byte(`{"kind":"Pod","metadata":{"namespace":"web","name":"b","resourceVersion":"8"},"spec":[]}`)), "web/b"},
		"json: not valid inside": {js, js.frame(t, "ADDED", []byte(`{"metadata":{"name":"b"},"spec":{]}`)), "b"},
		"json: no name": {js,
			js.frame(t, "ADDED", []byte(`{"kind":"Pod","metadata":{"namespace":"web"}}`)), ""},
		"json: another kind": {js, js.frame(t, "ADDED", []byte(`{"kind":"Node","metadata":{"name":"b"}}`)),
			"b"},
		"json: no object at all":             {js, js.frame(t, "ADDED", []byte(`null`)), ""},
		"json: bookmark that cannot be read": {js, js.frame(t, "BOOKMARK", []byte(`{"metadata":3}`)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			body := append(bytes.Clone(c.bad), c.enc.frame(t, "MODIFIED", c.enc.object(t, pod("z", "9")))...)
			s := typedPods(t, append(c.enc.options, canned(c.enc.contentType, body))...)
			changes, err := watchAll(t, s, source.WatchOptions{})
			if err != io.EOF || len(changes) != 2 {
				t.Fatalf("%d changes, %v", len(changes), err)
			}
			if u := changes[0]; u.Type != object.Undecodable || u.Err == nil || string(u.Item.Key) != c.want ||
				u.Item.Value != nil {
				t.Errorf("got %+v, want Undecodable %q", u, c.want)
			}
			if changes[1].Item.Key != "web/z" {
				t.Errorf("behind it came %+v", changes[1])
			}
		})
	}
}

func TestGarbledFramingEndsTheWatch(t *testing.T) {
	for name, c := range map[string]struct{ contentType, body string }{
		"protobuf: 4 GiB claimed":     {protobufType, "\xff\xff\xff\xff abc"},
		"protobuf: 64 MiB and a byte": {protobufType, "\x04\x00\x00\x01 abc"},
		"protobuf: not an event":      {protobufType, string(prefixed([]byte("\x0f\x0f\x0f")))},
		"protobuf: empty event":       {protobufType, string(prefixed(nil))},
		"protobuf: no object":         {protobufType, string(prefixed([]byte("\x0a\x05ADDED")))},
		"json: not an object":         {jsonType, "[1]"},
		"json: html":                  {jsonType, "<html></html>"},
		"json: event not valid":       {jsonType, `{"type":"ADDED","object":}`},
		"json: no object":             {jsonType, `{"type":"ADDED"}`},
		"json: no type":               {jsonType, `{"object":{}}`},
		"protobuf for raw":            {"raw", ""},
		"another content type":        {"text/html", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			if c.contentType == "raw" {
				_, err = watchAll(t, mustRaw(t, canned(protobufType, []byte(c.body))), source.WatchOptions{})
			} else {
				_, err = watchAll(t, typedPods(t, canned(c.contentType, []byte(c.body))), source.WatchOptions{})
			}
			wantReason(t, err, source.Garbled)
		})
	}
}

func TestJSONFrameWithoutEndIsGarbledAndBounded(t *testing.T) {
	endless := io.MultiReader(strings.NewReader(`{"type":"ADDED","object":{"a":"`), filler{})
	s := mustRaw(t, via(func(r *http.Request) (*http.Response, error) {
		return answer(r, 200, jsonType, endless), nil
	}))
	_, err := watchAll(t, s, source.WatchOptions{})
	wantReason(t, err, source.Garbled)
}

var xs = strings.Repeat("x", 64<<10)

// filler is an endless text.
type filler struct{}

func (filler) Read(p []byte) (int, error) {
	return copy(p, xs), nil
}

func TestErrorEventIsClassifiedAndComesBehindTheChanges(t *testing.T) {
	for _, enc := range encodings {
		t.Run(enc.name, func(t *testing.T) {
			gone := statusObject(410, metav1.StatusReasonExpired, "too old resource version: 1 (2)")
			body := append(enc.frame(t, "ADDED", enc.object(t, pod("a", "7"))), enc.frame(t, "ERROR", enc.object(t, gone))...)
			body = append(body, enc.frame(t, "ADDED", enc.object(t, pod("b", "8")))...)
			s := typedPods(t, append(enc.options, canned(enc.contentType, body))...)
			changes, err := watchAll(t, s, source.WatchOptions{})
			wantReason(t, err, source.Expired)
			if len(changes) != 1 || !strings.Contains(err.Error(),
				"watch pods on api.test:6443: too old resource version: 1 (2)") {
				t.Errorf("%d changes, %v", len(changes), err)
			}

			busy := statusObject(429, metav1.StatusReasonTooManyRequests, "busy")
			busy.Details = &metav1.StatusDetails{RetryAfterSeconds: 3}
			s = typedPods(t, append(enc.options, canned(enc.contentType, enc.frame(t, "ERROR", enc.object(t, busy))))...)
			_, err = watchAll(t, s, source.WatchOptions{})
			wantReason(t, err, source.Throttled)
			if source.RetryAfter(err) != 3*time.Second {
				t.Errorf("retry after %v", source.RetryAfter(err))
			}

			s = typedPods(t,
				append(enc.options, canned(enc.contentType, enc.frame(t, "ERROR", enc.object(t, pod("a", "7")))))...)
			_, err = watchAll(t, s, source.WatchOptions{})
			wantReason(t, err, source.Garbled)
		})
	}
}

// The deletion of an object whose last state cannot be decoded is still a deletion: otherwise the object would stay in
// the mirror for ever.
func TestP6_ADeleteThatCannotBeDecodedIsStillADelete(t *testing.T) {
	frame := func(meta string) []byte {
		return []byte(`{"type":"DELETED","object":{"kind":"Pod","apiVersion":"v1","metadata":{` + meta +
			`"labels":"none"}}}` + "\n")
	}
	s := typedPods(t, forceJSON,
		canned("application/json;stream=watch", frame(`"name":"b","namespace":"web","resourceVersion":"9",`)))
	changes, err := watchAll(t, s, source.WatchOptions{Version: "1"})
	if err != io.EOF || len(changes) != 1 {
		t.Fatalf("got %+v, %v", changes, err)
	}
	if c := changes[0]; c.Type != object.Deleted || c.Item.Key != "web/b" || c.Item.Version != "9" {
		t.Errorf("got %+v", c)
	}
	if _, err := changes[0].Item.Object(); err == nil {
		t.Error("the object that cannot be read was read")
	}
	s = typedPods(t, forceJSON, canned("application/json;stream=watch", frame("")))
	if changes, err = watchAll(t, s, source.WatchOptions{Version: "1"}); source.ReasonOf(err) != source.Expired ||
		len(changes) != 0 {
		t.Errorf("a deletion without the name of its object: %+v, %v; want a new list", changes, err)
	}
}

// A watch that is resumed would meet the same object that the server cannot read.
func TestAnInternalErrorOnAStreamAsksForANewList(t *testing.T) {
	body := []byte(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure",` +
		`"message":"corrupt object","reason":"InternalError","code":500}}` + "\n")
	s := typedPods(t, forceJSON, canned("application/json;stream=watch", body))
	if _, err := watchAll(t, s, source.WatchOptions{Version: "1"}); source.ReasonOf(err) != source.Expired ||
		!strings.Contains(err.Error(), "corrupt object") {
		t.Errorf("err = %v (%s)", err, source.ReasonOf(err))
	}
}
