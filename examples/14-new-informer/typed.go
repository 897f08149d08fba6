package newinformer

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source/kube"
)

// Typed is the same on the typed informer. What it saves: a handler without
// assertions, and a snapshot in order. Waiting for the subscription is waiting until
// the handler itself has seen the initial state.
func Typed(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	src, err := kube.Typed[*corev1.ConfigMap](config, &kube.Options{Namespace: namespace})
	if err != nil {
		return err
	}
	configMaps, err := informer.New(src, nil)
	if err != nil {
		return err
	}
	sub, err := configMaps.Subscribe(informer.Funcs[*corev1.ConfigMap]{
		OnAdd:    func(cm *corev1.ConfigMap, _ bool) { fmt.Fprintln(out, "Add: ", cm.Name) },
		OnUpdate: func(old, cm *corev1.ConfigMap) { fmt.Fprintln(out, "Update: ", cm.Name) },
		OnDelete: func(last *corev1.ConfigMap, _ bool) { fmt.Fprintln(out, "Delete: ", last.Name) },
	}, nil)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- configMaps.Run(ctx) }()
	select {
	case <-sub.Synced():
		for key := range configMaps.Snapshot().Ordered() {
			fmt.Fprintln(out, "in the store:", key.Name())
		}
	case <-ctx.Done():
	}
	return <-ended
}
