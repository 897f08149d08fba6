package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	stock "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	compatcache "github.com/mirador-k8s/mirador/compat/cache"
	compat "github.com/mirador-k8s/mirador/compat/informers"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/source/kube"
	"github.com/mirador-k8s/mirador/store"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	widgets    = schema.GroupVersionResource{Group: "chaos.mirador.dev", Version: "v1", Resource: "widgets"}
)

// mirror is one informer, ours or client-go's.
type mirror struct {
	name      string
	resource  schema.GroupVersionResource
	stored    func() map[string]string // key -> version in its store
	delivered *ledger
	health    func() informer.Health // nil for client-go's, which has no health
	run       func(ctx context.Context)
}

// fleet is a set of informers behind one proxy and with one user.
type fleet struct {
	agent   string
	proxy   *faultProxy
	files   *files
	mirrors []*mirror
	config  *rest.Config
	halt    func() // returns when every informer has ended
	stop    func() // the same, and closes all connections
}

// newFleet prepares a fleet whose requests go through its own proxy.
func newFleet(t *testing.T, agent string, server *rest.Config, f *files) *fleet {
	t.Helper()
	u, err := url.Parse(server.Host)
	if err != nil {
		t.Fatal(err)
	}
	p, err := listen(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return &fleet{agent: agent, proxy: p, files: f, config: &rest.Config{
		Host: "https://" + p.Addr(), UserAgent: agent, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: f.ca, CertFile: f.cert, KeyFile: f.key},
	}}
}

// start runs every informer of the fleet until halt.
func (f *fleet) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, m := range f.mirrors {
		running.Go(func() { m.run(ctx) })
	}
	f.halt = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	f.stop = func() {
		f.halt()
		client, err := rest.HTTPClientFor(f.config)
		if err != nil {
			t.Error(err)
			return
		}
		utilnet.CloseIdleConnectionsFor(client.Transport)
		// Client-go ends the goroutines of a transport's certificates when the transport is garbage-collected, and the test
		// keeps its fleets longer than that.
		f.mirrors = nil
	}
}

// ours creates our informers: typed, dynamic and metadata, in the three layouts, and client-go's API over our engine.
func (f *fleet) ours(t *testing.T, backoff reflector.Backoff) {
	t.Helper()
	typed, err := kube.Typed[*corev1.ConfigMap](f.config, nil)
	check(t, err)
	dyn, err := kube.Dynamic(f.config, widgets, nil)
	check(t, err)
	meta, err := kube.Metadata(f.config, configMaps, nil)
	check(t, err)
	client, err := kubernetes.NewForConfig(f.config)
	check(t, err)
	shared := compat.NewSharedInformerFactory(client, 0).Core().V1().ConfigMaps().Informer()
	f.mirrors = []*mirror{
		native(t, "typed", configMaps, typed, informer.Options[*corev1.ConfigMap]{Backoff: backoff}),
		native(t, "dynamic", widgets, dyn,
			informer.Options[*unstructured.Unstructured]{Backoff: backoff, Layout: store.Shared}),
		native(t, "metadata", configMaps, meta,
			informer.Options[*metav1.PartialObjectMetadata]{Backoff: backoff, Layout: store.Packed}),
		foreign(t, "compat", configMaps, shared),
	}
	engine, ok := compatcache.Engine(shared)
	if !ok {
		t.Fatal("compat's informer does not use our engine")
	}
	f.mirrors[3].health = engine.Health
}

// pingless creates one of our informers with HTTP/1.1, which has no pings: only the informer itself can detect that
// its connection is half open. It requests short watches, so that it considers a silent one dead after 40 seconds
// instead of minutes.
func (f *fleet) pingless(t *testing.T) {
	t.Helper()
	f.config.NextProtos = []string{"http/1.1"}
	typed, err := kube.Typed[*corev1.ConfigMap](f.config, nil)
	check(t, err)
	f.mirrors = []*mirror{native(t, "typed over HTTP/1.1", configMaps, typed,
		informer.Options[*corev1.ConfigMap]{WatchTimeout: 5 * time.Second})}
}

// clientGo creates client-go's stock informer for each of ours.
func (f *fleet) clientGo(t *testing.T) {
	t.Helper()
	client, err := kubernetes.NewForConfig(f.config)
	check(t, err)
	dyn, err := dynamic.NewForConfig(f.config)
	check(t, err)
	meta, err := metadata.NewForConfig(f.config)
	check(t, err)
	f.mirrors = []*mirror{
		foreign(t, "client-go typed", configMaps,
			stock.NewSharedInformerFactory(client, 0).Core().V1().ConfigMaps().Informer()),
		foreign(t, "client-go dynamic", widgets,
			dynamicinformer.NewDynamicSharedInformerFactory(dyn, 0).ForResource(widgets).Informer()),
		foreign(t, "client-go metadata", configMaps,
			metadatainformer.NewSharedInformerFactory(meta, 0).ForResource(configMaps).Informer()),
		foreign(t, "client-go typed again", configMaps,
			stock.NewSharedInformerFactory(client, 0).Core().V1().ConfigMaps().Informer()),
	}
}

// native returns a mirror of an informer of our own API.
func native[T metav1.Object](t *testing.T, name string, resource schema.GroupVersionResource, src source.Source[T],
	opts informer.Options[T]) *mirror {
	t.Helper()
	opts.Logger = slog.New(slog.DiscardHandler)
	inf, err := informer.New(src, &opts)
	check(t, err)
	m := &mirror{name: name, resource: resource, delivered: newLedger(), health: inf.Health}
	_, err = inf.Subscribe(informer.HandlerFunc[T](strict[T](m.delivered)), nil)
	check(t, err)
	m.stored = func() map[string]string {
		all := map[string]string{}
		for k, obj := range inf.Snapshot().All() {
			all[string(k)] = obj.GetResourceVersion()
		}
		return all
	}
	m.run = func(ctx context.Context) {
		if err := inf.Run(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	return m
}

// foreign returns a mirror of an informer of client-go's API.
func foreign(t *testing.T, name string, resource schema.GroupVersionResource, inf cache.SharedIndexInformer) *mirror {
	t.Helper()
	m := &mirror{name: name, resource: resource, delivered: newLedger()}
	_, err := inf.AddEventHandler(lenient(m.delivered))
	check(t, err)
	check(t, inf.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {})) // expected, and many
	m.stored = func() map[string]string {
		all := map[string]string{}
		for _, obj := range inf.GetStore().List() {
			key, err := cache.MetaNamespaceKeyFunc(obj)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			all[key] = obj.(metav1.Object).GetResourceVersion()
		}
		return all
	}
	m.run = inf.RunWithContext
	return m
}

// differs returns how a mirror differs from the server, or "".
func (m *mirror) differs(want map[string]string) string {
	for view, got := range map[string]map[string]string{"store": m.stored(), "handler": m.delivered.versions()} {
		if maps.Equal(got, want) {
			continue
		}
		for k, v := range want {
			if got[k] != v {
				return fmt.Sprintf("the %s of %s has %s at %q, but the server at %q (%d keys, %d at the server)", view, m.name, k,
					got[k], v, len(got), len(want))
			}
		}
		for k, v := range got {
			if _, ok := want[k]; !ok {
				return fmt.Sprintf("the %s of %s has %s at %q, but the server does not have it (%d keys, %d at the server)",
					view, m.name, k,
					v, len(got), len(want))
			}
		}
	}
	return ""
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
