package oncluster

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/dev/testcluster"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/source/kube"
)

// These tests run on a real API server. They wait for versions and states, with a deadline, and never for a fixed
// time.
const patience = 2 * time.Minute

// mirror runs an informer over a source until the end of the test.
type mirror[T any] struct {
	*informer.Informer[T]
	mu       sync.Mutex
	problems []informer.Problem
	heard    chan struct{} // a signal for each problem, dropped if nothing receives it
}

func startMirror[T any](t *testing.T, src source.Source[T], options *informer.Options[T]) *mirror[T] {
	t.Helper()
	m := &mirror[T]{heard: make(chan struct{}, 1)}
	var opts informer.Options[T]
	if options != nil {
		opts = *options
	}
	opts.Logger = slog.New(slog.DiscardHandler)
	opts.OnProblem = func(p informer.Problem) {
		m.mu.Lock()
		m.problems = append(m.problems, p)
		m.mu.Unlock()
		select {
		case m.heard <- struct{}{}:
		default:
		}
	}
	inf, err := informer.New(src, &opts)
	if err != nil {
		t.Fatal(err)
	}
	m.Informer = inf
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- inf.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return m
}

// untilProblem waits until a problem of this reason was reported.
func (m *mirror[T]) untilProblem(t *testing.T, ctx context.Context, reason source.Reason) {
	t.Helper()
	m.untilMore(t, ctx, reason, 0)
}

// untilMore waits until more than n problems of this reason were reported.
func (m *mirror[T]) untilMore(t *testing.T, ctx context.Context, reason source.Reason, than uint64) {
	t.Helper()
	for m.Health().Reflector.Errors[reason] <= than {
		select {
		case <-m.heard:
		case <-ctx.Done():
			m.mu.Lock()
			defer m.mu.Unlock()
			t.Fatalf("no %q was reported; reported were %v", reason, m.problems)
		}
	}
}

func impatient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func configMaps(t *testing.T, cfg *rest.Config, ns string) *kube.Source[*corev1.ConfigMap] {
	t.Helper()
	return must[*kube.Source[*corev1.ConfigMap]](t)(kube.Typed[*corev1.ConfigMap](cfg, &kube.Options{Namespace: ns}))
}

// writer changes ConfigMaps and records the last version that the server returned.
type writer struct {
	t       *testing.T
	ctx     context.Context
	client  kubernetes.Interface
	ns      string
	version object.Version
}

func (w *writer) create(names ...string) {
	w.t.Helper()
	for _, name := range names {
		cm, err := w.client.CoreV1().ConfigMaps(w.ns).Create(w.ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		w.version = object.Version(cm.ResourceVersion)
	}
}

func (w *writer) update(name, value string) {
	w.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"v": value}}
	cm, err := w.client.CoreV1().ConfigMaps(w.ns).Update(w.ctx, cm, metav1.UpdateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.version = object.Version(cm.ResourceVersion)
}

func (w *writer) delete(name string) {
	w.t.Helper()
	if err := w.client.CoreV1().ConfigMaps(w.ns).Delete(w.ctx, name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// check waits for the last write and compares the mirror with the server, keys and versions.
func (w *writer) check(m *mirror[*corev1.ConfigMap]) {
	w.t.Helper()
	if err := m.WaitVersion(w.ctx, w.version); err != nil {
		w.t.Fatalf("%v; health: %+v", err, m.Health().Reflector)
	}
	list, err := w.client.CoreV1().ConfigMaps(w.ns).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	want := map[object.Key]string{}
	for _, cm := range list.Items {
		want[object.NewKey(cm.Namespace, cm.Name)] = cm.ResourceVersion
	}
	got := map[object.Key]string{}
	for k, cm := range m.Snapshot().All() {
		got[k] = cm.ResourceVersion
	}
	if !maps.Equal(got, want) {
		w.t.Fatalf("the mirror differs from the server:\n%s", cmp.Diff(want, got))
	}
}

func newWriter(t *testing.T, c *testcluster.Cluster) *writer {
	return &writer{t: t, ctx: impatient(t), client: kubernetes.NewForConfigOrDie(c.Config()), ns: c.Namespace(t)}
}

func TestP10_OnARealServerObjectsOfAWatchListKeepTheirKind(t *testing.T) {
	c := testcluster.Start(t, testcluster.WithoutControllers())
	w := newWriter(t, c)
	w.create("a", "b")
	m := startMirror(t, configMaps(t, c.Config(), w.ns), nil)
	w.check(m)
	if h := m.Health(); !h.Reflector.InitialState || h.Reflector.Lists != 0 || h.Reflector.State != reflector.Streaming {
		t.Errorf("the initial state was not read by a watch: %+v", h.Reflector)
	}
	cm, ok := m.Get(object.NewKey(w.ns, "a"))
	if !ok || cm.Kind != "ConfigMap" || cm.APIVersion != "v1" {
		t.Errorf("kind and apiVersion of the mirrored object: %+v", cm)
	}
	w.update("a", "2")
	w.check(m)
}

func TestP1_OnARealServerAListEqualsAWatchList(t *testing.T) {
	c := testcluster.Start(t, testcluster.WithoutControllers())
	w := newWriter(t, c)
	for i := range 25 {
		w.create(fmt.Sprintf("cm-%02d", i))
	}
	src := must[*kube.Source[*corev1.ConfigMap]](t)(kube.Typed[*corev1.ConfigMap](c.Config(),
		&kube.Options{Namespace: w.ns, WithoutInitialState: true, PageSize: 10}))
	m := startMirror(t, src, nil)
	if err := m.WaitSynced(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.update("cm-03", "x")
	w.check(m)
	if h := m.Health(); h.Reflector.InitialState || h.Reflector.Lists != 1 {
		t.Errorf("the initial state was not read by a list: %+v", h.Reflector)
	}
}

func TestP1_P6_OnARealServerMissedDeletesAreDeliveredAfterACompaction(t *testing.T) {
	c := testcluster.Start(t, testcluster.WithoutControllers())
	w := newWriter(t, c)
	w.create("stays", "goes")
	m := startMirror(t, configMaps(t, c.Config(), w.ns), nil)
	w.check(m)
	var mu sync.Mutex
	deleted := map[object.Key]int{}
	sub := must[*informer.Subscription[*corev1.ConfigMap]](t)(m.Subscribe(informer.HandlerFunc[*corev1.ConfigMap](func(
		e object.Event[*corev1.ConfigMap]) {
		if e.Type == object.Deleted {
			mu.Lock()
			deleted[e.Key]++
			mu.Unlock()
		}
	}), nil))
	<-sub.Synced()
	// Compaction restarts the API server without the history from which the mirror would resume.
	c.Fault(t, "compact")
	w.delete("goes")
	w.create("comes")
	w.check(m)
	m.untilProblem(t, w.ctx, source.Expired)
	// The delete was delivered before the version of the create was reached, but the handler may still be behind.
	w.update("stays", "last")
	w.check(m)
	m.Stop(w.ctx)
	mu.Lock()
	defer mu.Unlock()
	if n := deleted[object.NewKey(w.ns, "goes")]; n != 1 {
		t.Errorf("the delete was delivered %d times", n)
	}
}

func TestP1_OnARealServerRestartsPausesAndKillsAreSurvived(t *testing.T) {
	c := testcluster.Start(t, testcluster.WithoutControllers())
	w := newWriter(t, c)
	w.create("a")
	m := startMirror(t, configMaps(t, c.Config(), w.ns), nil)
	w.check(m)

	c.Fault(t, "restart", "apiserver")
	w.create("after-restart")
	w.check(m)

	c.Fault(t, "pause", "apiserver")
	before := m.Health().Reflector
	if cm, ok := m.Get(object.NewKey(w.ns, "after-restart")); !ok || cm.Kind != "ConfigMap" {
		t.Error("the mirror must stay readable while the server is paused")
	}
	if later := before.LastEvent.Add(time.Minute); before.Age(later) != time.Minute {
		t.Errorf("the last-event age does not grow while the server is silent: %s", before.Age(later))
	}
	c.Fault(t, "resume", "apiserver")
	w.create("after-pause")
	w.check(m)

	c.Fault(t, "kill", "apiserver")
	m.untilProblem(t, w.ctx, source.Refused)
	if s := m.Health().Reflector.State; s != reflector.Retrying {
		t.Errorf("state while the server is down: %s", s)
	}
	if _, ok := m.Get(object.NewKey(w.ns, "a")); !ok {
		t.Error("the mirror must stay readable while the server is down")
	}
	c.Fault(t, "restart", "apiserver")
	w.create("after-kill")
	w.delete("a")
	w.create("last")
	w.check(m)
}

func TestP11_OnARealServerTheMirrorFollowsItsRights(t *testing.T) {
	c := testcluster.Start(t, testcluster.WithoutControllers())
	w := newWriter(t, c)
	w.create("a")
	cfg := c.Config()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "reader-of-" + w.ns}
	m := startMirror(t, configMaps(t, cfg, w.ns), nil)
	m.untilProblem(t, w.ctx, source.Denied)
	if m.HasSynced() {
		t.Error("synced without rights")
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}}}}
	must[*rbacv1.Role](t)(w.client.RbacV1().Roles(w.ns).Create(w.ctx, role, metav1.CreateOptions{}))
	grant := func() {
		must[*rbacv1.RoleBinding](t)(w.client.RbacV1().RoleBindings(w.ns).Create(w.ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "reader"},
			Subjects:   []rbacv1.Subject{{Kind: "User", Name: cfg.Impersonate.UserName}},
			RoleRef:    rbacv1.RoleRef{Kind: "Role", Name: "reader", APIGroup: rbacv1.GroupName}}, metav1.CreateOptions{}))
	}
	grant()
	if err := m.WaitSynced(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.update("a", "granted")
	w.check(m)

	// Removing the right does not end an open watch, but a new one is refused. The mirrored objects stay, with their age.
	if err := w.client.RbacV1().RoleBindings(w.ns).Delete(w.ctx, "reader", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	denied := m.Health().Reflector.Errors[source.Denied]
	c.Fault(t, "restart", "apiserver")
	m.untilMore(t, w.ctx, source.Denied, denied)
	if cm, ok := m.Get(object.NewKey(w.ns, "a")); !ok || cm.Data["v"] != "granted" {
		t.Errorf("the mirror after the rights were withdrawn: %v, %v", cm, ok)
	}
	w.update("a", "unseen")
	grant()
	w.check(m)
}

var widgets = schema.GroupVersionResource{Group: "test.mirador.dev", Version: "v1", Resource: "widgets"}

const widgetCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test.mirador.dev}
spec:
  group: test.mirador.dev
  names: {kind: Widget, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func TestP11_OnARealServerADeletedCustomResourceCanReturn(t *testing.T) {
	c := testcluster.Start(t, testcluster.WithoutControllers())
	ctx, ns := impatient(t), c.Namespace(t)
	crd := t.TempDir() + "/crd.yaml"
	if err := os.WriteFile(crd, []byte(widgetCRD), 0o600); err != nil {
		t.Fatal(err)
	}
	install := func() {
		c.Kubectl(t, "apply", "-f", crd)
		c.Kubectl(t, "wait", "--for=condition=Established", "crd/widgets.test.mirador.dev", "--timeout=60s")
	}
	install()
	client := dynamic.NewForConfigOrDie(c.Config()).Resource(widgets).Namespace(ns)
	create := func(name string) object.Version {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "test.mirador.dev/v1", "kind": "Widget",
			"metadata": map[string]any{"name": name}, "size": int64(3)}}
		for {
			got, err := client.Create(ctx, obj, metav1.CreateOptions{})
			if err == nil {
				return object.Version(got.GetResourceVersion())
			}
			// A resource that was just established may still be unknown to the handler that answers.
			if ctx.Err() != nil {
				t.Fatal(err)
			}
		}
	}
	m := startMirror(t,
		must[*kube.Source[*unstructured.Unstructured]](t)(kube.Dynamic(c.Config(), widgets, &kube.Options{Namespace: ns})),
		&informer.Options[*unstructured.Unstructured]{Backoff: reflector.Backoff{Rare: 2 * time.Second}})
	if err := m.WaitVersion(ctx, create("one")); err != nil {
		t.Fatal(err)
	}
	c.Kubectl(t, "delete", "crd", "widgets.test.mirador.dev")
	m.untilProblem(t, ctx, source.NotServed)
	install()
	if err := m.WaitVersion(ctx, create("two")); err != nil {
		t.Fatalf("the resource did not return: %v; health %+v", err, m.Health().Reflector)
	}
	keys := map[object.Key]bool{}
	for k := range m.Snapshot().All() {
		keys[k] = true
	}
	if want := map[object.Key]bool{object.NewKey(ns, "two"): true}; !maps.Equal(keys, want) {
		t.Errorf("mirrored are %v", keys)
	}
}

// The test creates 2,000 pods, and 20,000 if MIRADOR_NIGHTLY is set.
func TestP1_OnARealServerThousandsOfPodsUnderChurnConverge(t *testing.T) {
	c := testcluster.Start(t, testcluster.WithoutControllers())
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	m := startMirror(t, must[*kube.Source[*corev1.Pod]](t)(kube.Typed[*corev1.Pod](c.Config(), nil)),
		&informer.Options[*corev1.Pod]{
			Transform: func(p *corev1.Pod) (*corev1.Pod, error) { p.ManagedFields = nil; return p, nil },
		})
	var mu sync.Mutex
	alive := map[object.Key]string{}
	must[*informer.Subscription[*corev1.Pod]](t)(m.Subscribe(informer.HandlerFunc[*corev1.Pod](func(
		e object.Event[*corev1.Pod]) {
		mu.Lock()
		defer mu.Unlock()
		if e.Type == object.Deleted {
			delete(alive, e.Key)
		} else {
			alive[e.Key] = e.New.ResourceVersion
		}
	}), nil))
	pods, changes := 2_000, 1_000
	if os.Getenv("MIRADOR_NIGHTLY") != "" {
		pods, changes = 20_000, 3_000
	}
	churn(t, ctx, c.Config(), c.Namespace(t), pods, changes)

	// When the source is quiet, the store and the handler equal it. The last events may still be in flight, so poll until
	// they have arrived.
	client := kubernetes.NewForConfigOrDie(c.Config())
	var want, got, delivered map[object.Key]string
	for {
		want = podVersions(t, ctx, client)
		got = map[object.Key]string{}
		for k, p := range m.Snapshot().All() {
			got[k] = p.ResourceVersion
		}
		mu.Lock()
		delivered = maps.Clone(alive)
		mu.Unlock()
		if maps.Equal(got, want) && maps.Equal(delivered, want) {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("the server has %d pods, the mirror %d, the handler %d:\n%.2000s", len(want), len(got),
				len(delivered), cmp.Diff(want, got))
		}
	}
	if len(want) != pods {
		t.Errorf("only %d pods existed", len(want))
	}
	h := m.Health()
	t.Logf("%d objects, %d events, %d coalesced in the queue, %d retries", h.Objects, h.Events, h.QueueCoalesced,
		h.Reflector.Retries)
}

// churn creates pods and changes some of them meanwhile: they are relabelled, or deleted and created again. It returns
// when the server has accepted everything.
func churn(t *testing.T, ctx context.Context, cfg *rest.Config, ns string, pods, changes int) {
	t.Helper()
	cfg.ContentType = runtime.ContentTypeProtobuf
	api := kubernetes.NewForConfigOrDie(cfg).CoreV1().Pods(ns)
	create := func(name string) error {
		_, err := api.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name[:len(name)-2]}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "registry.example/app:v1"}}},
		}, metav1.CreateOptions{})
		return err
	}
	change := func(i int, name string) error {
		if i%3 > 0 {
			_, err := api.Patch(ctx, name, types.MergePatchType,
				fmt.Appendf(nil, `{"metadata":{"labels":{"change":"c%d"}}}`, i), metav1.PatchOptions{})
			return err
		}
		if err := api.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			return err
		}
		return create(name)
	}
	const workers = 16
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < pods; i += workers {
				name := fmt.Sprintf("pod-%05d", i)
				err := create(name)
				if err == nil && i%(pods/changes) == 0 {
					err = change(i, name)
				}
				if err != nil {
					t.Errorf("pod %s: %v", name, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// podVersions lists the versions of all pods.
func podVersions(t *testing.T, ctx context.Context, client kubernetes.Interface) map[object.Key]string {
	t.Helper()
	raw, err := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/pods").
		SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").Do(ctx).Raw()
	if err != nil {
		t.Fatal(err)
	}
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	versions := make(map[object.Key]string, len(list.Items))
	for i := range list.Items {
		versions[object.NewKey(list.Items[i].Namespace, list.Items[i].Name)] = list.Items[i].ResourceVersion
	}
	return versions
}
