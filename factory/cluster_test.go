package factory_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mirador-k8s/mirador/dev/testcluster"
	"github.com/mirador-k8s/mirador/factory"
	"github.com/mirador-k8s/mirador/informer"
)

const gadgetDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.factory.test}
spec:
  group: factory.test
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func TestRealClusterIsMirroredAndRefreshFollowsCustomResources(t *testing.T) {
	cluster := testcluster.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	f, err := factory.New(cluster.Config(), &factory.Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	var offered []factory.Resource
	set, err := factory.All(ctx, f, f.Dynamic,
		func(r factory.Resource) bool { offered = append(offered, r); return true })
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := f.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	ns := cluster.Namespace(t)
	if err := mirrored(ctx, f, set); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d resources are mirrored", len(set.Handles()))

	gadgets := schema.GroupVersionResource{Group: "factory.test", Version: "v1", Resource: "gadgets"}
	dir := t.TempDir()
	definition, gadget := filepath.Join(dir, "crd.yaml"), filepath.Join(dir, "gadget.yaml")
	write(t, definition, gadgetDefinition)
	write(t, gadget,
		fmt.Sprintf("apiVersion: factory.test/v1\nkind: Gadget\nmetadata: {name: big, namespace: %s}\nspec: {size: 7}\n",
			ns))
	for round := range 2 {
		cluster.Kubectl(t, "apply", "-f", definition)
		cluster.Kubectl(t, "wait", "--for=condition=Established", "--timeout=60s", "crd/gadgets.factory.test")
		await(ctx, t, f, func(c factory.Changes) bool { return len(c.Added) == 1 && c.Added[0] == gadgets })
		h := handleOf(t, set, gadgets)
		added := make(chan int64, 1)
		open[any](t)(h.Subscribe(informer.Funcs[*unstructuredObject]{OnAdd: func(u *unstructuredObject, _ bool) {
			added <- u.Object["spec"].(map[string]any)["size"].(int64)
		}}, nil))
		cluster.Kubectl(t, "apply", "-f", gadget)
		select {
		case size := <-added:
			if size != 7 {
				t.Errorf("round %d: the gadget's size is %d", round, size)
			}
		case <-ctx.Done():
			t.Fatalf("round %d: the gadget never arrived: %v", round, h.Informers()[0].Health().Reflector)
		}
		cluster.Kubectl(t, "delete", "crd", "gadgets.factory.test")
		await(ctx, t, f, func(c factory.Changes) bool { return len(c.Removed) == 1 && c.Removed[0] == gadgets })
		if err := h.WaitSynced(ctx); err == nil {
			t.Errorf("round %d: the handle of a removed resource was not released", round)
		}
	}
	for _, r := range offered {
		namespaced, known := factory.Namespaced(r.GroupVersionResource)
		if builtin := scheme.Scheme.IsVersionRegistered(r.GroupVersion()); known != builtin ||
			known && namespaced != r.Namespaced {
			t.Errorf("%s: known %v, namespaced %v; the server says %v", r.Resource, known, namespaced, r.Namespaced)
		}
	}
}

// mirrored compares every mirror with a list of the server until they are equal.
func mirrored(ctx context.Context, f *factory.Factory, set *factory.Set[*unstructuredObject]) error {
	client, err := dynamic.NewForConfig(factory.Config(f))
	if err != nil {
		return err
	}
	for _, h := range set.Handles() {
		for {
			list, err := client.Resource(h.Resource()).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			missing := ""
			for _, want := range list.Items {
				got, err := h.Lister().Get(want.GetNamespace(), want.GetName())
				if err != nil || got.GetUID() != want.GetUID() || got.GetKind() != want.GetKind() {
					missing = fmt.Sprintf("%s %s/%s: %v", want.GetKind(), want.GetNamespace(), want.GetName(), err)
				}
			}
			if objs, err := h.Lister().List(nil); err != nil || missing == "" && len(objs) != len(list.Items) {
				missing = fmt.Sprintf("%s: %d objects, the server has %d, %v", h.Resource().Resource, len(objs),
					len(list.Items), err)
			}
			if missing == "" {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("the mirror does not converge: %s", missing)
			case <-time.After(50 * time.Millisecond): // the cluster changes; compare again
			}
		}
	}
	return nil
}

// await calls Refresh until the server's discovery shows the change.
func await(ctx context.Context, t *testing.T, f *factory.Factory, done func(factory.Changes) bool) {
	t.Helper()
	for {
		c, err := f.Refresh(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if done(c) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal("discovery never showed the change")
		case <-time.After(100 * time.Millisecond): // a real server's discovery is delayed
		}
	}
}

func handleOf(t *testing.T, set *factory.Set[*unstructuredObject],
	gvr schema.GroupVersionResource) *factory.Handle[*unstructuredObject] {
	t.Helper()
	for _, h := range set.Handles() {
		if h.Resource() == gvr {
			return h
		}
	}
	t.Fatalf("the set has no handle of %s", gvr)
	return nil
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
