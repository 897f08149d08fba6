package metadatainformer_test

import (
	"context"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/fake"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/compat/metadatainformer"
)

func TestFactoryReturnsThisModulesInformerWithATransform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
		scheme := fake.NewTestScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		client := fake.NewSimpleMetadataClient(scheme, &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "a"},
		})
		seen := 0
		f := metadatainformer.NewSharedInformerFactoryWithOptions(client, 0,
			metadatainformer.WithTransform(func(obj any) (any, error) { seen++; return obj, nil }))
		g := f.ForResource(pods)
		if _, ok := cache.Engine(g.Informer()); !ok {
			t.Errorf("the informer is a %T", g.Informer())
		}
		ctx, cancel := context.WithCancel(t.Context())
		f.Start(ctx.Done())
		if !f.WaitForCacheSync(ctx.Done())[pods] {
			t.Error("the informer has not synced")
		}
		if got, err := g.Lister().ByNamespace("web").List(labels.Everything()); err != nil || len(got) != 1 || seen != 1 {
			t.Errorf("listed %v, %v after %d transforms", got, err, seen)
		}
		cancel()
		f.Shutdown()
	})
}
