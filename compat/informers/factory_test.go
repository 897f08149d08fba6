package informers_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	stock "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	fakeclient "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/compat/informers"
)

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
		Labels: map[string]string{"app": name}}}
}

func TestAFactoryOnAFakeClientset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fakeclient.NewClientset(pod("web", "a"), pod("db", "b"))
		transformed := 0
		f := informers.NewSharedInformerFactoryWithOptions(client, 0,
			informers.WithNamespace("web"),
			informers.WithTransform(func(obj any) (any, error) { transformed++; return obj, nil }),
			informers.WithCustomResyncConfig(map[metav1.Object]time.Duration{&corev1.Pod{}: time.Minute}))
		pods := f.Core().V1().Pods()
		given := 0
		if _, err := pods.TypedInformer().AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[*corev1.Pod]{
			UpdateFunc: func(_, _ *corev1.Pod) { given++ },
		}); err != nil {
			t.Fatal(err)
		}
		again, err := f.ForResource(corev1.SchemeGroupVersion.WithResource("pods"))
		if err != nil || again.Informer() != pods.Informer() {
			t.Errorf("the same resource gives another informer: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		f.StartWithContext(ctx)
		if err := f.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
			t.Fatal(err)
		}
		got, err := pods.Lister().List(labels.SelectorFromSet(labels.Set{"app": "a"}))
		if err != nil || len(got) != 1 {
			t.Errorf("listed %v, %v", got, err)
		}
		if all, err := again.Lister().List(labels.Everything()); err != nil || len(all) != 1 {
			t.Errorf("the namespace was not kept to: %v, %v", all, err)
		}
		if _, err := client.CoreV1().Pods("web").Create(ctx, pod("web", "c"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := pods.Lister().Pods("web").Get("c"); err != nil {
			t.Error(err)
		}
		if transformed != 2 {
			t.Errorf("transformed %d objects, want 2", transformed)
		}
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if given != 2 {
			t.Errorf("a resync gave %d objects, want 2", given)
		}
		cancel()
		f.Shutdown()
		f.StartWithContext(t.Context()) // does nothing any more
	})
}

// Every kind that client-go's scheme has an informer for must be ours.
func TestEveryInformerOfTheFactoryIsOurs(t *testing.T) {
	f := informers.NewSharedInformerFactory(fakeclient.NewClientset(), 0)
	theirs := stock.NewSharedInformerFactory(fakeclient.NewClientset(), 0)
	found := 0
	for gvk := range scheme.Scheme.AllKnownTypes() {
		for _, plural := range plurals(gvk.Kind) {
			gvr := gvk.GroupVersion().WithResource(plural)
			if _, err := theirs.ForResource(gvr); err != nil {
				continue
			}
			g, err := f.ForResource(gvr)
			if err != nil {
				t.Errorf("%v: %v", gvr, err)
				continue
			}
			found++
			if _, ours := cache.Engine(g.Informer()); !ours {
				t.Errorf("%v: the informer is a %T", gvr, g.Informer())
			}
			if g.Lister() == nil {
				t.Errorf("%v has no lister", gvr)
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d resources were compared", found)
	}
	if _, err := f.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1",
		Resource: "things"}); err == nil {
		t.Error("a resource that is not built in has an informer")
	}
}

// plurals guesses what a kind's resource is called.
func plurals(kind string) []string {
	low := []byte(kind)
	for i, c := range low {
		if 'A' <= c && c <= 'Z' {
			low[i] = c + 'a' - 'A'
		}
	}
	s := string(low)
	out := []string{s, s + "s", s + "es"}
	if n := len(s); n > 0 && s[n-1] == 'y' {
		out = append(out, s[:n-1]+"ies")
	}
	return out
}

func TestAStockFactorySeededWithOursServesItsGeneratedListers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fakeclient.NewClientset(pod("web", "a"))
		f := stock.NewSharedInformerFactory(client, 0)
		i := f.InformerFor(&corev1.Pod{}, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			lw := &cache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
					return c.CoreV1().Pods("").List(ctx, o)
				},
				WatchFuncWithContext: c.CoreV1().Pods("").Watch,
			}
			return cache.NewSharedIndexInformer(lw, &corev1.Pod{}, resync,
				cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		})
		if _, ours := cache.Engine(i); !ours {
			t.Fatalf("the factory holds a %T", i)
		}
		ctx, cancel := context.WithCancel(t.Context())
		f.StartWithContext(ctx)
		f.WaitForCacheSync(ctx.Done())
		var lister corelisters.PodLister = f.Core().V1().Pods().Lister()
		if got, err := lister.Pods("web").Get("a"); err != nil || got.Name != "a" {
			t.Errorf("read %v, %v", got, err)
		}
		cancel()
		f.Shutdown()
	})
}

func TestWaitingNamesWhatHasNotSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := informers.NewFilteredSharedInformerFactory(fakeclient.NewClientset(), 0, "web",
			func(o *metav1.ListOptions) { o.LabelSelector = "a=b" })
		f.Core().V1().Pods().Informer()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f.Start(ctx.Done())
		if err := f.WaitForCacheSyncWithContext(ctx).AsError(); err == nil {
			t.Error("it synced although it was stopped")
		}
		f.Shutdown()
	})
}
