package integration

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/dev/testcluster"
)

const patience = 90 * time.Second

// copier keeps a copy of every ConfigMap that asks for one: a small controller that reads from the manager's cache and
// owns what it creates.
type copier struct{ client.Client }

func (c *copier) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var from corev1.ConfigMap
	if err := c.Get(ctx, req.NamespacedName, &from); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if from.Labels["copy"] != "me" {
		return reconcile.Result{}, nil
	}
	to := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: from.Namespace, Name: from.Name + "-copy"}}
	_, err := ctrl.CreateOrUpdate(ctx, c.Client, &to, func() error {
		to.Data = from.Data
		return ctrl.SetControllerReference(&from, &to, c.Scheme())
	})
	return reconcile.Result{}, err
}

func TestControllerRuntimeManagerReconcilesOnOurInformers(t *testing.T) {
	c := testcluster.Start(t, testcluster.WithoutControllers())
	ns := c.Namespace(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ctrl.SetLogger(logr.Discard())

	mgr, err := ctrl.NewManager(c.Config(), ctrl.Options{
		Metrics: server.Options{BindAddress: "0"},
		Cache: ctrlcache.Options{
			NewInformer:       cache.NewSharedIndexInformer,
			DefaultNamespaces: map[string]ctrlcache.Config{ns: {}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = mgr.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, "data.team", func(o client.Object) []string {
		return []string{o.(*corev1.ConfigMap).Data["team"]}
	})
	if err != nil {
		t.Fatal(err)
	}
	err = ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.ConfigMap{}).
		Complete(&copier{mgr.GetClient()})
	if err != nil {
		t.Fatal(err)
	}
	runCtx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- mgr.Start(runCtx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
	}()

	api := kubernetes.NewForConfigOrDie(c.Config()).CoreV1().ConfigMaps(ns)
	from, err := api.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "plan", Labels: map[string]string{"copy": "me"}},
		Data:       map[string]string{"team": "blue", "v": "1"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	awaitCopy(t, ctx, c, ns, "1")
	from.Data["v"] = "2"
	if _, err := api.Update(ctx, from, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitCopy(t, ctx, c, ns, "2")
	// When the copy is deleted, its owner is reconciled and creates it again.
	if err := api.Delete(ctx, "plan-copy", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitCopy(t, ctx, c, ns, "2")

	var blue corev1.ConfigMapList
	if err := mgr.GetClient().List(ctx, &blue, client.InNamespace(ns),
		client.MatchingFields{"data.team": "blue"}); err != nil {
		t.Fatal(err)
	}
	if len(blue.Items) == 0 {
		t.Error("the cache's field index finds nothing")
	}
}

// awaitCopy watches the server until the copy has this version of the data.
func awaitCopy(t *testing.T, ctx context.Context, c *testcluster.Cluster, ns, want string) {
	t.Helper()
	api := kubernetes.NewForConfigOrDie(c.Config()).CoreV1().ConfigMaps(ns)
	w, err := api.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=plan-copy"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if cm, ok := e.Object.(*corev1.ConfigMap); ok && e.Type != "DELETED" && cm.Data["v"] == want {
			return
		}
	}
	t.Fatalf("the copy never had v=%s: %v", want, ctx.Err())
}
