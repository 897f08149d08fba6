package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/dev/testcluster"
	"github.com/mirador-k8s/mirador/object"
)

const gizmoDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.fleet.test}
spec:
  group: fleet.test
  scope: Namespaced
  names: {plural: gizmos, singular: gizmo, kind: Gizmo, shortNames: [gz], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`

// live is a fleet in real time.
type live struct {
	*testing.T
	f   *fleet.Fleet
	ctx context.Context
}

func runLive(t *testing.T, o fleet.Options) *live {
	t.Helper()
	o.Logger = quiet()
	f, err := fleet.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return &live{t, f, ctx}
}

// until waits for a condition. A real cluster sends no notification, so the condition is polled.
func (l *live) until(what string, holds func() bool) {
	l.Helper()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for !holds() {
		select {
		case <-poll.C:
		case <-l.ctx.Done():
			for _, c := range l.f.Clusters() {
				l.Logf("%s: %+v", c.Name(), c.Health())
			}
			l.Fatalf("timed out: %s", what)
		}
	}
}

func (l *live) cluster(name string) *fleet.Cluster {
	l.Helper()
	c, ok := l.f.Cluster(name)
	if !ok {
		l.Fatalf("there is no cluster %s", name)
	}
	return c
}

func TestRealClusterIsMirroredAsKubectlListsIt(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.WithoutControllers())
	l := runLive(t, fleet.Options{})
	if err := l.f.Join("real", cluster.Config(), fleet.Origin{}); err != nil {
		t.Fatal(err)
	}
	c := l.cluster("real")
	l.until("the cluster is ready", func() bool { return c.Health().State == fleet.Ready })
	h := c.Health()
	t.Logf("%d resources, %d objects, %s", h.Resources, h.Objects, h.ServerVersion)
	if h.Resources < 40 || !strings.HasPrefix(h.ServerVersion, "v1.") {
		t.Errorf("Health = %+v", h)
	}

	// All resources that kubectl can list and watch are mirrored, except those on request.
	onRequest := []string{"secrets", "leases.coordination.k8s.io", "events.events.k8s.io"}
	var want []string
	for line := range strings.Lines(cluster.Kubectl(t, "api-resources", "--verbs=list,watch", "-o", "name")) {
		if name := strings.TrimSpace(line); !slices.Contains(onRequest, name) {
			want = append(want, name)
		}
	}
	var got []string
	for _, r := range c.Resources() {
		got = append(got, r.GVR().GroupResource().String())
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("mirrored:\n%q\nwant:\n%q", got, want)
	}
	deployments, ok := c.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"})
	if !ok {
		t.Fatal("no deployments")
	}
	if info := deployments.Info(); !slices.Equal(info.ShortNames, []string{"deploy"}) ||
		!slices.Equal(info.Categories, []string{"all"}) || info.SingularName != "deployment" {
		t.Errorf("Info = %+v", info)
	}

	ns := cluster.Namespace(t)
	cluster.Kubectl(t, "create", "configmap", "settings", "-n", ns, "--from-literal=a=b")
	maps, _ := c.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	l.until("the config map is there", func() bool {
		n := 0
		for range maps.Snapshot().ByIndex(fleet.NamespaceIndex, ns) {
			n++
		}
		return n == 1
	})
	e, _ := maps.Entry(object.NewKey(ns, "settings"))
	var shown struct {
		metav1.TypeMeta
		Data map[string]string
	}
	if err := json.Unmarshal(fleet.Bytes(e, nil), &shown); err != nil || shown.Kind != "ConfigMap" ||
		shown.Data["a"] != "b" {
		t.Errorf("%+v, %v", shown, err)
	}

	documents(l, c)
	customResource(l, cluster, c)
	l.leave("real")
}

func (l *live) leave(name string) {
	l.Helper()
	if err := l.f.Leave(l.ctx, name); err != nil {
		l.Error(err)
	}
}

// documents checks the documents that kubectl explain needs.
func documents(l *live, c *fleet.Cluster) {
	l.Helper()
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	l.until("the index is there", func() bool {
		body, _, ok := c.OpenAPI("/openapi/v3")
		return ok && json.Unmarshal(body, &index) == nil
	})
	if len(index.Paths) < 20 {
		l.Errorf("the index has %d paths", len(index.Paths))
	}
	for path := range index.Paths {
		if body, contentType, ok := c.OpenAPI("/openapi/v3/" + path); !ok ||
			contentType != "application/json" || !json.Valid(body) {
			l.Errorf("%s: %v, %s, %d bytes", path, ok, contentType, len(body))
		}
	}
	l.until("OpenAPI v2 is there",
		func() bool { body, _, ok := c.OpenAPI("/openapi/v2"); return ok && len(body) > 100_000 })
}

// customResource creates and deletes a definition, twice.
func customResource(l *live, cluster *testcluster.Cluster, c *fleet.Cluster) {
	l.Helper()
	gizmos := schema.GroupVersionResource{Group: "fleet.test", Version: "v1", Resource: "gizmos"}
	definition := writeFile(l.T, filepath.Join(l.TempDir(), "crd.yaml"), gizmoDefinition)
	for round := range 2 {
		began := time.Now()
		cluster.Kubectl(l, "apply", "-f", definition)
		var r *fleet.Resource
		l.until("gizmos are mirrored", func() (ok bool) { r, ok = c.Resource(gizmos); return ok && r.Synced() })
		l.Logf("round %d: mirrored after %v", round, time.Since(began).Round(time.Millisecond))
		if info := r.Info(); !slices.Equal(info.ShortNames, []string{"gz"}) || r.GVK().Kind != "Gizmo" {
			l.Errorf("Info = %+v", info)
		}
		l.until("their document is there", func() bool {
			body, _, ok := c.OpenAPI("/openapi/v3/apis/fleet.test/v1")
			return ok && strings.Contains(string(body), "Gizmo")
		})
		began = time.Now()
		cluster.Kubectl(l, "delete", "crd", "gizmos.fleet.test")
		select {
		case <-r.Done():
		case <-l.ctx.Done():
			l.Fatal("the resource never ended")
		}
		l.Logf("round %d: gone after %v", round, time.Since(began).Round(time.Millisecond))
	}
	l.until("the cluster is ready again", func() bool { return c.Health().State == fleet.Ready })
}

func TestRealClusterThatRefusesSomeResourcesIsDegraded(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.WithoutControllers())
	cluster.Kubectl(t, "create", "clusterrole", "fleet-limited", "--verb=get,list,watch", "--resource=pods,namespaces")
	cluster.Kubectl(t, "create", "clusterrolebinding", "fleet-limited", "--clusterrole=fleet-limited", "--user=limited")
	cfg := cluster.Config()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "limited"}
	l := runLive(t, fleet.Options{Include: []string{"pods", "namespaces", "configmaps"}})
	if err := l.f.Join("limited", cfg, fleet.Origin{}); err != nil {
		t.Fatal(err)
	}
	c := l.cluster("limited")
	l.until("the cluster is degraded", func() bool { return c.Health().State == fleet.Degraded })
	h := c.Health()
	if h.Resources != 3 || h.Synced != 2 || !strings.Contains(h.Err, "1 of 3") ||
		!strings.Contains(h.Err, "configmaps") || !strings.Contains(h.Err, "forbidden") {
		t.Errorf("Health = %+v", h)
	}
	namespaces, _ := c.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	if _, ok := namespaces.Entry("kube-system"); !ok {
		t.Error("an allowed resource is not mirrored")
	}
	l.leave("limited")
}

func TestRealClusterJoinsByAKubeconfigAndRejoinsAfterARestart(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.WithoutControllers())
	flat := cluster.Kubectl(t, "config", "view", "--raw", "--flatten")
	state := filepath.Join(t.TempDir(), "state.json")
	for round := range 2 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			l := runLive(t, fleet.Options{Include: []string{"namespaces"}, StateFile: state})
			if round == 0 {
				if err := l.f.JoinKubeconfig("real", []byte(flat), ""); err != nil {
					t.Fatal(err)
				}
				if err := l.f.JoinKubeconfig("dead", []byte(kubeconfig("", ", token: abcdefgh", "x")), ""); err != nil {
					t.Fatal(err)
				}
			}
			if got := names(l.f.Clusters()); got != "dead real" {
				t.Errorf("Clusters = %s", got)
			}
			living := l.cluster("real")
			l.until("the living one is ready", func() bool { return living.Health().State == fleet.Ready })
			if s := l.cluster("dead").Health().State; s != fleet.Joining && s != fleet.Unreachable {
				t.Errorf("the dead one is %s", s)
			}
		})
	}
}
