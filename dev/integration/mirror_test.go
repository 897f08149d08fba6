package integration

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/dev/testcluster"
)

// mirrored serves a mirror of the cluster under two names, and waits until it is complete.
func mirrored(t *testing.T, c *testcluster.Cluster) (url string) {
	t.Helper()
	fl, err := fleet.New(fleet.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"eu", "us"} {
		if err := fl.Join(name, c.Config(), fleet.Origin{Kind: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	srv, err := server.New(fl, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, run := range []func(context.Context) error{fl.Run, srv.Run} {
		wg.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	web := httptest.NewServer(srv)
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		web.CloseClientConnections()
		web.Close()
	})
	eventually(t, func() string {
		for _, c := range fl.Clusters() {
			if h := c.Health(); h.State != fleet.Ready {
				return fmt.Sprintf("cluster %s is %s: %s", c.Name(), h.State, h.Err)
			}
		}
		return ""
	})
	return web.URL
}

// eventually waits until nothing is missing, and fails with what is missing after a timeout.
func eventually(t *testing.T, missing func() string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(patience); ; <-tick.C {
		what := missing()
		if what == "" {
			return
		}
		if time.Now().After(late) {
			t.Fatal(what)
		}
	}
}

// observer is a controller that only records what it reconciles.
type observer struct {
	client.Client
	mu   sync.Mutex
	last map[string]string // the value of v that a reconcile found, or "gone"
}

func (o *observer) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var cm corev1.ConfigMap
	err := o.Get(ctx, req.NamespacedName, &cm)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last[req.String()] = cm.Data["v"]; err != nil {
		o.last[req.String()] = "gone"
	}
	return reconcile.Result{}, nil
}

func (o *observer) saw(t *testing.T, want map[string]string) {
	t.Helper()
	eventually(t, func() string {
		o.mu.Lock()
		defer o.mu.Unlock()
		for k, v := range want {
			if o.last[k] != v {
				return fmt.Sprintf("%s was reconciled as %q, want %q", k, o.last[k], v)
			}
		}
		return ""
	})
}

// start runs a manager on the mirror, which ends with the test.
func start(t *testing.T, mgr ctrl.Manager) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
	})
	if !mgr.GetCache().WaitForCacheSync(t.Context()) {
		t.Fatal("the manager's cache does not sync")
	}
}

func TestControllerRuntimeManagerRunsOnTheMirror(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	c := testcluster.Start(t, testcluster.WithoutControllers())
	url := mirrored(t, c)
	for name, base := range map[string]string{"a cluster": "/clusters/eu", "the fleet": "/fleet"} {
		t.Run(name, func(t *testing.T) {
			ns := c.Namespace(t)
			shown := []string{ns} // the namespaces of the mirror with the objects of ns
			if base == "/fleet" {
				shown = []string{"eu." + ns, "us." + ns}
			}
			lives(t, c, url+base, ns, shown)
		})
	}
}

func lives(t *testing.T, c *testcluster.Cluster, host, ns string, shown []string) {
	ctx := t.Context()
	api := kubernetes.NewForConfigOrDie(c.Config()).CoreV1().ConfigMaps(ns)
	create := func(name, team, v string) *corev1.ConfigMap {
		t.Helper()
		cm,
			err := api.Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}},
				Data: map[string]string{"team": team, "v": v}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return cm
	}
	there := create("there", "blue", "1")

	cfg := &rest.Config{Host: host}
	unnamed := true // two managers in one process may have controllers of the same name
	mgr, err := ctrl.NewManager(cfg,
		ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"},
			Controller: config.Controller{SkipNameValidation: &unnamed}})
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, "data.team", func(o client.Object) []string {
		return []string{o.(*corev1.ConfigMap).Data["team"]}
	}); err != nil {
		t.Fatal(err)
	}
	seen := &observer{Client: mgr.GetClient(), last: map[string]string{}}
	if err := ctrl.NewControllerManagedBy(mgr).Named("observer").For(&corev1.ConfigMap{}).Complete(seen); err != nil {
		t.Fatal(err)
	}
	blue, err := ctrlcache.New(cfg,
		ctrlcache.Options{Scheme: mgr.GetScheme(), ByObject: map[client.Object]ctrlcache.ByObject{
			&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(labels.Set{"team": "blue"}),
				Namespaces: map[string]ctrlcache.Config{shown[0]: {}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(blue); err != nil {
		t.Fatal(err)
	}
	start(t, mgr)

	each := func(name, v string) map[string]string {
		out := map[string]string{}
		for _, s := range shown {
			out[s+"/"+name] = v
		}
		return out
	}
	expect := func(from client.Reader, in string, want []string, opts ...client.ListOption) {
		t.Helper()
		eventually(t, func() string {
			var l corev1.ConfigMapList
			if err := from.List(ctx, &l, append(opts, client.InNamespace(in))...); err != nil {
				return err.Error()
			}
			var got []string
			for _, cm := range l.Items {
				got = append(got, cm.Name+"="+cm.Data["v"])
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				return fmt.Sprintf("the cache has %q in %s, want %q", got, in, want)
			}
			return ""
		})
	}
	ofTeam := func(team string) client.ListOption { return client.MatchingFields{"data.team": team} }
	seen.saw(t, each("there", "1"))
	expect(blue, shown[0], []string{"there=1"})

	create("new", "red", "1")
	seen.saw(t, each("new", "1"))
	there.Data["v"] = "2"
	if there, err = api.Update(ctx, there, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	seen.saw(t, each("there", "2"))
	for _, s := range shown {
		expect(mgr.GetClient(), s, []string{"new=1", "there=2"})
		expect(mgr.GetClient(), s, []string{"there=2"}, ofTeam("blue"))
		expect(mgr.GetClient(), s, []string{"new=1"}, client.MatchingLabels{"team": "red"})
	}
	expect(blue, shown[0], []string{"there=2"})

	// The label changes: the index follows, and a cache that selects by the label drops the object.
	there.Data["team"], there.Labels["team"] = "red", "red"
	if _, err = api.Update(ctx, there, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, s := range shown {
		expect(mgr.GetClient(), s, []string{"new=1", "there=2"}, ofTeam("red"))
		expect(mgr.GetClient(), s, nil, ofTeam("blue"))
	}
	expect(blue, shown[0], nil)
	create("late", "blue", "7")
	expect(blue, shown[0], []string{"late=7"})

	if err := api.Delete(ctx, "new", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	seen.saw(t, each("new", "gone"))
	for _, s := range shown {
		expect(mgr.GetClient(), s, []string{"late=7", "there=2"})
	}

	// The other forms of reading each have their own cache.
	var meta metav1.PartialObjectMetadata
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if err := mgr.GetClient().Get(ctx, client.ObjectKey{Namespace: shown[0], Name: "there"}, &meta); err != nil ||
		meta.Labels["team"] != "red" {
		t.Errorf("metadata: %v, %v", meta.Labels, err)
	}
	var any unstructured.Unstructured
	any.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if err := mgr.GetCache().Get(ctx, client.ObjectKey{Namespace: shown[0], Name: "there"}, &any); err != nil {
		t.Error(err)
	} else if v, _, _ := unstructured.NestedString(any.Object, "data", "v"); v != "2" {
		t.Errorf("unstructured: %q", v)
	}
	role := "cluster-admin"
	if len(shown) > 1 {
		role = "us:" + role
	}
	if err := mgr.GetClient().Get(ctx, client.ObjectKey{Name: role}, &rbacv1.ClusterRole{}); err != nil {
		t.Error(err)
	}
	// A write through the manager's client returns an error that says where to send it.
	err = mgr.GetClient().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shown[0], Name: "no"}})
	if err == nil || !strings.Contains(err.Error(), "read-only mirror") {
		t.Errorf("a write returned %v", err)
	}
}
