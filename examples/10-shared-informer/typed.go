package sharedinformer

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source/kube"
)

// Typed uses an informer instead of the hand-built one. It saves all of informer.go, including the mistake.
func Typed(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	src, err := kube.Typed[*corev1.Pod](config, &kube.Options{Namespace: namespace})
	if err != nil {
		return err
	}
	pods, err := informer.New(src, nil)
	if err != nil {
		return err
	}
	for _, which := range []string{"first", "second"} {
		_, err := pods.Subscribe(informer.Funcs[*corev1.Pod]{
			OnAdd: func(pod *corev1.Pod, _ bool) { fmt.Fprintln(out, "OnAdd:", which, pod.Name) },
			OnUpdate: func(old, pod *corev1.Pod) {
				fmt.Fprintln(out, "OnUpdate:", which, old.Status.Phase, "->", pod.Status.Phase)
			},
			OnDelete: func(last *corev1.Pod, _ bool) { fmt.Fprintln(out, "OnDelete:", which, last.Name) },
		}, nil)
		if err != nil {
			return err
		}
	}
	return pods.Run(ctx)
}
