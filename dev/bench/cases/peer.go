package cases

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	informers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/dev/bench/feed"
)

// indexers returns the two indexes in client-go's form.
func indexers() clientgo.Indexers {
	return clientgo.Indexers{
		byNamespace: clientgo.MetaNamespaceIndexFunc,
		byApp: func(obj any) ([]string, error) {
			if p, ok := obj.(*corev1.Pod); ok {
				return []string{p.Labels["app"]}, nil
			}
			m, err := meta.Accessor(obj)
			if err != nil {
				return nil, err
			}
			return []string{m.GetLabels()["app"]}, nil
		},
	}
}

func peerTyped(cfg *rest.Config) (clientgo.SharedIndexInformer, error) {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return informers.NewPodInformer(client, "", 0, indexers()), nil
}

func peerDynamic(cfg *rest.Config) (clientgo.SharedIndexInformer, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return dynamicinformer.NewFilteredDynamicInformer(client, corev1.SchemeGroupVersion.WithResource("pods"), "", 0,
		indexers(), nil).Informer(), nil
}

// peerInformer returns client-go's informer over existing pods.
func peerInformer(lw *feed.ListWatch) clientgo.SharedIndexInformer {
	return clientgo.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, indexers())
}

// runShared starts an informer of client-go's interface, theirs or ours, and waits until it has synced. stop stops it
// and waits for it to end.
func runShared(ctx context.Context, inf clientgo.SharedIndexInformer) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		inf.RunWithContext(ctx)
		close(ended)
	}()
	stop = func() { cancel(); <-ended }
	for !inf.HasSynced() {
		if ctx.Err() != nil {
			stop()
			return nil, errors.Join(errors.New("the informer has not synced"), ctx.Err())
		}
		time.Sleep(2 * time.Millisecond)
	}
	return stop, nil
}
