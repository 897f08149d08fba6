package factory_test

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/factory"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

func TestSameResourceScopeAndFormIsOneInformer(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		w.create(pod("a", "one"))
		first, second := pods(w, nil), pods(w, nil)
		spelled, other := pods(w, &factory.Scope{Labels: "x=1,y=2"}), pods(w, &factory.Scope{Labels: "y=2, x=1"})
		w.start()
		w.sync()
		if a, b := first.Informers()[0], second.Informers()[0]; a != b {
			t.Error("the same resource and scope have two informers")
		}
		if a, b := spelled.Informers()[0], other.Informers()[0]; a != b {
			t.Error("one selector spelled in two ways has two informers")
		}
		if a, b := first.Informers()[0], spelled.Informers()[0]; a == b {
			t.Error("two scopes share an informer")
		}
		if n := w.watchRequests(podsGVR); n != 2 {
			t.Errorf("%d watches of pods were opened, want 2: one per scope", n)
		}
		byName := open[factory.Generic](w)(w.f.ForResource(podsGVR, nil))
		if n := len(w.f.Health()); n != 2 {
			t.Errorf("%d informers after ForResource, want 2: pods by name are those of Of", n)
		}
		byName.Release()
		open[any](w)(w.f.Dynamic(podsGVR, nil))
		open[any](w)(w.f.Metadata(podsGVR, nil))
		open[any](w)(w.f.Raw(podsGVR, nil))
		seen := map[string]bool{}
		for _, h := range w.f.Health() {
			seen[h.Name] = true
		}
		for _, name := range []string{"pods.v1", "pods.v1[labels=x=1,y=2]", "pods.v1(dynamic)",
			"pods.v1(metadata)", "pods.v1(raw)"} {
			if !seen[name] {
				t.Errorf("no informer has the name %s; the names are %v", name, seen)
			}
		}
	})
}

func TestEveryFormReadsTheSameObjects(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		w.create(pod("a", "one", "app=web"), pod("b", "two", "app=db"))
		typed := pods(w, nil)
		dynamic, err := w.f.Dynamic(podsGVR, nil)
		if err != nil {
			t.Fatal(err)
		}
		meta, err := w.f.Metadata(podsGVR, nil)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := w.f.Raw(podsGVR, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.start()
		w.sync()
		web := selector(t, "app=web")
		if got := names[*corev1.Pod](t)(typed.Lister().List(web)); got != "[a/one]" {
			t.Errorf("typed: %s", got)
		}
		p, err := typed.Lister().Get("a", "one")
		if err != nil || p.Kind != "Pod" || p.APIVersion != "v1" {
			t.Errorf("the kind is %q %q, %v", p.APIVersion, p.Kind, err)
		}
		if objs, err := dynamic.Lister().List(web); err != nil || len(objs) != 1 || objs[0].GetKind() != "Pod" {
			t.Errorf("dynamic: %v, %v", objs, err)
		}
		if objs, err := meta.Lister().InNamespace("b").List(nil); err != nil || len(objs) != 1 || objs[0].Name != "two" {
			t.Errorf("metadata: %v, %v", objs, err)
		}
		if objs, err := raw.Lister().List(web); err != nil || len(objs) != 1 ||
			!strings.Contains(string(objs[0].Bytes), `"name":"one"`) {
			t.Errorf("raw: %d objects, %v", len(objs), err)
		}
		if objs, err := raw.Lister().InNamespace("b").List(nil); err != nil || len(objs) != 1 {
			t.Errorf("raw by namespace: %d objects, %v", len(objs), err)
		}
	})
}

func TestLastReleaseStopsTheInformerAndFreesItsMemory(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		w.create(pod("a", "one"))
		first, second := pods(w, nil), pods(w, nil)
		w.start()
		w.sync()
		lister := first.Lister()
		held := held(t, second)
		first.Release()
		first.Release() // a second call does nothing
		synctest.Wait()
		if n := w.OpenWatches(); n != 1 {
			t.Fatalf("%d watches are open while one user is left, want 1", n)
		}
		_, err := lister.Get("a", "one")
		if !errors.Is(err, factory.ErrReleased) {
			t.Errorf("List after Release: %v", err)
		}
		second.Release()
		synctest.Wait()
		if n := w.OpenWatches(); n != 0 {
			t.Errorf("%d watches are open after the last release", n)
		}
		if n := len(w.f.Health()); n != 0 {
			t.Errorf("%d informers are left", n)
		}
		for range 3 {
			runtime.GC()
		}
		if held.Value() != nil {
			t.Error("a mirrored pod is still in memory")
		}
		again := pods(w, nil)
		if err := again.WaitSynced(w.Context()); err != nil {
			t.Fatal(err)
		}
		if got := names[*corev1.Pod](t)(again.Lister().List(nil)); got != "[a/one]" {
			t.Errorf("List after opening it again = %s", got)
		}
	})
}

// held returns a weak pointer to a mirrored pod. It is a separate function so that no variable of the test refers to
// the pod.
//
//go:noinline
func held(t *testing.T, h *factory.Handle[*corev1.Pod]) weak.Pointer[corev1.Pod] {
	p, err := h.Lister().Get("a", "one")
	if err != nil {
		t.Fatal(err)
	}
	return weak.Make(p)
}

func TestReleaseEndsOnlyTheHandlesOwnSubscriptions(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		mine, others := pods(w, nil), pods(w, nil)
		var gone, kept int
		open[any](w)(mine.Subscribe(informer.Funcs[*corev1.Pod]{OnAdd: func(*corev1.Pod, bool) { gone++ }}, nil))
		open[any](w)(others.Subscribe(informer.Funcs[*corev1.Pod]{OnAdd: func(*corev1.Pod, bool) { kept++ }}, nil))
		w.start()
		w.sync()
		mine.Release()
		w.create(pod("a", "one"))
		synctest.Wait()
		if gone != 0 || kept != 1 {
			t.Errorf("the released handler got %d events, the other %d; want 0 and 1", gone, kept)
		}
		if _, err := mine.Subscribe(informer.Funcs[*corev1.Pod]{}, nil); !errors.Is(err, factory.ErrReleased) {
			t.Errorf("subscribing to a released handle: %v", err)
		}
		if err := mine.AddIndex("x", byApp); !errors.Is(err, factory.ErrReleased) {
			t.Errorf("adding an index to a released handle: %v", err)
		}
		if got := mine.Informers(); len(got) != 0 {
			t.Errorf("a released handle has %d informers", len(got))
		}
	})
}

func TestReleaseInsideCallbackReturns(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		h := pods(w, nil)
		released := make(chan struct{})
		open[any](w)(h.Subscribe(informer.Funcs[*corev1.Pod]{OnAdd: func(*corev1.Pod, bool) {
			h.Release()
			close(released)
		}}, nil))
		w.start()
		w.create(pod("a", "one"))
		<-released
		synctest.Wait()
		if n := w.OpenWatches(); n != 0 {
			t.Errorf("%d watches are open", n)
		}
	})
}

func TestScopeOfSeveralNamespacesIsOneHandle(t *testing.T) {
	withFactory(t, &factory.Options{Scope: factory.Scope{Namespaces: []string{"b", "a", "b"}}}, func(w *fixture) {
		w.create(pod("a", "one", "app=web"), pod("b", "two"), pod("c", "three"))
		h, alone := pods(w, nil), pods(w, &factory.Scope{Namespaces: []string{"a"}})
		if err := h.AddIndex("app", byApp); err != nil {
			t.Fatal(err)
		}
		var together int
		seen := map[object.Key]bool{}
		sub, err := h.Subscribe(informer.HandlerFunc[*corev1.Pod](func(e object.Event[*corev1.Pod]) {
			together++ // the race detector reports overlapping calls
			seen[e.Key] = true
		}), nil)
		if err != nil {
			t.Fatal(err)
		}
		w.start()
		w.sync()
		if err := sub.WaitSynced(w.Context()); err != nil || !sub.HasSynced() {
			t.Fatalf("the handler is not synced: %v", err)
		}
		if n := w.watchRequests(podsGVR); n != 2 {
			t.Errorf("%d watches of pods, want 2: namespace a is shared", n)
		}
		lister := h.Lister()
		if got := names[*corev1.Pod](t)(lister.List(nil)); got != "[a/one b/two]" {
			t.Errorf("List = %s", got)
		}
		if got := names[*corev1.Pod](t)(lister.InNamespace("b").List(nil)); got != "[b/two]" {
			t.Errorf("InNamespace(b) = %s", got)
		}
		if got := names[*corev1.Pod](t)(lister.ByIndex("app", "web")); got != "[a/one]" {
			t.Errorf("ByIndex = %s", got)
		}
		if p, err := lister.Get("b", "two"); err != nil || p.Name != "two" {
			t.Errorf("Get = %v, %v", p, err)
		}
		_, err = lister.Get("c", "three")
		wantError(t, err, `namespace "c" is not mirrored`, "a, b")
		_, err = lister.InNamespace("c").List(nil)
		wantError(t, err, `namespace "c" is not mirrored`)
		if all := h.Informers(); len(all) != 2 || alone.Informers()[0] != all[0] {
			t.Errorf("there are %d informers, and that of namespace a is not shared", len(all))
		}
		synctest.Wait()
		if together != 2 || !seen["a/one"] || !seen["b/two"] {
			t.Errorf("the handler saw %v in %d calls", seen, together)
		}
		sub.Remove()
		w.create(pod("a", "late"))
		synctest.Wait()
		if together != 2 {
			t.Error("a removed handler was called")
		}
	})
}

func TestClusterScopedResourcesIgnoreTheFactorysNamespaces(t *testing.T) {
	withFactory(t, &factory.Options{Scope: factory.Scope{Namespaces: []string{"a"}}}, func(w *fixture) {
		w.create(nodeNamed("n1"))
		h, err := factory.Of[*corev1.Node](w.f, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.start()
		w.sync()
		if n, err := h.Lister().Get("", "n1"); err != nil || n.Name != "n1" {
			t.Errorf("Get = %v, %v", n, err)
		}
		_, err = factory.Of[*corev1.Node](w.f, &factory.Scope{Namespaces: []string{"a"}})
		wantError(t, err, "nodes.v1", "in no namespace", "leave")
	})
}

// Gadget is a custom resource with its own Go type.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size int `json:"size"`
	} `json:"spec"`
}

func (g *Gadget) DeepCopyObject() kruntime.Object {
	out := *g
	g.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func TestCustomTypesAreFoundByTheirSchemeAndByName(t *testing.T) {
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	gvr := gv.WithResource("gadgetry") // not the plural of the kind
	scheme := kruntime.NewScheme()
	scheme.AddKnownTypeWithName(gv.WithKind("Gadget"), &Gadget{})
	metav1.AddToGroupVersion(scheme, gv)
	opts := &factory.Options{Scheme: scheme, Types: []factory.TypeOption{factory.ResourceOf[*Gadget](gvr)}}
	withFactory(t, opts, func(w *fixture) {
		register(t, w.Server, gvr, "Gadget")
		u := widget("a", "big")
		u.SetKind("Gadget")
		u.Object["spec"] = map[string]any{"size": int64(7)}
		w.create(u)
		byName, err := w.f.ForResource(gvr, nil)
		if err != nil {
			t.Fatal(err)
		}
		typed, err := factory.Of[*Gadget](w.f, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.start()
		w.sync()
		g, err := typed.Lister().Get("a", "big")
		if err != nil || g.Spec.Size != 7 {
			t.Fatalf("Get = %+v, %v", g, err)
		}
		obj, err := byName.Get("a", "big")
		if err != nil || obj != kruntime.Object(g) {
			t.Errorf("ForResource returns another object: %T %v", obj, err)
		}
	})
}

func register(t testing.TB, s *informertest.Server, gvr schema.GroupVersionResource, kind string) {
	t.Helper()
	if err := s.Register(gvr, kind, true); err != nil {
		t.Fatal(err)
	}
}

func TestGenericHandlesReadAndSubscribe(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		register(t, w.Server, widgetsGVR, "Widget")
		w.create(pod("a", "one", "app=web"), widget("a", "gear"))
		byName, err := w.f.ForResource(podsGVR, nil)
		if err != nil {
			t.Fatal(err)
		}
		custom, err := w.f.ForResource(widgetsGVR, nil)
		if err != nil {
			t.Fatal(err)
		}
		if byName.Resource() != podsGVR {
			t.Errorf("Resource = %v", byName.Resource())
		}
		var events []object.Event[kruntime.Object]
		record := func(e object.Event[kruntime.Object]) { events = append(events, e) }
		open[any](w)(byName.Subscribe(informer.HandlerFunc[kruntime.Object](record), nil))
		if err := byName.AddIndex("app", appOfAny); err != nil {
			t.Fatal(err)
		}
		if err := byName.AddIndex("app", appOfAny); err != nil {
			t.Errorf("the same function again: %v", err)
		}
		w.start()
		if err := byName.WaitSynced(w.Context()); err != nil || !byName.HasSynced() {
			t.Fatal(err)
		}
		w.sync()
		if obj, err := byName.Get("a", "one"); err != nil || reflect.TypeOf(obj) != reflect.TypeFor[*corev1.Pod]() {
			t.Errorf("pods by name are %T, %v; want the Go type", obj, err)
		}
		if objs, err := custom.List(nil); err != nil || len(objs) != 1 {
			t.Errorf("widgets: %v, %v", objs, err)
		}
		if obj, err := custom.Get("a", "none"); err == nil || obj != nil {
			t.Errorf("a missing object is %v, %v", obj, err)
		}
		if _, err := w.Delete(pod("a", "one")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(events) != 2 || events[0].Old != nil || events[0].New == nil || events[1].Old == nil || events[1].New != nil {
			t.Errorf("events: %+v", events)
		}
		if _, err := byName.Subscribe(nil, nil); err == nil {
			t.Error("Subscribe accepted a nil handler")
		}
		if err := byName.AddIndex("none", nil); err == nil {
			t.Error("AddIndex accepted a nil function")
		}
	})
}

func TestForResourceListsIfTheServerHasNoStreamingList(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		w.Inject(informertest.Fault{RefuseInitialEvents: true})
		w.create(pod("a", "one", "app=web"), pod("b", "two"))
		h, err := w.f.ForResource(podsGVR, &factory.Scope{Fields: "metadata.namespace=a"})
		if err != nil {
			t.Fatal(err)
		}
		w.start()
		w.sync()
		objs, err := h.List(selector(t, "app=web"))
		if err != nil || len(objs) != 1 {
			t.Fatalf("List = %v, %v", objs, err)
		}
		p, ok := objs[0].(*corev1.Pod)
		if !ok || p.Name != "one" || p.Kind != "Pod" {
			t.Errorf("it is a %T: %+v", objs[0], p)
		}
	})
}

func appOfAny(obj kruntime.Object) ([]string, error) { return byApp(obj.(*corev1.Pod)) }

func byApp(p *corev1.Pod) ([]string, error) { return []string{p.Labels["app"]}, nil }

func TestIndexesOfAllUsersAreSharedAndKeptAfterAStop(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		w.create(pod("a", "one", "app=web"))
		first, second := pods(w, nil), pods(w, nil)
		if err := errors.Join(first.AddIndex("app", byApp), second.AddIndex("app", byApp)); err != nil {
			t.Fatalf("the same function twice: %v", err)
		}
		closure := func(v string) func(*corev1.Pod) ([]string, error) {
			return func(*corev1.Pod) ([]string, error) { return []string{v}, nil }
		}
		if err := first.AddIndex("x", closure("1")); err != nil {
			t.Fatal(err)
		}
		err := second.AddIndex("x", closure("2"))
		if err == nil {
			t.Fatalf("two closures of one literal under one name: %v", err)
		}
		wantError(t, err, `"x"`, "pods.v1", "choose another name")
		w.start()
		w.sync()
		if err := second.AddIndex("late", closure("here")); err != nil {
			t.Fatalf("an index after the start: %v", err)
		}
		if got := names[*corev1.Pod](t)(first.Lister().ByIndex("late", "here")); got != "[a/one]" {
			t.Errorf("the late index has %s", got)
		}
		_, err = first.Lister().ByIndex("nope", "")
		wantError(t, err, `"nope"`, "app", "late")
		w.stop()
		if err := first.AddIndex("between", closure("too")); err != nil {
			t.Fatalf("an index while stopped: %v", err)
		}
		w.start()
		w.sync()
		for index, value := range map[string]string{"app": "web", "x": "1", "late": "here", "between": "too"} {
			if got := names[*corev1.Pod](t)(first.Lister().ByIndex(index, value)); got != "[a/one]" {
				t.Errorf("after a new start, index %s has %s", index, got)
			}
		}
		wantError(t, first.AddIndex("", byApp), "name")
		wantError(t, first.AddIndex("nil", nil), "no function")
	})
}

func TestWaitSyncedErrorSaysWhatTheInformerIsDoing(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		w.Inject(informertest.Fault{Resource: "pods", Code: 403})
		h := pods(w, nil)
		w.start()
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
		defer cancel()
		wantError(t, h.WaitSynced(ctx), "pods", "may list and watch")
		if h.HasSynced() {
			t.Error("HasSynced is true before the sync")
		}
	})
}

// The index by namespace is the same for all handles, and contains the stored objects.
func TestNamespaceIndexIsSharedByTypedAndGenericHandles(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		w.create(pod("a", "one"), pod("a", "two"), pod("b", "three"))
		typed := pods(w, nil)
		byName, err := w.f.ForResource(podsGVR, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := typed.AddIndex("ns", store.ByNamespace[*corev1.Pod]()); err != nil {
				t.Fatal(err)
			}
			if err := byName.AddIndex("ns", store.ByNamespace[kruntime.Object]()); err != nil {
				t.Fatal(err)
			}
		}
		w.start()
		w.sync()
		if got, err := typed.Lister().ByIndex("ns", "a"); err != nil || len(got) != 2 {
			t.Errorf("%d pods of a, %v", len(got), err)
		}
		if err := typed.AddIndex("ns", func(*corev1.Pod) ([]string, error) { return nil, nil }); err == nil {
			t.Error("an index with another function and the same name was added")
		}
	})
}
