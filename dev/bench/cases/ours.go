package cases

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/dev/bench/feed"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/store"
)

// layouts are the measured layouts.
var layouts = []store.Layout{store.Live, store.Shared, store.Packed}

// podCodec encodes pods as the wire does.
var podCodec = &object.Codec[*corev1.Pod]{
	Encode: func(dst []byte, p *corev1.Pod) ([]byte, error) {
		start := len(dst)
		dst = append(dst, make([]byte, p.Size())...)
		_, err := p.MarshalToSizedBuffer(dst[start:])
		return dst, err
	},
	Decode: func(encoded []byte) (*corev1.Pod, error) {
		p := &corev1.Pod{}
		return p, p.Unmarshal(encoded)
	},
}

// podItem returns an item of a pod that the caller hands over.
func podItem(p *corev1.Pod) object.Item[*corev1.Pod] {
	return object.Item[*corev1.Pod]{
		Key: object.NewKey(p.Namespace, p.Name), Version: object.Version(p.ResourceVersion), UID: string(p.UID),
		Value: p, Codec: podCodec, Owned: true,
	}
}

func podIndexes() map[string]store.IndexFunc[*corev1.Pod] {
	return map[string]store.IndexFunc[*corev1.Pod]{
		byNamespace: store.ByNamespace[*corev1.Pod](),
		byApp:       podsByApp,
	}
}

func podsByApp(p *corev1.Pod) ([]string, error) { return []string{p.Labels["app"]}, nil }

// openStore returns our store of pods with two indexes. readCache is as in store.Options.
func openStore(l store.Layout, readCache int) (*store.Writer[*corev1.Pod], error) {
	return store.New(store.Options[*corev1.Pod]{Indexes: podIndexes(), Layout: l, Codec: podCodec, ReadCache: readCache})
}

// typedInformer returns our informer of pods with two indexes.
func typedInformer(src source.Source[*corev1.Pod], l store.Layout) (*informer.Informer[*corev1.Pod], error) {
	return informer.New(src, &informer.Options[*corev1.Pod]{Layout: l, Indexes: podIndexes()})
}

// dynamicInformer returns our informer of unstructured pods with two indexes.
func dynamicInformer(src source.Source[*unstructured.Unstructured],
	l store.Layout) (*informer.Informer[*unstructured.Unstructured], error) {
	return informer.New(src, &informer.Options[*unstructured.Unstructured]{Layout: l,
		Indexes: informer.Indexes[*unstructured.Unstructured]{
			byNamespace: func(u *unstructured.Unstructured) ([]string, error) { return []string{u.GetNamespace()}, nil },
			byApp:       func(u *unstructured.Unstructured) ([]string, error) { return []string{u.GetLabels()["app"]}, nil },
		}})
}

// compatInformer returns our informer behind client-go's interface.
func compatInformer(lw *feed.ListWatch, l store.Layout) clientgo.SharedIndexInformer {
	return cache.With(cache.Options{Layout: l}).NewSharedIndexInformer(lw, &corev1.Pod{}, 0, indexers())
}

// running is an informer of ours that runs until it is stopped.
type running[T any] struct {
	*informer.Informer[T]
	cancel context.CancelFunc
	ended  chan error
}

// run starts an informer and waits until it has synced.
func run[T any](ctx context.Context, inf *informer.Informer[T]) (*running[T], error) {
	r := start(ctx, inf)
	if err := inf.WaitSynced(ctx); err != nil {
		return nil, fmt.Errorf("wait until ours has synced: %w", err)
	}
	return r, nil
}

func start[T any](ctx context.Context, inf *informer.Informer[T]) *running[T] {
	ctx, cancel := context.WithCancel(ctx)
	r := &running[T]{Informer: inf, cancel: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- inf.Run(ctx) }()
	return r
}

// stop stops the informer and waits for it to end.
func (r *running[T]) stop() error {
	r.cancel()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(time.Minute):
		return fmt.Errorf("ours did not stop within a minute")
	}
}
