package watch

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

// Typed does the same with a typed source. An error is not an event, Read returns many changes at a time, and the end
// of the initial state is marked.
func Typed(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	src, err := kube.Typed[*corev1.Pod](config, &kube.Options{Namespace: namespace})
	if err != nil {
		return err
	}
	watch, err := src.Watch(ctx, source.WatchOptions{InitialState: true})
	if err != nil {
		return err
	}
	defer watch.Close()
	var changes []source.Change[*corev1.Pod]
	for err == nil {
		changes, err = watch.Read(changes[:0])
		for _, c := range changes {
			switch c.Type {
			case object.Added:
				show(out, "ADDED", c)
			case object.Updated:
				show(out, "MODIFIED", c)
			case object.Deleted:
				show(out, "DELETED", c)
			}
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, io.EOF):
		return errClosed
	}
	return err
}

func show(out io.Writer, what string, c source.Change[*corev1.Pod]) {
	fmt.Fprintln(out, what, ":", c.Item.Value.Name, ", Status: ", c.Item.Value.Status.Phase)
}
