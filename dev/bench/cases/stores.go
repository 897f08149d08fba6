package cases

import (
	"context"
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/dev/bench/feed"
	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// storeNamespaces gives 500 pods in each namespace if there are 50,000.
const storeNamespaces = 100

func storePods(p *harness.Params) int { return p.Size(50_000, 2_000) }

// peerStore returns client-go's indexer filled with the pods.
func peerStore(pods []*corev1.Pod) (clientgo.Indexer, error) {
	return fillIndexer(clientgo.NewIndexer(clientgo.MetaNamespaceKeyFunc, indexers()), pods)
}

// compatStore returns our store behind client-go's interface, filled with the pods.
func compatStore(pods []*corev1.Pod) (clientgo.Indexer, error) {
	return fillIndexer(cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers()), pods)
}

func fillIndexer(in clientgo.Indexer, pods []*corev1.Pod) (clientgo.Indexer, error) {
	for _, p := range pods {
		if err := in.Add(p); err != nil {
			return nil, fmt.Errorf("fill the store: %w", err)
		}
	}
	return in, nil
}

// ourStore returns our store filled with the pods, in batches as from a list.
func ourStore(l store.Layout, readCache int, pods []*corev1.Pod) (*store.Writer[*corev1.Pod], error) {
	w, err := openStore(l, readCache)
	if err != nil {
		return nil, err
	}
	w.BeginReplace()
	for _, p := range pods {
		w.Stage(podItem(p))
	}
	w.CommitReplace(latest, nil)
	return w, nil
}

// storeVariant returns a variant that runs f on realistic pods in several namespaces.
func storeVariant(name string, f func(ctx context.Context, p *harness.Params, pods []*corev1.Pod) (harness.Figures,
	error)) harness.Variant {
	return harness.Variant{Name: name, Run: func(ctx context.Context, p *harness.Params) (harness.Figures, error) {
		pods, _ := realPods(storePods(p))
		spread(pods, storeNamespaces)
		return f(ctx, p, pods)
	}}
}

// keysOf returns the keys in an order that no cache can predict.
func keysOf(pods []*corev1.Pod) []string {
	keys := make([]string, len(pods))
	for i, p := range pods {
		keys[i] = string(object.NewKey(p.Namespace, p.Name))
	}
	r := rand.New(rand.NewPCG(feed.Seed, 0))
	r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys
}
