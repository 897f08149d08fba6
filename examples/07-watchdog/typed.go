package watchdog

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source/kube"
)

// Typed replaces the WatchDog by an informer. There is nothing to retry between queue and store, because the informer's
// store rejects nothing; work that can fail belongs in a work queue, as 20-controller shows.
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
		OnAdd:    func(pod *corev1.Pod, _ bool) { fmt.Fprintln(out, "OnAdd:", pod.Name) },
		OnUpdate: func(old, pod *corev1.Pod) { fmt.Fprintln(out, "OnUpdate:", pod.Name) },
		OnDelete: func(last *corev1.Pod, _ bool) { fmt.Fprintln(out, "OnDelete:", last.Name) },
	}, nil)
	if err != nil {
		return err
	}
	return pods.Run(ctx)
}
