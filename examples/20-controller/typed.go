package controller

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source/kube"
)

// Typed feeds the controller from the typed informer. An event has its key, so one line queues it, whatever its type,
// and a read returns a ConfigMap.
func Typed(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	src, err := kube.Typed[*corev1.ConfigMap](config, &kube.Options{Namespace: namespace})
	if err != nil {
		return err
	}
	configMaps, err := informer.New(src, nil)
	if err != nil {
		return err
	}
	c := newController(client, out)
	defer c.queue.ShutDown()
	c.get = func(key string) (*corev1.ConfigMap, bool, error) {
		cm, exists := configMaps.Get(object.Key(key))
		return cm, exists, nil
	}
	_, err = configMaps.Subscribe(informer.HandlerFunc[*corev1.ConfigMap](func(e object.Event[*corev1.ConfigMap]) {
		c.queue.Add(string(e.Key))
	}), nil)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- configMaps.Run(ctx) }()
	if configMaps.WaitSynced(ctx) == nil {
		c.work(ctx)
	}
	return <-ended
}
