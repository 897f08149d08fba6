package kube

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"runtime/metrics"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// fuzzed is a source of pods whose server answers with whatever bytes are set.
type fuzzed struct {
	*Source[*corev1.Pod]
	body []byte
}

func newFuzzed(f *testing.F, enc encoding) *fuzzed {
	s := &fuzzed{}
	s.Source = typedPods(f, append(enc.options, via(func(r *http.Request) (*http.Response, error) {
		return answer(r, http.StatusOK, enc.contentType, bytes.NewReader(s.body)), nil
	}))...)
	return s
}

// fuzzedPage is what one answer to a list says.
type fuzzedPage struct {
	items         []object.Item[*corev1.Pod]
	version, cont string
}

// list reads the bytes as the only page of a list.
func (s *fuzzed) list(t *testing.T, b []byte) (p fuzzedPage, err error) {
	s.body = b
	l, err := s.List(t.Context(), source.ListOptions{})
	if err != nil {
		return p, err
	}
	defer l.Close()
	in := l.(*lister[*corev1.Pod])
	for err == nil && !in.paged {
		var item object.Item[*corev1.Pod]
		var ok bool
		if item, ok, err = in.next(true); ok {
			p.items = append(p.items, item)
		}
	}
	p.version, p.cont = string(in.Version()), in.req.Continue
	if err == io.EOF {
		err = nil
	}
	return p, err
}

// watch reads the bytes as a watch; nil is an ordinary end.
func (s *fuzzed) watch(t *testing.T, b []byte) ([]source.Change[*corev1.Pod], error) {
	s.body = b
	changes, err := watchAll(t, s.Source, source.WatchOptions{})
	if err == io.EOF {
		err = nil
	}
	return changes, err
}

// guarded runs a function that must return and must not allocate more than the input justifies. Objects may be many
// times larger than their encoding: two bytes of JSON can become a container of a kilobyte. A length without its
// content must allocate nothing.
func guarded(t *testing.T, b []byte, f func()) {
	t.Helper()
	hang := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("reading %d bytes does not end", len(b))) })
	defer hang.Stop()
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(allocated)
	before := allocated[0].Value.Uint64()
	f()
	metrics.Read(allocated)
	if got, most := allocated[0].Value.Uint64()-before, uint64(8<<20+10_000*len(b)); got > most {
		t.Fatalf("reading %d bytes allocated %d", len(b), got)
	}
}

func fuzzListPeer(f *testing.F, enc encoding) {
	whole := enc.object(f, podList("42", "", pod("a", "7"), pod("b", "8")))
	f.Add(whole, uint(len(whole)/2))
	f.Add(enc.object(f, podList("42", "more", pod("a", "7"))), uint(9))
	f.Add(enc.object(f, podList("", "")), uint(3))
	if enc.name == "json" {
		for i, c := range whole { // where something ends, though not all
			if c == '}' || c == ']' {
				f.Add(whole, uint(i+1))
			}
		}
		f.Add([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},`+
			`"items":[{"metadata":{"name":"a"}}],"items":[{"metadata":{"name":"b"}}]}`), uint(1))
		f.Add([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},`+
			`"metadata":{"continue":"c"},"items":[]}`), uint(1))
		f.Add([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"ResourceVersion":"1"},"Items":[],"items":null}`),
			uint(1))
	} else { // the list's message, and its metadata, come twice
		list := whole[bytes.Index(whole, []byte("PodList"))+len("PodList"):]
		f.Add(append(bytes.Clone(whole), list...), uint(len(whole)))
		f.Add([]byte("k8s\x00\x0a\x0d\x0a\x02v1\x12\x07PodList\x12\x0a\x0a\x03\x12\x011\x0a\x03\x1a\x01c"), uint(9))
	}
	s := newFuzzed(f, enc)
	f.Fuzz(func(t *testing.T, b []byte, cut uint) {
		guarded(t, b, func() {
			got, err := s.list(t, b)
			if err != nil {
				wantReason(t, err, source.Garbled)
				return
			}
			sameListAsPeer(t, b, got)
			short := b[:cut%(uint(len(b))+1)]
			if part, err := s.list(t, short); err == nil && !reflect.DeepEqual(briefPage(part), briefPage(got)) {
				t.Fatalf("cut at %d of %d it is taken for a whole list: %+v, which is %+v", len(short), len(b),
					briefPage(part), briefPage(got))
			}
		})
	})
}

func FuzzListProtobufAsPeer(f *testing.F) { fuzzListPeer(f, encodings[0]) }
func FuzzListJSONAsPeer(f *testing.F)     { fuzzListPeer(f, encodings[1]) }

// briefPage is a page without the functions that its items carry.
func briefPage(p fuzzedPage) []any {
	out := []any{p.version, p.cont}
	for _, i := range p.items {
		out = append(out, i.Key, i.Version, i.UID, i.Size, i.Value)
	}
	return out
}

// sameListAsPeer decodes the list with apimachinery and compares the results, unless apimachinery refuses the list or
// decodes something else than a list of pods.
func sameListAsPeer(t *testing.T, b []byte, got fuzzedPage) {
	t.Helper()
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(b, nil, nil)
	want, ok := obj.(*corev1.PodList)
	if err != nil || !ok {
		return
	}
	if want.ResourceVersion != got.version || want.Continue != got.cont || len(want.Items) != len(got.items) {
		t.Fatalf("%d items at %q, continue %q; apimachinery: %d at %q, %q",
			len(got.items), got.version, got.cont, len(want.Items), want.ResourceVersion, want.Continue)
	}
	for i := range want.Items {
		if got.items[i].Decode != nil {
			continue // reported as undecodable: it has no name, for instance
		}
		samePod(t, got.items[i].Value, &want.Items[i])
	}
}

func samePod(t *testing.T, got, want *corev1.Pod) {
	t.Helper()
	want.APIVersion, want.Kind = "v1", "Pod"
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("decoded to\n%+v\napimachinery:\n%+v", got, want)
	}
}

func fuzzWatchPeer(f *testing.F, enc encoding) {
	whole := join(aWatch(f, enc))
	f.Add(whole, uint(len(whole)/2))
	f.Add(enc.frame(f, "ERROR", enc.object(f, statusObject(410, "Expired", "old"))), uint(0))
	f.Add([]byte{}, uint(0))
	if enc.name == "json" {
		f.Add([]byte(`{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","Metadata":{"resourceVersion":"2"},`+
			`"metadata":{"ResourceVersion":"1"}}}`), uint(1))
		f.Add([]byte(`{"type":"ADDED","type":"DELETED","object":{},"object":{"kind":"Pod","apiVersion":"v1",`+
			`"metadata":{"name":"a"},"metadata":{"namespace":"b"}}}`), uint(1))
	}
	s := newFuzzed(f, enc)
	f.Fuzz(func(t *testing.T, b []byte, cut uint) {
		guarded(t, b, func() {
			got, err := s.watch(t, b)
			sameWatchAsPeer(t, enc, b, got)
			at := cut % (uint(len(b)) + 1)
			head, headErr := s.watch(t, b[:at])
			if headErr != nil {
				return // the cut was noticed
			}
			// If the head ends between two events, the rest begins with an event.
			tail, tailErr := s.watch(t, b[at:])
			if (err == nil) != (tailErr == nil) || !reflect.DeepEqual(brief(got), append(brief(head), brief(tail)...)) {
				t.Fatalf("cut at %d of %d it ends in order, with %d changes and %d behind it, %v; whole there are %d, %v",
					at, len(b), len(head), len(tail), tailErr, len(got), err)
			}
		})
	})
}

func FuzzWatchProtobufAsPeer(f *testing.F) { fuzzWatchPeer(f, encodings[0]) }
func FuzzWatchJSONAsPeer(f *testing.F)     { fuzzWatchPeer(f, encodings[1]) }

// brief is the content of changes without their functions.
func brief(changes []source.Change[*corev1.Pod]) []any {
	out := []any{}
	for _, c := range changes {
		out = append(out, c.Type, c.InitialEnd, c.Item.Key, c.Item.Version, c.Item.UID, c.Item.Value)
	}
	return out
}

// sameWatchAsPeer follows the same bytes with client-go's decoder, as far as that goes.
func sameWatchAsPeer(t *testing.T, enc encoding, b []byte, got []source.Change[*corev1.Pod]) {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), enc.contentType)
	if !ok {
		t.Fatal("apimachinery does not know", enc.contentType)
	}
	frames := info.StreamSerializer.Framer.NewFrameReader(io.NopCloser(bytes.NewReader(b)))
	peer := restwatch.NewDecoder(streaming.NewDecoder(frames, info.StreamSerializer.Serializer),
		scheme.Codecs.UniversalDeserializer())
	defer peer.Close()
	for i := range got {
		what, obj, err := peer.Decode()
		if err != nil || what == watch.Error {
			return
		}
		p, ok := obj.(*corev1.Pod)
		if !ok || got[i].Type == object.Undecodable || got[i].Item.Decode != nil {
			continue
		}
		switch {
		case got[i].Type == object.Bookmark:
			m, err := meta.Accessor(obj)
			if what != watch.Bookmark || err != nil || m.GetResourceVersion() != string(got[i].Item.Version) {
				t.Fatalf("event %d is a bookmark at %s; client-go: %s of %+v", i, got[i].Item.Version, what, obj)
			}
		case (got[i].Type == object.Deleted) != (what == watch.Deleted) ||
			(got[i].Type == object.Added) != (what == watch.Added):
			t.Fatalf("event %d is %+v; client-go: %s", i, got[i], what)
		default:
			samePod(t, got[i].Item.Value, p)
		}
	}
}
