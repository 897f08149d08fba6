package newsharedinformer

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source/kube"
)

// Typed is the same on the typed informer. What it saves: every informer is shared,
// so there is no second kind to choose from, and a handler that is slow or stuck
// keeps a bounded backlog instead of one that grows until memory ends.
func Typed(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	src, err := kube.Typed[*corev1.ConfigMap](config, &kube.Options{Namespace: namespace})
	if err != nil {
		return err
	}
	configMaps, err := informer.New(src, nil)
	if err != nil {
		return err
	}
	for _, name := range []string{"CmdHandler", "CmdHandler2"} {
		_, err := configMaps.Subscribe(informer.Funcs[*corev1.ConfigMap]{
			OnAdd:    func(cm *corev1.ConfigMap, _ bool) { fmt.Fprintln(out, name, "Add: ", cm.Name) },
			OnUpdate: func(_, cm *corev1.ConfigMap) { fmt.Fprintln(out, name, "Update: ", cm.Name) },
			OnDelete: func(last *corev1.ConfigMap, _ bool) { fmt.Fprintln(out, name, "Delete: ", last.Name) },
		}, &informer.HandlerOptions{Name: name})
		if err != nil {
			return err
		}
	}
	return configMaps.Run(ctx)
}
