package simulate

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source/kube"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func configOf(t *testing.T, dir string, i int) *rest.Config {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, Name(i)+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// A client finds all resources, and an informer syncs with those that are empty and with pods.
func TestClientsMirrorSimulatedClusters(t *testing.T) {
	const pods = 30
	dir := t.TempDir()
	sims, err := Start(dir, Size{Clusters: 2, Resources: 50, WithPods: 1, Pods: pods})
	if err != nil {
		t.Fatal(err)
	}
	defer sims.Stop()
	for i, want := range []int{pods, 0} {
		cfg := configOf(t, dir, i)
		client, err := rest.HTTPClientFor(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer client.CloseIdleConnections()
		found, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, client)
		if err != nil {
			t.Fatal(err)
		}
		_, lists, err := found.ServerGroupsAndResources()
		served := 0
		for _, l := range lists {
			served += len(l.APIResources)
		}
		if err != nil || served != 50 {
			t.Errorf("%d resources are served, not 50: %v", served, err)
		}
		for resource, want := range map[schema.GroupVersionResource]int{
			{Version: "v1", Resource: "pods"}:                                        want,
			{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}: 0,
		} {
			if n := mirrored(t, cfg, client, resource); n != want {
				t.Errorf("%s has %d objects, not %d", resource, n, want)
			}
		}
	}
	if sims.States() != 4 {
		t.Errorf("%d states were sent, not 4", sims.States())
	}
}

// mirrored returns how many objects an informer has when it has synced.
func mirrored(t *testing.T, cfg *rest.Config, client *http.Client, resource schema.GroupVersionResource) int {
	t.Helper()
	src, err := kube.Raw(cfg, resource, &kube.Options{HTTPClient: client})
	if err != nil {
		t.Fatal(err)
	}
	inf, err := informer.New(src, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- inf.Run(ctx) }()
	if err := inf.WaitSynced(ctx); err != nil {
		t.Error(err)
	}
	n := inf.Snapshot().Len()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return n
}
