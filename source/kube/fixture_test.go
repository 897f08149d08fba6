package kube

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var podsGVR = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

var podType = reflect.TypeFor[corev1.Pod]()

// option sets one of the Options of a source.
type option func(*Options)

// with returns the Options that several options set.
func with(opts ...option) *Options {
	var o Options
	for _, set := range opts {
		set(&o)
	}
	return &o
}

func forceJSON(o *Options)           { o.ForceJSON = true }
func withoutInitialState(o *Options) { o.WithoutInitialState = true }
func buffers(a *Allowance) option    { return func(o *Options) { o.Buffers = a } }
func tweak(f func(*metav1.ListOptions)) option {
	return func(o *Options) { o.Tweak = f }
}
func pageSize(n int) option            { return func(o *Options) { o.PageSize = n } }
func labelSelector(s string) option    { return func(o *Options) { o.LabelSelector = s } }
func httpClient(c *http.Client) option { return func(o *Options) { o.HTTPClient = c } }

// encoding is one way a test server writes what it serves.
type encoding struct {
	name        string
	contentType string
	object      func(t testing.TB, o runtime.Object) []byte
	frame       func(t testing.TB, what string, object []byte) []byte
	options     []option
}

var encodings = []encoding{
	{"protobuf", protobufType, encodeProtobuf, frameProtobuf, nil},
	{"json", jsonType, encodeJSON, frameJSON, []option{forceJSON}},
}

func encodeProtobuf(t testing.TB, o runtime.Object) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(o, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func encodeJSON(t testing.TB, o runtime.Object) []byte {
	t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func frameProtobuf(t testing.TB, what string, object []byte) []byte {
	t.Helper()
	e := metav1.WatchEvent{Type: what, Object: runtime.RawExtension{Raw: object}}
	b, err := e.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return prefixed(b)
}

func prefixed(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func frameJSON(_ testing.TB, what string, object []byte) []byte {
	return fmt.Appendf(nil, "{\"type\":%q,\"object\":%s}\n", what, object)
}

func pod(name, version string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "web", Name: name, ResourceVersion: version, UID: types.UID("uid-" + name),
			Labels: map[string]string{"app": name},
		},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "i\"\\\n{["}}},
	}
}

// podList is a list as a server sends it: its items carry no kind.
func podList(version, cont string, pods ...*corev1.Pod) *corev1.PodList {
	l := &corev1.PodList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
		ListMeta: metav1.ListMeta{ResourceVersion: version, Continue: cont},
		Items:    []corev1.Pod{},
	}
	for _, p := range pods {
		q := p.DeepCopy()
		q.TypeMeta = metav1.TypeMeta{}
		l.Items = append(l.Items, *q)
	}
	return l
}

func bookmark(version string, end bool) *corev1.Pod {
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	if end {
		p.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return p
}

func statusObject(code int32, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}
}

// transport answers requests in place, without a connection.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func via(f transport) option { return httpClient(&http.Client{Transport: f}) }

func answer(r *http.Request, code int, contentType string, body io.Reader) *http.Response {
	return &http.Response{
		StatusCode: code, Request: r, Body: io.NopCloser(body), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {contentType}},
	}
}

// canned answers every request with the same bytes.
func canned(contentType string, body []byte) option {
	return via(func(r *http.Request) (*http.Response, error) {
		return answer(r, http.StatusOK, contentType, bytes.NewReader(body)), nil
	})
}

var here = &rest.Config{Host: "http://api.test:6443"}

func typedPods(t testing.TB, opts ...option) *Source[*corev1.Pod] {
	t.Helper()
	s, err := Typed[*corev1.Pod](here, with(opts...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// onSocket serves h and gives the config of a client, whose connections end with the test.
func onSocket(t testing.TB, h http.HandlerFunc) (*rest.Config, option) {
	t.Helper()
	srv := httptest.NewServer(h)
	tr := &http.Transport{}
	t.Cleanup(func() { tr.CloseIdleConnections(); srv.CloseClientConnections(); srv.Close() })
	return &rest.Config{Host: srv.URL}, httpClient(&http.Client{Transport: tr})
}

// readAll reads a list to its end.
func readAll[T any](l source.Lister[T]) ([]object.Item[T], error) {
	defer l.Close()
	var items []object.Item[T]
	for {
		n := len(items)
		var err error
		items, err = l.Read(items)
		if err == io.EOF {
			return items, nil
		}
		if err != nil {
			return items, err
		}
		if len(items) == n {
			return items, errors.New("Read returned nothing and no error")
		}
	}
}

func listAll[T any](t testing.TB, s source.Source[T],
	opts source.ListOptions) ([]object.Item[T], source.Lister[T], error) {
	t.Helper()
	l, err := s.List(t.Context(), opts)
	if err != nil {
		return nil, nil, err
	}
	items, err := readAll(l)
	return items, l, err
}

// watchAll reads a watch to its end, which is io.EOF or what went wrong.
func watchAll[T any](t testing.TB, s source.Source[T], opts source.WatchOptions) ([]source.Change[T], error) {
	t.Helper()
	w, err := s.Watch(t.Context(), opts)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	var changes []source.Change[T]
	for {
		n := len(changes)
		if changes, err = w.Read(changes); err != nil {
			return changes, err
		}
		if len(changes) == n {
			return changes, errors.New("Read returned nothing and no error")
		}
	}
}

func keysOf[T any](items []object.Item[T]) string {
	var s string
	for _, i := range items {
		s += fmt.Sprintf("%s@%s ", i.Key, i.Version)
	}
	return s
}

func wantReason(t testing.TB, err error, want source.Reason) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want %v", want)
	}
	if _, ok := errors.AsType[*source.Error](err); !ok {
		t.Fatalf("%v (%T) carries no reason", err, err)
	}
	if got := source.ReasonOf(err); got != want {
		t.Fatalf("reason %v, want %v: %v", got, want, err)
	}
}

func mustDynamic(t testing.TB, opts ...option) *Source[*unstructured.Unstructured] {
	t.Helper()
	s, err := Dynamic(here, podsGVR, with(opts...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustRaw(t testing.TB, opts ...option) *Source[*RawObject] {
	t.Helper()
	s, err := Raw(here, podsGVR, with(opts...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustMetadata(t testing.TB, opts ...option) *Source[*metav1.PartialObjectMetadata] {
	t.Helper()
	s, err := Metadata(here, podsGVR, with(opts...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
