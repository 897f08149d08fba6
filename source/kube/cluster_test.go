package kube

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/dev/testcluster"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// These tests run on a real API server, without controllers: nothing changes
// but what a test changes.

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// tape records the content types of a server's responses.
type tape struct {
	http.RoundTripper
	mu    sync.Mutex
	types []string
}

func (r *tape) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.RoundTripper.RoundTrip(req)
	if err == nil {
		r.mu.Lock()
		r.types = append(r.types, resp.Header.Get("Content-Type"))
		r.mu.Unlock()
	}
	return resp, err
}

func (r *tape) WrappedRoundTripper() http.RoundTripper { return r.RoundTripper }

// onCluster returns a config of the test's cluster whose responses are recorded.
func onCluster(t *testing.T) (*testcluster.Cluster, *rest.Config, *tape) {
	cluster := testcluster.Start(t, testcluster.WithoutControllers())
	cfg, noted := cluster.Config(), &tape{}
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		noted.RoundTripper = rt
		return noted
	})
	return cluster, cfg, noted
}

// hangUp ends a source's connections, which the transport would keep for the next.
func hangUp[T any](t *testing.T, s *Source[T], err error) *Source[T] {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(s.client.Transport) })
	return s
}

func withDeadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// form is one of the four forms of objects.
type form[T any] struct {
	source   *Source[T]
	kind     func(T) (apiVersion, kind string)
	protobuf bool
}

func TestRealServerListsAndWatchesInAllForms(t *testing.T) {
	_, cfg, noted := onCluster(t)
	t.Run("typed", func(t *testing.T) {
		check(t, noted, func(ns string) form[*corev1.ConfigMap] {
			s, err := Typed[*corev1.ConfigMap](cfg, &Options{Namespace: ns})
			return form[*corev1.ConfigMap]{hangUp(t, s, err), func(m *corev1.ConfigMap) (string, string) {
				if m.Data["n"] == "" {
					t.Errorf("%s has no data", m.Name)
				}
				return m.APIVersion, m.Kind
			}, true}
		}, "v1", "ConfigMap")
	})
	t.Run("typed as JSON", func(t *testing.T) {
		check(t, noted, func(ns string) form[*corev1.ConfigMap] {
			s, err := Typed[*corev1.ConfigMap](cfg, &Options{Namespace: ns, ForceJSON: true})
			return form[*corev1.ConfigMap]{hangUp(t, s, err),
				func(m *corev1.ConfigMap) (string, string) { return m.APIVersion, m.Kind }, false}
		}, "v1", "ConfigMap")
	})
	t.Run("dynamic", func(t *testing.T) {
		check(t, noted, func(ns string) form[*unstructured.Unstructured] {
			s, err := Dynamic(cfg, configMaps, &Options{Namespace: ns})
			return form[*unstructured.Unstructured]{hangUp(t, s, err),
				func(u *unstructured.Unstructured) (string, string) { return u.GetAPIVersion(), u.GetKind() }, false}
		}, "v1", "ConfigMap")
	})
	t.Run("metadata", func(t *testing.T) {
		check(t, noted, func(ns string) form[*metav1.PartialObjectMetadata] {
			s, err := Metadata(cfg, configMaps, &Options{Namespace: ns})
			return form[*metav1.PartialObjectMetadata]{hangUp(t, s, err),
				func(m *metav1.PartialObjectMetadata) (string, string) { return m.APIVersion, m.Kind }, true}
		}, "meta.k8s.io/v1", "PartialObjectMetadata")
	})
	t.Run("raw", func(t *testing.T) {
		check(t, noted, func(ns string) form[*RawObject] {
			s, err := Raw(cfg, configMaps, &Options{Namespace: ns})
			return form[*RawObject]{hangUp(t, s, err), func(r *RawObject) (string, string) {
				u := &unstructured.Unstructured{}
				if err := u.UnmarshalJSON(r.Bytes); err != nil {
					t.Errorf("%v in %s", err, r.Bytes)
				}
				return u.GetAPIVersion(), u.GetKind()
			}, false}
		}, "v1", "ConfigMap")
	})
}

// check lists, watches with initial state, and follows a create, a change and a delete.
func check[T any](t *testing.T, noted *tape, open func(ns string) form[T], apiVersion, kind string) {
	cluster := testcluster.Start(t, testcluster.WithoutControllers())
	ctx, ns := withDeadline(t), cluster.Namespace(t)
	for _, name := range []string{"a", "b", "c"} {
		cluster.Kubectl(t, "create", "configmap", name, "-n", ns, "--from-literal=n="+name)
	}
	f := open(ns)
	noted.mu.Lock()
	noted.types = nil
	noted.mu.Unlock()
	wantKind := func(item object.Item[T]) { // P10
		t.Helper()
		obj, err := item.Object()
		if err != nil {
			t.Fatal(err)
		}
		if v, k := f.kind(obj); v != apiVersion || k != kind {
			t.Errorf("%s is a %s %s, want %s %s", item.Key, v, k, apiVersion, kind)
		}
		if item.UID == "" || !item.Version.Ordered() || item.Size == 0 {
			t.Errorf("%s: uid %q, version %q, size %d", item.Key, item.UID, item.Version, item.Size)
		}
	}

	want := []string{ns + "/a", ns + "/b", ns + "/c"}
	var version object.Version
	for _, opts := range []source.ListOptions{{}, {PageSize: 1}, {Match: source.Any}, {Match: source.NotOlderThan}} {
		if opts.Match == source.NotOlderThan {
			opts.Version = version
		}
		l, err := f.source.List(ctx, opts)
		if err != nil {
			t.Fatal(err)
		}
		items, err := readAll(l)
		if err != nil {
			t.Fatal(err)
		}
		if got := keys(items); !slices.Equal(got, want) && opts.Match != source.Any {
			t.Fatalf("list %+v: %v, want %v", opts, got, want)
		}
		for _, i := range items {
			wantKind(i)
		}
		if version = l.Version(); !version.Ordered() {
			t.Errorf("list %+v: version %q", opts, version)
		}
	}

	w, err := f.source.Watch(ctx, source.WatchOptions{InitialState: true, Timeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var changes []source.Change[T]
	await := func(until func(source.Change[T]) bool) []source.Change[T] {
		t.Helper()
		changes = changes[:0]
		for !slices.ContainsFunc(changes, until) {
			if changes, err = w.Read(changes); err != nil {
				t.Fatal(err)
			}
		}
		return changes
	}
	var initial []object.Item[T]
	for _, c := range await(func(c source.Change[T]) bool { return c.InitialEnd }) {
		if c.Type == object.Added {
			wantKind(c.Item)
			initial = append(initial, c.Item)
		} else if c.Type != object.Bookmark || c.Item.Version.Before(version) {
			t.Errorf("in the initial state: %+v", c)
		}
	}
	if got := keys(initial); !slices.Equal(got, want) {
		t.Errorf("initial state %v, want %v", got, want)
	}

	key := object.NewKey(ns, "d")
	step := func(what object.ChangeType, args ...string) {
		t.Helper()
		cluster.Kubectl(t, append(args, "-n", ns)...)
		for _, c := range await(func(c source.Change[T]) bool { return c.Item.Key == key }) {
			if c.Type == object.Bookmark {
				continue
			}
			if c.Type != what {
				t.Errorf("%v: got %+v", args, c)
			}
			wantKind(c.Item)
		}
	}
	step(object.Added, "create", "configmap", "d", "--from-literal=n=d")
	step(object.Updated, "label", "configmap", "d", "x=y")
	step(object.Deleted, "delete", "configmap", "d", "--wait=false")

	noted.mu.Lock()
	defer noted.mu.Unlock()
	for _, served := range noted.types {
		if strings.HasPrefix(served, protobufType) != f.protobuf {
			t.Errorf("served as %s", served)
		}
	}
}

func keys[T any](items []object.Item[T]) (names []string) {
	for _, i := range items {
		names = append(names, string(i.Key))
	}
	slices.Sort(names)
	return names
}

func TestRealServerSelectsByLabelAndField(t *testing.T) {
	cluster, cfg, _ := onCluster(t)
	ctx, ns := withDeadline(t), cluster.Namespace(t)
	for _, name := range []string{"a", "b", "c"} {
		cluster.Kubectl(t, "create", "configmap", name, "-n", ns)
	}
	cluster.Kubectl(t, "label", "configmap", "a", "b", "-n", ns, "tier=web")
	for want, opts := range map[string]Options{
		"a b":   {LabelSelector: "tier=web"},
		"c":     {LabelSelector: "!tier"},
		"b":     {FieldSelector: "metadata.name=b"},
		"a":     {LabelSelector: "tier=web", FieldSelector: "metadata.name!=b"},
		"a b c": {},
	} {
		opts.Namespace = ns
		s, err := Typed[*corev1.ConfigMap](cfg, &opts)
		l, err := hangUp(t, s, err).List(ctx, source.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		items, err := readAll(l)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, k := range keys(items) {
			got = append(got, object.Key(k).Name())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v: got %v, want %s", s.Describe(), got, want)
		}
	}
}

func TestRealServerRefusalsHaveTheirReasons(t *testing.T) {
	cluster, cfg, _ := onCluster(t)
	ctx := withDeadline(t)
	first := func(s *Source[*RawObject], opts source.WatchOptions) error {
		w, err := s.Watch(ctx, opts)
		if err != nil {
			return err
		}
		defer w.Close()
		for err == nil {
			_, err = w.Read(nil)
		}
		return err
	}
	open := func(cfg *rest.Config, gvr schema.GroupVersionResource, opts ...option) *Source[*RawObject] {
		s, err := Raw(cfg, gvr, with(opts...))
		return hangUp(t, s, err)
	}
	list := func(s *Source[*RawObject], opts source.ListOptions) error {
		l, err := s.List(ctx, opts)
		if err == nil {
			_, err = readAll(l)
		}
		return err
	}
	maps := open(cfg, configMaps)

	cluster.Fault(t, "compact")
	wantReason(t, first(maps, source.WatchOptions{Version: "1"}), source.Expired)
	wantReason(t, list(maps, source.ListOptions{Match: source.NotOlderThan, Version: "999999999999"}), source.Ahead)

	nothing := configMaps
	nothing.Resource = "nonesuches"
	wantReason(t, list(open(cfg, nothing), source.ListOptions{}), source.NotServed)
	wantReason(t, first(open(cfg, nothing), source.WatchOptions{}), source.NotServed)

	stranger := rest.AnonymousClientConfig(cfg)
	wantReason(t, list(open(stranger, configMaps), source.ListOptions{}), source.Denied)
	stranger.BearerToken = "s3cret"
	err := list(open(stranger, configMaps), source.ListOptions{})
	wantReason(t, err, source.Denied)
	if strings.Contains(err.Error(), "s3cret") {
		t.Errorf("shows the token: %v", err)
	}
	wantReason(t, first(open(cfg, configMaps, tweak(func(o *metav1.ListOptions) {
		if o.Watch { // the server refuses this match for a watch with initial state
			o.ResourceVersionMatch = metav1.ResourceVersionMatchExact
		}
	})), source.WatchOptions{InitialState: true, Version: "1"}), source.Unsupported)
}

const widgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {size: {type: integer}}}}
`

func TestP10_RealServerCustomResourcesAndGroupsKeepTheirKind(t *testing.T) {
	cluster, cfg, _ := onCluster(t)
	ctx, ns := withDeadline(t), cluster.Namespace(t)
	apply := func(manifest string) {
		file := filepath.Join(t.TempDir(), "manifest.yaml")
		if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		cluster.Kubectl(t, "apply", "-f", file)
	}
	apply(widgetCRD)
	cluster.Kubectl(t, "wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=60s")
	apply("{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: " + ns + "}, size: 3}")
	cluster.Kubectl(t, "create", "deployment", "d", "--image=nginx", "-n", ns)

	s, err := Typed[*widget](cfg, &Options{Scheme: widgetScheme(), Namespace: ns})
	l, err := hangUp(t, s, err).List(ctx, source.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	items, err := readAll(l)
	if err != nil || len(items) != 1 || items[0].Value.Size != 3 || items[0].Value.Kind != "Widget" ||
		items[0].Value.APIVersion != "example.com/v1" {
		t.Errorf("typed: %+v, %v", items, err)
	}
	d, err := Dynamic(cfg, widgets.WithResource("widgets"), &Options{Namespace: ns})
	w, err := hangUp(t, d, err).Watch(ctx, source.WatchOptions{InitialState: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	changes, err := w.Read(nil)
	if err != nil || changes[0].Item.Value.GetKind() != "Widget" ||
		!reflect.DeepEqual(changes[0].Item.Value.Object["size"], int64(3)) {
		t.Errorf("dynamic: %+v, %v", changes, err)
	}

	deployments, err := Typed[*appsv1.Deployment](cfg, &Options{Namespace: ns})
	ld, err := hangUp(t, deployments, err).List(ctx, source.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := readAll(ld)
	if err != nil || len(got) != 1 || got[0].Value.Kind != "Deployment" || got[0].Value.APIVersion != "apps/v1" {
		t.Errorf("deployments: %+v, %v", got, err)
	}
}
