package kindkept

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source/kube"
)

// Typed needs no solution: objects keep their kind.
func Typed(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	src, err := kube.Typed[*corev1.Pod](config, &kube.Options{Namespace: namespace})
	if err != nil {
		return err
	}
	pods, err := informer.New(src, nil)
	if err != nil {
		return err
	}
	_, err = pods.Subscribe(informer.Funcs[*corev1.Pod]{
		OnAdd: func(pod *corev1.Pod, _ bool) { show(out, "kept:", pod) },
	}, nil)
	if err != nil {
		return err
	}
	return pods.Run(ctx)
}
