package newindexerinformer

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source/kube"
)

// Typed is the same on the typed informer. What it saves: source, index and handler
// are all of pods, so the original's mix of ConfigMaps and Pods does not compile.
func Typed(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	src, err := kube.Typed[*corev1.Pod](config, &kube.Options{Namespace: namespace})
	if err != nil {
		return err
	}
	pods, err := informer.New(src, &informer.Options[*corev1.Pod]{Indexes: informer.Indexes[*corev1.Pod]{
		"app": func(p *corev1.Pod) ([]string, error) { return []string{p.Labels["app"]}, nil },
	}})
	if err != nil {
		return err
	}
	sub, err := pods.Subscribe(informer.Funcs[*corev1.Pod]{
		OnAdd: func(pod *corev1.Pod, _ bool) { fmt.Fprintln(out, "Add: ", pod.Name) },
	}, nil)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- pods.Run(ctx) }()
	select {
	case <-sub.Synced():
		for pod := range pods.Snapshot().ByIndex("app", "busy-box") {
			fmt.Fprintln(out, "app=busy-box:", pod.Name)
		}
	case <-ctx.Done():
	}
	return <-ended
}
