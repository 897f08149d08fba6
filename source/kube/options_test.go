package kube

import (
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/source"
)

// widget is a custom type without protobuf.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Size              int `json:"size"`
}

func (w *widget) DeepCopyObject() runtime.Object { c := *w; return &c }

var widgets = schema.GroupVersion{Group: "example.com", Version: "v1"}

func widgetScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(widgets.WithKind("Widget"), &widget{})
	return s
}

func TestBadInputIsAnErrorThatSaysWhatToDo(t *testing.T) {
	typed := func(cfg *rest.Config, opts *Options) error {
		_, err := Typed[*corev1.Pod](cfg, opts)
		return err
	}
	of := func(_ any, err error) error { return err }
	gvr := func(group, version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	}
	raw := func(gvr schema.GroupVersionResource, opts *Options) error { return of(Raw(here, gvr, opts)) }
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"nil config": {typed(nil, nil), "load one with clientcmd"},
		"no host":    {typed(&rest.Config{}, nil), "set Host"},
		"bad host":   {typed(&rest.Config{Host: "http://a b:%zz"}, nil), "set it to a URL"},
		"missing CA": {typed(&rest.Config{Host: "https://x",
			TLSClientConfig: rest.TLSClientConfig{CAFile: "/does/not/exist"}}, nil), "check the files"},
		"bad label selector": {typed(here, &Options{LabelSelector: "a in ("}), "label selector"},
		"bad field selector": {typed(here, &Options{FieldSelector: "a"}), "field selector"},
		"bad tweak": {typed(here, &Options{Tweak: func(o *metav1.ListOptions) { o.LabelSelector = "!!" }}),
			"label selector"},
		"bad page size":         {typed(here, &Options{PageSize: -2}), "source.OnePage"},
		"bad namespace":         {typed(here, &Options{Namespace: "a/b"}), "leave it empty"},
		"not registered":        {of(Typed[*widget](here, nil)), "Options.Scheme"},
		"a list type":           {of(Typed[*corev1.PodList](here, nil)), "not of a list"},
		"unstructured":          {of(Typed[*unstructured.Unstructured](here, nil)), "kube.Dynamic"},
		"an interface":          {of(Typed[runtime.Object](here, nil)), "kube.Dynamic"},
		"partial metadata":      {of(Typed[*metav1.PartialObjectMetadata](here, nil)), "kube.Metadata"},
		"another version":       {typed(here, &Options{Resource: gvr("", "v2", "pods")}), "use the type of that version"},
		"no version":            {raw(gvr("", "", "pods"), nil), "give group, version"},
		"no resource":           {raw(gvr("", "v1", ""), nil), "give group, version"},
		"a subresource":         {raw(gvr("", "v1", "pods/log"), nil), "give group, version"},
		"the resource twice":    {raw(podsGVR, &Options{Resource: podsGVR}), "is an argument"},
		"nil config for raw":    {of(Raw(nil, podsGVR, nil)), "load one with clientcmd"},
		"unknown match in list": {of(typedPods(t).List(t.Context(), source.ListOptions{Match: 99})), "use Consistent"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
				t.Errorf("got %v; want it to say %q", c.err, c.want)
			}
		})
	}
}

func TestResourceIsFoundFromTheType(t *testing.T) {
	path := func(s interface{ Describe() source.Description }, srv *server) string {
		return s.Describe().Resource + " " + srv.url.String()
	}
	pods, err := Typed[*corev1.Pod](&rest.Config{Host: "https://h/base/"}, &Options{Cluster: "eu", Namespace: "web"})
	if err != nil || path(pods, pods.server) != "pods https://h/base/api/v1/namespaces/web/pods" {
		t.Errorf("%v, %v", pods, err)
	}
	if got := pods.Describe().String(); got != "eu/pods[namespace=web]" {
		t.Errorf("described as %s", got)
	}
	deployments, err := Typed[*appsv1.Deployment](here, nil)
	if err != nil ||
		path(deployments, deployments.server) != "deployments.apps http://api.test:6443/apis/apps/v1/deployments" {
		t.Errorf("%v, %v", deployments, err)
	}
	policies, err := Typed[*networkingv1.NetworkPolicy](here, nil)
	if err != nil || policies.Describe().Resource != "networkpolicies.networking.k8s.io" {
		t.Errorf("%v, %v", policies, err)
	}
	custom, err := Typed[*widget](here, &Options{Scheme: widgetScheme(), Resource: widgets.WithResource("widgetry")})
	if err != nil ||
		path(custom, custom.server) != "widgetry.example.com http://api.test:6443/apis/example.com/v1/widgetry" {
		t.Errorf("%v, %v", custom, err)
	}
}

func TestTypeWithoutProtobufIsReadAsJSON(t *testing.T) {
	var accept string
	s, err := Typed[*widget](here, with(func(o *Options) { o.Scheme = widgetScheme() },
		via(func(r *http.Request) (*http.Response, error) {
			accept = r.Header.Get("Accept")
			return answer(r, 200, jsonType,
				strings.NewReader(`{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"5"},`+
					`"items":[{"metadata":{"name":"w","resourceVersion":"4"},"size":3}]}`)), nil
		})))
	if err != nil {
		t.Fatal(err)
	}
	items, _, err := listAll(t, s, source.ListOptions{})
	if err != nil || len(items) != 1 || items[0].Key != "w" || items[0].Value.Size != 3 ||
		items[0].Value.Kind != "Widget" {
		t.Fatalf("%+v, %v", items, err)
	}
	if accept != jsonType {
		t.Errorf("Accept: %s", accept)
	}
}

func TestCallersConfigAndClientAreLeftAlone(t *testing.T) {
	cfg := &rest.Config{Host: "http://h", Timeout: time.Minute, QPS: 5}
	client := &http.Client{Timeout: time.Minute}
	s, err := Typed[*corev1.Pod](cfg, &Options{HTTPClient: client, UserAgent: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Timeout != time.Minute || cfg.QPS != 5 || cfg.UserAgent != "" || cfg.GroupVersion != nil ||
		client.Timeout != time.Minute {
		t.Errorf("changed: %+v %+v", cfg, client)
	}
	if s.client.Timeout != 0 {
		t.Error("streams have a timeout")
	}
}
