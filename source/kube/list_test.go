package kube

import (
	"bytes"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/source"
)

func TestListGivesEveryItemInBothEncodings(t *testing.T) {
	for _, enc := range encodings {
		t.Run(enc.name, func(t *testing.T) {
			body := enc.object(t, podList("42", "", pod("a", "7"), pod("b", "8"), pod("c", "9")))
			s := typedPods(t, append(enc.options, canned(enc.contentType, body))...)
			items, l, err := listAll(t, s, source.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := keysOf(items), "web/a@7 web/b@8 web/c@9 "; got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
			if l.Version() != "42" {
				t.Errorf("version %q", l.Version())
			}
			if items[0].UID != "uid-a" || items[0].Size < 20 || items[0].Size > len(body) {
				t.Errorf("uid %q, size %d", items[0].UID, items[0].Size)
			}
			if want := pod("b", "8"); !reflect.DeepEqual(items[1].Value, want) {
				t.Errorf("got %+v, want %+v", items[1].Value, want)
			}
		})
	}
}

func TestP10_ObjectsOfAListCarryTheirKind(t *testing.T) {
	jsonBody := encodeJSON(t, podList("42", "", pod("a", "7")))
	if bytes.Count(jsonBody, []byte(`"kind"`)) != 1 {
		t.Fatalf("the item of the test's list carries a kind: %s", jsonBody)
	}
	u, _, err := listAll(t, mustDynamic(t, canned(jsonType, jsonBody)), source.ListOptions{})
	if err != nil || u[0].Value.GetAPIVersion() != "v1" || u[0].Value.GetKind() != "Pod" {
		t.Errorf("dynamic: %v, %v", u, err)
	}
	r, _, err := listAll(t, mustRaw(t, canned(jsonType, jsonBody)), source.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(r[0].Encoded); !strings.HasPrefix(got, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a",`) {
		t.Errorf("raw: %s", got)
	}
	for _, enc := range encodings {
		typed, _, err := listAll(t,
			typedPods(t,
				append(enc.options,
					canned(enc.contentType, enc.object(t, podList("42", "", pod("a", "7")))))...), source.ListOptions{})
		if err != nil || typed[0].Value.APIVersion != "v1" || typed[0].Value.Kind != "Pod" {
			t.Errorf("typed %s: %+v, %v", enc.name, typed, err)
		}
	}
}

func TestListOfACustomResourceHasItsKindBehindTheItems(t *testing.T) {
	body := `{"apiVersion":"example.com/v1","items":[
		{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w1","resourceVersion":"3","uid":"u1"},
		"spec":{"n":9007199254740993,"f":1.5,"odd":"é\u00e9"}}
	],"kind":"WidgetList","metadata":{"continue":"","resourceVersion":"77"}}`
	gvr := podsGVR
	gvr.Group, gvr.Resource = "example.com", "widgets"
	s, err := Dynamic(here, gvr, with(canned(jsonType, []byte(body))))
	if err != nil {
		t.Fatal(err)
	}
	items, l, err := listAll(t, s, source.ListOptions{})
	if err != nil || len(items) != 1 || l.Version() != "77" {
		t.Fatalf("%v, version %q, %v", items, l.Version(), err)
	}
	spec := items[0].Value.Object["spec"].(map[string]any)
	if items[0].Key != "w1" || spec["n"] != int64(9007199254740993) || spec["f"] != 1.5 || spec["odd"] != "éé" {
		t.Errorf("got %v %v", items[0].Key, spec)
	}
	raw, err := Raw(here, gvr, with(canned(jsonType, []byte(body))))
	if err != nil {
		t.Fatal(err)
	}
	kept, _, err := listAll(t, raw, source.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSpace(body[strings.Index(body, "[")+1 : strings.LastIndex(body, "]")])
	if got := string(kept[0].Encoded); got != want {
		t.Errorf("raw changed the object:\n%s\n%s", got, want)
	}
}

func TestMetadataIsAskedForByAcceptAndReadInAnyAnswer(t *testing.T) {
	partial := &metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "42"},
		Items:    []metav1.PartialObjectMetadata{{ObjectMeta: pod("a", "7").ObjectMeta}},
	}
	for name, served := range map[string]struct{ contentType, body string }{
		"protobuf":      {protobufType, string(encodeProtobuf(t, partial))},
		"json":          {jsonType, string(encodeJSON(t, partial))},
		"whole objects": {jsonType, string(encodeJSON(t, podList("42", "", pod("a", "7"))))},
	} {
		t.Run(name, func(t *testing.T) {
			var accept string
			s := mustMetadata(t, via(func(r *http.Request) (*http.Response, error) {
				accept = r.Header.Get("Accept")
				return answer(r, 200, served.contentType, strings.NewReader(served.body)), nil
			}))
			items, _, err := listAll(t, s, source.ListOptions{})
			if err != nil || len(items) != 1 || items[0].Key != "web/a" || items[0].Value.Labels["app"] != "a" {
				t.Fatalf("%+v, %v", items, err)
			}
			if items[0].Value.Kind != "PartialObjectMetadata" || items[0].Value.APIVersion != "meta.k8s.io/v1" {
				t.Errorf("kind %v", items[0].Value.TypeMeta)
			}
			if want := protobufType + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"; !strings.HasPrefix(accept, want) {
				t.Errorf("Accept: %s", accept)
			}
		})
	}
}

func TestListAsksByMatchAndGoesThroughAllPages(t *testing.T) {
	for _, enc := range encodings {
		for name, c := range map[string]struct {
			opts source.ListOptions
			want url.Values
		}{
			"consistent": {source.ListOptions{Version: "9"}, url.Values{"limit": {"500"}}},
			"any": {source.ListOptions{Match: source.Any, PageSize: 7},
				url.Values{"resourceVersion": {"0"}, "limit": {"7"}}},
			"not older than": {source.ListOptions{Match: source.NotOlderThan, Version: "9"},
				url.Values{"resourceVersion": {"9"}, "resourceVersionMatch": {"NotOlderThan"}, "limit": {"500"}}},
		} {
			t.Run(enc.name+" "+name, func(t *testing.T) {
				var asked []url.Values
				pages := []*corev1.PodList{
					podList("42", "t1", pod("a", "1"), pod("b", "2")),
					podList("43", "t2"),
					podList("44", "", pod("c", "3")),
				}
				s := typedPods(t, append(enc.options, via(func(r *http.Request) (*http.Response, error) {
					if r.URL.Path != "/api/v1/pods" {
						t.Errorf("path %s", r.URL.Path)
					}
					asked = append(asked, r.URL.Query())
					return answer(r, 200, enc.contentType, bytes.NewReader(enc.object(t, pages[len(asked)-1]))), nil
				}))...)
				items, l, err := listAll(t, s, c.opts)
				if err != nil {
					t.Fatal(err)
				}
				if got := keysOf(items); got != "web/a@1 web/b@2 web/c@3 " || l.Version() != "42" {
					t.Errorf("got %s at %s; the first page's version counts", got, l.Version())
				}
				next := func(token string) url.Values {
					return url.Values{"limit": c.want["limit"], "continue": {token}}
				}
				if want := []url.Values{c.want, next("t1"), next("t2")}; !reflect.DeepEqual(asked, want) {
					t.Errorf("asked %v, want %v", asked, want)
				}
			})
		}
	}
}

func TestListOptionsReachTheServer(t *testing.T) {
	var got *http.Request
	gvr := podsGVR
	gvr.Group, gvr.Resource = "apps", "deployments"
	s, err := Dynamic(here, gvr, with(func(o *Options) {
		o.Namespace, o.LabelSelector, o.FieldSelector = "web", "app=x", "a=b"
		o.PageSize, o.UserAgent = source.OnePage, "tester/1"
		o.Tweak = func(o *metav1.ListOptions) { o.LabelSelector += ",tier=db" }
	},
		via(func(r *http.Request) (*http.Response, error) {
			got = r
			return answer(r, 200, jsonType,
				strings.NewReader(`{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{},"items":null}`)), nil
		})))
	if err != nil {
		t.Fatal(err)
	}
	items, _, err := listAll(t, s, source.ListOptions{})
	if err != nil || len(items) != 0 {
		t.Fatal(items, err)
	}
	if got.URL.Path != "/apis/apps/v1/namespaces/web/deployments" {
		t.Errorf("path %s", got.URL.Path)
	}
	if want := (url.Values{"labelSelector": {"app=x,tier=db"},
		"fieldSelector": {"a=b"}}); !reflect.DeepEqual(got.URL.Query(), want) {
		t.Errorf("query %v, want %v", got.URL.Query(), want)
	}
	if got.Header.Get("User-Agent") != "tester/1" || got.Header.Get("Accept") != jsonType {
		t.Errorf("headers %v", got.Header)
	}
	if d := s.Describe(); d.String() != "deployments.apps[namespace=web labels(app=x,tier=db) fields(a=b)]" ||
		!d.InitialState {
		t.Errorf("described as %q, %+v", d, d)
	}
}

func TestP12_AnUndecodableItemIsGivenWithItsNameAndTheReason(t *testing.T) {
	bad := podList("42", "", pod("a", "7"), pod("b", "8"), pod("c", "9"))
	for _, enc := range encodings {
		t.Run(enc.name, func(t *testing.T) {
			body := enc.object(t, bad)
			if enc.name == "json" {
				body = bytes.Replace(body, []byte(`"name":"b","namespace":"web"`),
					[]byte(`"name":"b","namespace":"web","labels":"none"`), 1)
			} else {
				// Break the spec's wire type behind the metadata: field 2 becomes a group.
				at := bytes.Index(body, []byte("uid-b"))
				spec := at + bytes.IndexByte(body[at:], 0x12)
				for body[spec] != 0x12 || !bytes.HasPrefix(body[spec+2:], []byte{0x12}) {
					spec++
				}
				body[spec] = 0x13
			}
			s := typedPods(t, append(enc.options, canned(enc.contentType, body))...)
			items, _, err := listAll(t, s, source.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := keysOf(items); got != "web/a@7 web/b@8 web/c@9 " {
				t.Errorf("got %s", got)
			}
			for i := range items {
				_, err := items[i].Object()
				if bad := items[i].Key == "web/b"; bad != (err != nil) {
					t.Errorf("%s: %v", items[i].Key, err)
				} else if bad && !strings.HasPrefix(err.Error(), "list pods on api.test:6443: decode \"web/b\": ") {
					t.Errorf("the reason is %q", err)
				}
			}
		})
	}
}

func TestListArrivingByteByByteIsTheSame(t *testing.T) {
	for _, enc := range encodings {
		body := enc.object(t, podList("42", "", pod("a", "7"), pod("b", "8")))
		s := typedPods(t, append(enc.options, via(func(r *http.Request) (*http.Response, error) {
			return answer(r, 200, enc.contentType, iotest.OneByteReader(bytes.NewReader(body))), nil
		}))...)
		items, l, err := listAll(t, s, source.ListOptions{})
		if err != nil || keysOf(items) != "web/a@7 web/b@8 " || l.Version() != "42" {
			t.Errorf("%s: %s at %s, %v", enc.name, keysOf(items), l.Version(), err)
		}
	}
}

func TestListOfAnotherKindIsRefused(t *testing.T) {
	maps := &corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"},
		Items: []corev1.ConfigMap{{ObjectMeta: pod("a", "1").ObjectMeta}}}
	for _, enc := range encodings {
		s := typedPods(t, append(enc.options, canned(enc.contentType, enc.object(t, maps)))...)
		_, _, err := listAll(t, s, source.ListOptions{})
		wantReason(t, err, source.Garbled)
		if !strings.Contains(err.Error(), "ConfigMap and not Pod") {
			t.Error(err)
		}
	}
}

func TestWhatIsNotAListIsGarbled(t *testing.T) {
	for _, c := range []struct{ contentType, body string }{
		{jsonType, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}`},
		{jsonType, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[]}`},
		{jsonType, `{"kind":"PodList","apiVersion":"v1","items":[]}`},
		{jsonType, `{"kind":"PodList","metadata":{},"items":{}}`},
		{jsonType, `{"kind":"PodList","metadata":{},"items":[]} {}`},
		{jsonType, `{"kind":"PodList","metadata":{},"items":[],}`},
		{jsonType, `{"kind":"PodList","metadata":{},"items":[,]}`},
		{jsonType, `{"kind":"PodList" "metadata":{},"items":[]}`},
		{jsonType, `{"kind":7,"metadata":{},"items":[]}`},
		{jsonType, `{"kind":"A\"List","metadata":{},"items":[]}`},
		{jsonType, `[]`},
		{jsonType, ``},
		{jsonType, `<html>`},
		{"text/html", `<html>`},
		{"", `{"kind":"PodList","metadata":{},"items":[]}`},
		{protobufType, ``},
		{protobufType, "k8s\x01"},
		{protobufType, "k8s\x00"},
		{protobufType, "k8s\x00\x0b"},             // a group
		{protobufType, "k8s\x00\x12\x02\x12\x05"}, // an item longer than its list
		{protobufType, "k8s\x00\x12\x00"},         // no metadata
		{protobufType, "k8s\x00\x12\xff\xff\xff\xff\x7f\x12\xff\xff\xff\xff\x07"}, // 2 GiB claimed
		{protobufType, "k8s\x00\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
	} {
		s := typedPods(t, canned(c.contentType, []byte(c.body)))
		items, _, err := listAll(t, s, source.ListOptions{})
		if err == nil {
			t.Errorf("%q gave %d items and no error", c.body, len(items))
			continue
		}
		wantReason(t, err, source.Garbled)
	}
}

func TestContinueTokenThatComesBackEndsTheList(t *testing.T) {
	s := typedPods(t, canned(protobufType, encodeProtobuf(t, podList("42", "again", pod("a", "7")))))
	_, _, err := listAll(t, s, source.ListOptions{})
	wantReason(t, err, source.Garbled)
}
