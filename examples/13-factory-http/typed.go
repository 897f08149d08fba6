package factoryhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/factory"
	"github.com/mirador-k8s/mirador/informer"
)

// Typed uses the factory of this module. Its lister returns an error before the sync, where the hand-built one returns
// an empty list, and Stop waits until everything that was started has ended.
func Typed(ctx context.Context, config *rest.Config, namespace string, listener net.Listener, out io.Writer) error {
	f, err := factory.New(config, &factory.Options{
		Scope: factory.Scope{Namespaces: []string{namespace}},
	})
	if err != nil {
		return err
	}
	pods, err := factory.Of[*corev1.Pod](f, nil)
	if err != nil {
		return err
	}
	_, err = pods.Subscribe(informer.Funcs[*corev1.Pod]{
		OnAdd: func(pod *corev1.Pod, _ bool) { fmt.Fprintln(out, pod.Name) },
	}, nil)
	if err != nil {
		return err
	}
	if err := f.Start(ctx); err != nil {
		return err
	}
	err = serve(ctx, listener, func() (any, error) { return pods.Lister().List(labels.Everything()) })
	return errors.Join(err, f.Stop(context.WithoutCancel(ctx)))
}
