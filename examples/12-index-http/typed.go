package indexhttp

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source/kube"
)

// Typed does the same with the typed informer. The index is an option of the informer, and an answer is read from one
// snapshot, so it never mixes two states.
func Typed(ctx context.Context, config *rest.Config, namespace string, listener net.Listener, out io.Writer) error {
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
	_, err = pods.Subscribe(informer.Funcs[*corev1.Pod]{
		OnAdd: func(pod *corev1.Pod, _ bool) { fmt.Fprintln(out, "OnAdd: pod", pod.Name) },
		OnUpdate: func(old, pod *corev1.Pod) {
			fmt.Fprintln(out, "OnUpdate: pod", old.Status.Phase, "->", pod.Status.Phase)
		},
		OnDelete: func(last *corev1.Pod, _ bool) { fmt.Fprintln(out, "OnDelete: pod", last.Name) },
	}, nil)
	if err != nil {
		return err
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found := []string{}
		for pod := range pods.Snapshot().ByIndex("app", "mysqltest") {
			found = append(found, pod.Name)
		}
		slices.Sort(found)
		answer(w, found)
	})
	return beside(ctx, listener, handler, pods.Run)
}
