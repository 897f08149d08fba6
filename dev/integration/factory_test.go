package integration

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	stock "k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/dev/testcluster"
)

func TestStockFactorySeededWithOursServesItsListers(t *testing.T) {
	c := testcluster.Start(t, testcluster.WithoutControllers())
	ns := c.Namespace(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := kubernetes.NewForConfigOrDie(c.Config())
	for _, name := range []string{"a", "b"} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}}
		if _, err := client.CoreV1().ConfigMaps(ns).Create(ctx, cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(ns))
	var ours stock.SharedIndexInformer
	factory.InformerFor(&corev1.ConfigMap{},
		func(k kubernetes.Interface, resync time.Duration) stock.SharedIndexInformer {
			lw := cache.NewListWatchFromClient(k.CoreV1().RESTClient(), "configmaps", ns, fields.Everything())
			ours = cache.NewSharedIndexInformer(lw, &corev1.ConfigMap{}, resync,
				cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
			return ours
		})
	seen := make(chan string, 10)
	maps := factory.Core().V1().ConfigMaps()
	maps.Informer() // the result is wrapped, but the factory's informer is ours
	if factory.InformerFor(&corev1.ConfigMap{}, nil) != ours {
		t.Fatal("the stock factory created its own informer")
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: func(o any) { seen <- o.(*corev1.ConfigMap).Name }}
	if _, err := maps.Informer().AddEventHandler(handler); err != nil {
		t.Fatal(err)
	}
	run, stop := context.WithCancel(ctx)
	factory.StartWithContext(run)
	defer func() { stop(); factory.Shutdown() }()
	if res := factory.WaitForCacheSyncWithContext(ctx); res.AsError() != nil {
		t.Fatal(res.AsError())
	}
	got, err := maps.Lister().ConfigMaps(ns).Get("a")
	if err != nil || got.Labels["app"] != "a" {
		t.Errorf("Get = %v, %v", got, err)
	}
	all, err := maps.Lister().ConfigMaps(ns).List(labels.SelectorFromSet(labels.Set{"app": "b"}))
	if err != nil || len(all) != 1 {
		t.Errorf("List = %v, %v", all, err)
	}
	if _, err := client.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case name := <-seen:
			if name == "c" {
				return
			}
		case <-ctx.Done():
			t.Fatal("the handler did not receive c")
		}
	}
}
