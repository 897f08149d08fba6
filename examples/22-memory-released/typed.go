package memoryreleased

import (
	"context"
	"errors"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/factory"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source/kube"
)

// Typed shows the solution: a stopped informer keeps its last state readable, for workers that drain their queue, until
// Release drops it. The informer can then run again. A factory does the same when the last user releases a resource.
func Typed(ctx context.Context, config *rest.Config, namespace string, out io.Writer) (err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	unload, err := load(ctx, client, namespace)
	defer func() { err = errors.Join(err, unload()) }()
	if err != nil {
		return err
	}

	m := newMeter(out)
	src, err := kube.Typed[*corev1.ConfigMap](config, &kube.Options{Namespace: namespace, LabelSelector: label})
	if err != nil {
		return err
	}
	configMaps, err := informer.New(src, nil)
	if err != nil {
		return err
	}
	for _, moment := range []string{"mirrored", "mirrored again"} {
		ended := make(chan error, 1)
		go func() { ended <- configMaps.Run(ctx) }()
		synced := configMaps.WaitSynced(ctx)
		if synced == nil {
			m.show(moment, configMaps.Reader().Len())
		}
		if err := errors.Join(synced, configMaps.Stop(ctx), <-ended); err != nil {
			return err
		}
		m.show("stopped", configMaps.Reader().Len())
		if err := configMaps.Release(); err != nil {
			return err
		}
		m.show("released", configMaps.Reader().Len())
	}
	return released(ctx, config, namespace, m)
}

// released is the same with a factory.
func released(ctx context.Context, config *rest.Config, namespace string, m *meter) error {
	f, err := factory.New(config, nil)
	if err != nil {
		return err
	}
	if err := f.Start(ctx); err != nil {
		return err
	}
	configMaps, err := factory.Of[*corev1.ConfigMap](f, &factory.Scope{Namespaces: []string{namespace}, Labels: label})
	if err != nil {
		return err
	}
	synced := configMaps.WaitSynced(ctx)
	if synced == nil {
		m.show("in a factory", f.Health()[0].Objects)
	}
	configMaps.Release()
	// Release does not wait, since a handler may call it; Stop does.
	if err := errors.Join(synced, f.Stop(ctx)); err != nil {
		return err
	}
	m.show("released", len(f.Health()))
	return nil
}
