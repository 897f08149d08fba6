package factory_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/factory"
)

func TestErrorOfNewSaysWhatToDo(t *testing.T) {
	good := &rest.Config{Host: "http://server.invalid"}
	for _, c := range []struct {
		name string
		cfg  *rest.Config
		opts *factory.Options
		say  []string
	}{
		{"nil config", nil, nil, []string{"config is nil", "clientcmd"}},
		{"no host", &rest.Config{}, nil, []string{"no Host", "kubeconfig"}},
		{"missing CA", &rest.Config{Host: "https://server.invalid",
			TLSClientConfig: rest.TLSClientConfig{CAFile: "no-such-file"}}, nil, []string{"TLS", "no-such-file"}},
		{"nil type option", good, &factory.Options{Types: []factory.TypeOption{nil}}, []string{"Types[0] is nil"}},
		{"all and one", good, &factory.Options{Scope: factory.Scope{Namespaces: []string{"", "a"}}},
			[]string{"all namespaces"}},
		{"bad namespace", good, &factory.Options{Scope: factory.Scope{Namespaces: []string{"a/b"}}},
			[]string{`"a/b"`, "not the name of a namespace"}},
		{"bad labels", good, &factory.Options{Scope: factory.Scope{Labels: "a in ("}},
			[]string{"label selector", "app=web"}},
		{"bad fields", good, &factory.Options{Scope: factory.Scope{Fields: "a>b"}},
			[]string{"field selector", "spec.nodeName"}},
		{"negative resync", good, &factory.Options{Resync: -time.Second}, []string{"negative"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := factory.New(c.cfg, c.opts)
			wantError(t, err, append(c.say, "make a factory")...)
			if f != nil {
				t.Error("New returned a factory and an error")
			}
		})
	}
}

func TestErrorOfOpenSaysWhatToDo(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		cases := map[string]struct {
			open func() error
			say  []string
		}{
			"nil factory": {func() error { _, err := factory.Of[*corev1.Pod](nil, nil); return err },
				[]string{"factory.New"}},
			"nil factory by name": {func() error { _, err := (*factory.Factory)(nil).Raw(podsGVR, nil); return err },
				[]string{"factory.New"}},
			"nil factory for resource": {
				func() error { _, err := (*factory.Factory)(nil).ForResource(podsGVR, nil); return err },
				[]string{"factory.New"}},
			"unknown type": {func() error { _, err := factory.Of[*Gadget](w.f, nil); return err },
				[]string{"Gadget", "not registered"}},
			"interface": {func() error { _, err := factory.Of[runtime.Object](w.f, nil); return err },
				[]string{"pointer to a struct"}},
			"map": {func() error { _, err := factory.Of[*unstructured.Unstructured](w.f, nil); return err },
				[]string{"Dynamic"}},
			"list": {func() error { _, err := factory.Of[*corev1.PodList](w.f, nil); return err }, []string{"list"}},
			"empty resource": {func() error { _, err := w.f.Dynamic(schema.GroupVersionResource{}, nil); return err },
				[]string{"plural"}},
			"kind as name": {func() error {
				_, err := w.f.Dynamic(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "Deployment"}, nil)
				return err
			}, []string{"did you mean deployments.v1.apps?"}},
			"typo": {func() error {
				_, err := w.f.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "confgimaps"}, nil)
				return err
			}, []string{"did you mean configmaps.v1?"}},
			"wrong group": {func() error {
				_, err := w.f.Metadata(schema.GroupVersionResource{Version: "v1", Resource: "deployments"}, nil)
				return err
			}, []string{"no such resource in v1", "deployments.v1.apps"}},
			"bad selector": {func() error {
				_, err := factory.Of[*corev1.Pod](w.f, &factory.Scope{Labels: "a in ("})
				return err
			}, []string{"pods.v1", "label selector"}},
			"nil handler": {func() error { _, err := pods(w, nil).Subscribe(nil, nil); return err },
				[]string{"handler is nil"}},
			"all without a form": {func() error { _, err := factory.All[int](w.Context(), w.f, nil, nil); return err },
				[]string{"f.Dynamic"}},
			"all without a factory": {func() error { _, err := factory.All(w.Context(), nil, w.f.Raw, nil); return err },
				[]string{"factory.New"}},
		}
		for name, c := range cases {
			t.Run(name, func(t *testing.T) { wantError(t, c.open(), c.say...) })
		}
		if n := len(w.f.Health()); n != 1 {
			t.Errorf("%d informers are left, want the one of the nil handler", n)
		}
	})
}

// An unknown resource may be served by a newer server, or later, when its definition is installed.
func TestUnknownResourceNamesAreAccepted(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		for _, gvr := range []schema.GroupVersionResource{
			widgetsGVR,
			{Version: "v1", Resource: "quantumthings"},
			{Group: "resource.k8s.io", Version: "v1beta1", Resource: "resourceclaims"},
			{Group: "example.com", Version: "v1", Resource: "deployments"},
		} {
			if _, err := w.f.Dynamic(gvr, nil); err != nil {
				t.Errorf("%v: %v", gvr, err)
			}
		}
		if _, err := factory.Of[*resourcev1beta1.ResourceClaim](w.f, nil); err != nil {
			t.Error(err)
		}
	})
}

func TestNewReturnsErrorsOfTheConfig(t *testing.T) {
	cfg := &rest.Config{Host: "https://server.invalid", BearerToken: "x", Username: "y", Password: "z"}
	_, err := factory.New(cfg, nil)
	if err == nil || errors.Unwrap(err) == nil {
		t.Errorf("two credentials at once: %v", err)
	}
}
