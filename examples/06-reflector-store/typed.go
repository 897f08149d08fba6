package reflectorstore

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source/kube"
)

// Typed does the same with an informer, which contains reflector, queue and store. No delete is lost or has to be
// unwrapped, and an event has the old and the new state.
func Typed(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	src, err := kube.Typed[*corev1.Pod](config, &kube.Options{Namespace: namespace})
	if err != nil {
		return err
	}
	pods, err := informer.New(src, nil)
	if err != nil {
		return err
	}
	_, err = pods.Subscribe(informer.HandlerFunc[*corev1.Pod](func(e object.Event[*corev1.Pod]) {
		switch {
		case e.Initial:
			fmt.Fprintln(out, "Sync :", e.New.Name, ":", e.New.Status.Phase)
		case e.Type == object.Added:
			fmt.Fprintln(out, "Added :", e.New.Name, ":", e.New.Status.Phase)
		case e.Type == object.Updated:
			fmt.Fprintln(out, "Updated :", e.New.Name, ":", e.New.Status.Phase)
		case e.Type == object.Deleted:
			fmt.Fprintln(out, "Deleted :", e.Old.Name, ":", e.Old.Status.Phase)
		}
	}), nil)
	if err != nil {
		return err
	}
	return pods.Run(ctx)
}
