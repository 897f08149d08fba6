package dynamicinformer_test

import (
	"context"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/compat/dynamicinformer"
)

func TestFactoryReturnsThisModulesInformerOfAnyResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		things := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}
		thing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing",
			"metadata": map[string]any{"namespace": "web", "name": "a"}}}
		client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{things: "ThingList"}, thing)
		f := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
		g := f.ForResource(things)
		if _, ok := cache.Engine(g.Informer()); !ok {
			t.Errorf("the informer is a %T", g.Informer())
		}
		if f.ForResource(things).Informer() != g.Informer() {
			t.Error("a second ForResource returned another informer")
		}
		ctx, cancel := context.WithCancel(t.Context())
		f.Start(ctx.Done())
		if !f.WaitForCacheSync(ctx.Done())[things] {
			t.Error("the informer has not synced")
		}
		if got, err := g.Lister().ByNamespace("web").List(labels.Everything()); err != nil || len(got) != 1 {
			t.Errorf("listed %v, %v", got, err)
		}
		cancel()
		f.Shutdown()
	})
}
