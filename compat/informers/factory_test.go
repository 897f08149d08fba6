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

func TestFactoryWithAFakeClientset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fakeclient.NewClientset(pod("web", "a"), pod("db", "b"))
		transformed := 0
		f := informers.NewSharedInformerFactoryWithOptions(client, 0,
			informers.WithNamespace("web"),
			informers.WithTransform(func(obj any) (any, error) { transformed++; return obj, nil }),
			informers.WithCustomResyncConfig(map[metav1.Object]time.Duration{&corev1.Pod{}: time.Minute}))
		pods := f.Core().V1().Pods()
		resyncs := 0
		if _, err := pods.TypedInformer().AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[*corev1.Pod]{
			UpdateFunc: func(_, _ *corev1.Pod) { resyncs++ },
		}); err != nil {
			t.Fatal(err)
		}
		generic, err := f.ForResource(corev1.SchemeGroupVersion.WithResource("pods"))
		if err != nil || generic.Informer() != pods.Informer() {
			t.Errorf("ForResource returned another informer than Core().V1().Pods(), or an error: %v", err)
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
		if all, err := generic.Lister().List(labels.Everything()); err != nil || len(all) != 1 {
			t.Errorf("listed %v, %v; want only the pod of the namespace", all, err)
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
		if resyncs != 2 {
			t.Errorf("the handler received %d resyncs, want 2", resyncs)
		}
		cancel()
		f.Shutdown()
		f.StartWithContext(t.Context()) // does nothing after Shutdown
	})
}

// The factory must have an informer of this module for every resource that client-go's
// factory has one for.
func TestEveryInformerOfTheFactoryIsOfThisModule(t *testing.T) {
	f := informers.NewSharedInformerFactory(fakeclient.NewClientset(), 0)
	clientGos := stock.NewSharedInformerFactory(fakeclient.NewClientset(), 0)
	found := 0
	for gvk := range scheme.Scheme.AllKnownTypes() {
		for _, plural := range plurals(gvk.Kind) {
			gvr := gvk.GroupVersion().WithResource(plural)
			if _, err := clientGos.ForResource(gvr); err != nil {
				continue
			}
			g, err := f.ForResource(gvr)
			if err != nil {
				t.Errorf("%v: %v", gvr, err)
				continue
			}
			found++
			if _, ok := cache.Engine(g.Informer()); !ok {
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
		t.Error("ForResource returned an informer of a resource that is not built in")
	}
}

// plurals returns possible resource names of a kind.
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

func TestClientGosFactoryListsFromAnInformerOfThisModule(t *testing.T) {
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
		if _, ok := cache.Engine(i); !ok {
			t.Fatalf("the factory has a %T", i)
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

func TestWaitForCacheSyncIsAnErrorIfItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := informers.NewFilteredSharedInformerFactory(fakeclient.NewClientset(), 0, "web",
			func(o *metav1.ListOptions) { o.LabelSelector = "a=b" })
		f.Core().V1().Pods().Informer()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f.Start(ctx.Done())
		if err := f.WaitForCacheSyncWithContext(ctx).AsError(); err == nil {
			t.Error("no error, although the context ended before the sync")
		}
		f.Shutdown()
	})
}
