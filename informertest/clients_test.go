package informertest_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/object"
)

var (
	podsGVR    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	widgetsGVR = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

func pod(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels},
		Spec:       corev1.PodSpec{NodeName: "node-" + name, Containers: []corev1.Container{{Name: "c", Image: "nginx"}}},
	}
}

func widget(name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": "default", "name": name},
		"spec":     map[string]any{"size": size},
	}}
}

func mustCreate(t *testing.T, s *informertest.Server, objs ...runtime.Object) object.Version {
	t.Helper()
	var v object.Version
	for _, o := range objs {
		var err error
		if v, err = s.Create(o); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// everywhere runs a test over sockets, and over pipes inside a synctest bubble.
func everywhere(t *testing.T, test func(t *testing.T, s *informertest.Server, cfg *rest.Config)) {
	t.Run("sockets", func(t *testing.T) {
		s := informertest.NewServer()
		cfg, stop := informertest.Serve(s)
		defer stop()
		test(t, s, cfg)
	})
	t.Run("pipes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := informertest.NewServer()
			cfg, stop := informertest.Pipe(s)
			defer stop()
			test(t, s, cfg)
		})
	})
}

func protobuf(cfg *rest.Config) *rest.Config {
	c := rest.CopyConfig(cfg)
	c.ContentType = runtime.ContentTypeProtobuf
	c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return c
}

func jsonOnly(cfg *rest.Config) *rest.Config {
	c := rest.CopyConfig(cfg)
	c.ContentType = runtime.ContentTypeJSON
	return c
}

func TestClientsetListsWatchesAndWrites(t *testing.T) {
	for name, encode := range map[string]func(*rest.Config) *rest.Config{"json": jsonOnly, "protobuf": protobuf} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, s *informertest.Server, cfg *rest.Config) {
				ctx := t.Context()
				pods := kubernetes.NewForConfigOrDie(encode(cfg)).CoreV1().Pods("default")
				created, err := pods.Create(ctx, pod("a", map[string]string{"app": "x"}), metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if created.UID == "" || created.ResourceVersion != "2" || created.CreationTimestamp.IsZero() {
					t.Errorf("created = %q at %q on %v", created.UID, created.ResourceVersion, created.CreationTimestamp)
				}
				list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "app=x"})
				if err != nil {
					t.Fatal(err)
				}
				if len(list.Items) != 1 || list.ResourceVersion != "2" || list.Items[0].Spec.Containers[0].Image != "nginx" {
					t.Errorf("list = %d items at %s", len(list.Items), list.ResourceVersion)
				}
				w, err := pods.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true})
				if err != nil {
					t.Fatal(err)
				}
				defer w.Stop()
				created.Labels["app"] = "y"
				updated, err := pods.Update(ctx, created, metav1.UpdateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				updated.Status.Phase = corev1.PodRunning
				updated.Spec.NodeName = "must not change by a status update"
				if updated, err = pods.UpdateStatus(ctx, updated, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				if updated.Spec.NodeName != "node-a" || updated.Status.Phase != corev1.PodRunning {
					t.Errorf("after UpdateStatus node %q, phase %q", updated.Spec.NodeName, updated.Status.Phase)
				}
				created.Labels["app"] = "z"
				if _, err := pods.Update(ctx, created, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
					t.Errorf("updating an old version: %v", err)
				}
				if err := pods.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				if _, err := pods.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
					t.Errorf("get after delete: %v", err)
				}
				s.Bookmark(podsGVR)
				var got []string
				for range 4 {
					e := <-w.ResultChan()
					got = append(got, string(e.Type)+" "+e.Object.(*corev1.Pod).ResourceVersion)
				}
				if diff := cmp.Diff([]string{"MODIFIED 3", "MODIFIED 4", "DELETED 5", "BOOKMARK 5"}, got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestDynamicClientWorksOnACustomResource(t *testing.T) {
	everywhere(t, func(t *testing.T, s *informertest.Server, cfg *rest.Config) {
		ctx := t.Context()
		widgets := dynamic.NewForConfigOrDie(cfg).Resource(widgetsGVR).Namespace("default")
		if _, err := widgets.List(ctx, metav1.ListOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("before it is registered: %v", err)
		}
		if err := s.Register(widgetsGVR, "Widget", true); err != nil {
			t.Fatal(err)
		}
		if _, err := widgets.Create(ctx, widget("w", 1), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		list, err := widgets.List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if list.GetKind() != "WidgetList" || len(list.Items) != 1 || list.Items[0].GetKind() != "Widget" {
			t.Errorf("list of kind %q: %v", list.GetKind(), list.Items)
		}
		w, err := widgets.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Unregister(widgetsGVR); err != nil {
			t.Fatal(err)
		}
		if e := <-w.ResultChan(); e.Type != "DELETED" {
			t.Errorf("after unregistering the watch sent %v", e)
		}
		if _, open := <-w.ResultChan(); open {
			t.Error("the watch of an unregistered resource stays open")
		}
		if _, err := widgets.List(ctx, metav1.ListOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("after it is unregistered: %v", err)
		}
	})
}

func TestMetadataClientGetsMetadataOnly(t *testing.T) {
	everywhere(t, func(t *testing.T, s *informertest.Server, cfg *rest.Config) {
		if err := s.Register(widgetsGVR, "Widget", true); err != nil {
			t.Fatal(err)
		}
		mustCreate(t, s, pod("a", nil), widget("w", 1))
		for _, gvr := range []schema.GroupVersionResource{podsGVR, widgetsGVR} {
			client := metadata.NewForConfigOrDie(cfg).Resource(gvr)
			list, err := client.List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(list.Items) != 1 || list.Items[0].UID == "" {
				t.Errorf("%s: %v", gvr.Resource, list.Items)
			}
			w, err := client.Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			e := <-w.ResultChan()
			if m, ok := e.Object.(*metav1.PartialObjectMetadata); !ok || m.Name != list.Items[0].Name {
				t.Errorf("%s: the watch sent %v", gvr.Resource, e)
			}
			w.Stop()
		}
	})
}

func TestStockInformerSyncsByWatchListAndFollows(t *testing.T) {
	everywhere(t, func(t *testing.T, s *informertest.Server, cfg *rest.Config) {
		mustCreate(t, s, pod("a", nil), pod("b", nil))
		ctx, cancel := context.WithCancel(t.Context())
		factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(protobuf(cfg)), 0)
		inf := factory.Core().V1().Pods().Informer()
		added := make(chan string, 10)
		inf.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) { added <- o.(*corev1.Pod).Name }})
		factory.StartWithContext(ctx)
		defer factory.Shutdown()
		defer cancel()
		if !cache.WaitForCacheSync(ctx.Done(), inf.HasSynced) {
			t.Fatal("not synced")
		}
		mustCreate(t, s, pod("c", nil))
		// client-go collects the initial state in a map and delivers it in map order.
		first, then := []string{<-added, <-added}, <-added
		slices.Sort(first)
		if diff := cmp.Diff([]string{"a", "b", "c"}, append(first, then)); diff != "" {
			t.Errorf("added: %s", diff)
		}
		var verbs []string
		for _, r := range s.Requests() {
			verbs = append(verbs, r.Verb+" "+r.Query.Get("sendInitialEvents"))
		}
		if diff := cmp.Diff([]string{"watch true"}, verbs); diff != "" {
			t.Errorf("requests: %s", diff)
		}
	})
}

func TestDiscoveryFollowsTheRegisteredResources(t *testing.T) {
	for name, legacy := range map[string]bool{"aggregated": false, "legacy": true} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, s *informertest.Server, cfg *rest.Config) {
				client := discovery.NewDiscoveryClientForConfigOrDie(cfg)
				client.UseLegacyDiscovery = legacy
				kinds := func() map[string]bool {
					_, lists, err := client.ServerGroupsAndResources()
					if err != nil {
						t.Fatal(err)
					}
					out := map[string]bool{}
					for _, l := range lists {
						for _, r := range l.APIResources {
							out[l.GroupVersion+" "+r.Kind] = true
						}
					}
					return out
				}
				if k := kinds(); !k["v1 Pod"] || !k["apps/v1 Deployment"] || !k["networking.k8s.io/v1 NetworkPolicy"] ||
					k["example.com/v1 Widget"] {
					t.Errorf("at first: %v", k)
				}
				s.Register(widgetsGVR, "Widget", true)
				if !kinds()["example.com/v1 Widget"] {
					t.Error("a registered resource is not discovered")
				}
				s.Unregister(widgetsGVR)
				if kinds()["example.com/v1 Widget"] {
					t.Error("an unregistered resource is still discovered")
				}
				v, err := client.ServerVersion()
				if err != nil || v.Major != "1" {
					t.Errorf("version %v, %v", v, err)
				}
			})
		})
	}
}

func TestItemsCarryTheirKindExceptInBuiltInLists(t *testing.T) {
	s := informertest.NewServer()
	s.Register(widgetsGVR, "Widget", true)
	mustCreate(t, s, pod("a", nil), widget("w", 1))
	cfg, stop := informertest.Serve(s)
	defer stop()
	for path, kind := range map[string]string{"/api/v1/pods": "", "/apis/example.com/v1/widgets": "Widget"} {
		resp, err := http.Get(cfg.Host + path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Kind  string
			Items []metav1.PartialObjectMetadata
		}
		if err := json.Unmarshal(b, &list); err != nil {
			t.Fatal(err)
		}
		if list.Items[0].Kind != kind || list.Kind == "" {
			t.Errorf("%s: list of kind %q, item of kind %q, want %q", path, list.Kind, list.Items[0].Kind, kind)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestTableIsRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, s *informertest.Server, cfg *rest.Config) {
		client := kubernetes.NewForConfigOrDie(cfg).CoreV1().RESTClient()
		get := func(accept string) rest.Result {
			return client.Get().AbsPath("/api/v1/pods").SetHeader("Accept", accept).Do(t.Context())
		}
		if err := get("application/json;as=Table;g=meta.k8s.io;v=v1").Error(); !apierrors.IsNotAcceptable(err) {
			t.Errorf("a table alone: %v", err)
		}
		b, err := get("application/json;as=Table;g=meta.k8s.io;v=v1,application/json").Raw()
		var list corev1.PodList
		if err != nil || json.Unmarshal(b, &list) != nil || list.Kind != "PodList" {
			t.Errorf("accepting a table, then JSON: %s, %v", b, err)
		}
	})
}

func TestDeploymentsRoundTripThroughEveryEncoding(t *testing.T) {
	everywhere(t, func(t *testing.T, s *informertest.Server, cfg *rest.Config) {
		three := int32(3)
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d",
			Annotations: map[string]string{"a": "b"}},
			Spec: appsv1.DeploymentSpec{Replicas: &three,
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"x": "y"}}}}
		mustCreate(t, s, d)
		one, err := kubernetes.NewForConfigOrDie(protobuf(cfg)).AppsV1().Deployments("").List(t.Context(),
			metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		two, err := kubernetes.NewForConfigOrDie(jsonOnly(cfg)).AppsV1().Deployments("").List(t.Context(),
			metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(one.Items, two.Items); diff != "" {
			t.Errorf("protobuf and JSON differ: %s", diff)
		}
		if diff := cmp.Diff(d.Spec, one.Items[0].Spec); diff != "" {
			t.Errorf("spec: %s", diff)
		}
	})
}

func TestTimeIsFakeOnPipes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer(informertest.BookmarkEvery(time.Minute))
		cfg, stop := informertest.Pipe(s)
		defer stop()
		timeout := int64(3600)
		w, err := kubernetes.NewForConfigOrDie(cfg).CoreV1().Pods("").Watch(t.Context(),
			metav1.ListOptions{ResourceVersion: "1", AllowWatchBookmarks: true, TimeoutSeconds: &timeout})
		if err != nil {
			t.Fatal(err)
		}
		start, n := time.Now(), 0
		for e := range w.ResultChan() {
			if e.Type != "BOOKMARK" {
				t.Errorf("an idle watch sent %v", e)
			}
			n++
		}
		if took := time.Since(start); took != time.Hour || n < 60 || n > 61 {
			t.Errorf("the watch ended after %v and %s bookmarks", took, strconv.Itoa(n))
		}
	})
}
