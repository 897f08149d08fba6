package list

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/source/kube"
)

// Typed does the same with a typed source. The list is a stream, read page by page and decoded pod by pod, so that a
// hundred thousand pods take no more memory than a few, and the pods keep their kind.
func Typed(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	src, err := kube.Typed[*corev1.Pod](config, &kube.Options{Namespace: namespace})
	if err != nil {
		return err
	}
	list, err := src.List(ctx, source.ListOptions{})
	if err != nil {
		return err
	}
	defer list.Close()
	var pods []object.Item[*corev1.Pod]
	for {
		pods, err = list.Read(pods[:0])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, pod := range pods {
			fmt.Fprintln(out, pod.Value.Name)
		}
	}
}
