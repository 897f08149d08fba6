package constructors

import (
	"context"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source/kube"
)

// Typed needs one constructor: every informer can have indexes and any number of handlers. It also saves type
// assertions, and source, index and handlers that are not all of ConfigMaps do not compile. A slow handler has a
// bounded backlog.
func Typed(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	src, err := kube.Typed[*corev1.ConfigMap](config, &kube.Options{Namespace: namespace})
	if err != nil {
		return err
	}
	configMaps, err := informer.New(src, &informer.Options[*corev1.ConfigMap]{
		Indexes: informer.Indexes[*corev1.ConfigMap]{
			"app": func(cm *corev1.ConfigMap) ([]string, error) { return []string{cm.Labels["app"]}, nil },
		},
	})
	if err != nil {
		return err
	}
	for _, name := range []string{"handler 1", "handler 2"} {
		_, err := configMaps.Subscribe(informer.Funcs[*corev1.ConfigMap]{
			OnAdd:    func(cm *corev1.ConfigMap, _ bool) { fmt.Fprintf(out, "%s: add %s\n", name, cm.Name) },
			OnUpdate: func(_, cm *corev1.ConfigMap) { fmt.Fprintf(out, "%s: update %s\n", name, cm.Name) },
			OnDelete: func(last *corev1.ConfigMap, _ bool) { fmt.Fprintf(out, "%s: delete %s\n", name, last.Name) },
		}, &informer.HandlerOptions{Name: name})
		if err != nil {
			return err
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- configMaps.Run(ctx) }()
	if err := configMaps.WaitSynced(ctx); err != nil {
		return <-ended // interrupted
	}
	snapshot := configMaps.Snapshot() // both reads see the same state
	var names []string
	for key := range snapshot.Ordered() {
		names = append(names, key.Name())
	}
	fmt.Fprintln(out, "stored:", strings.Join(names, " "))
	for cm := range snapshot.ByIndex("app", "busy-box") {
		fmt.Fprintln(out, "app=busy-box:", cm.Name)
	}
	return <-ended
}
