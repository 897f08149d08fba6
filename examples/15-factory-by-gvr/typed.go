package factorybygvr

import (
	"context"
	"fmt"
	"io"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/factory"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
)

// Typed does the same with the typed factory. A resync has its own type of event, so a handler need not compare old
// and new; WaitForSync says which informer is not synced, and why; and Release stops informers without users. A
// resource has the same informer by name and by type.
func Typed(ctx context.Context, config *rest.Config, namespace string, out io.Writer) (err error) {
	f, err := factory.New(config, &factory.Options{
		Scope:  factory.Scope{Namespaces: []string{namespace}},
		Resync: resync,
	})
	if err != nil {
		return err
	}
	byName, err := f.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, nil)
	if err != nil {
		return err
	}
	resynced := make(chan string, 1)
	var once sync.Once
	_, err = byName.Subscribe(informer.HandlerFunc[runtime.Object](func(e object.Event[runtime.Object]) {
		if e.Type == object.Resynced {
			once.Do(func() { resynced <- e.Key.Name() })
		}
	}), nil)
	if err != nil {
		return err
	}
	configMaps, err := factory.Of[*corev1.ConfigMap](f, nil)
	if err != nil {
		return err
	}
	pods, err := factory.Of[*corev1.Pod](f, nil)
	if err != nil {
		return err
	}
	if err := f.Start(ctx); err != nil {
		return err
	}
	defer func() {
		if stopped := f.Stop(context.WithoutCancel(ctx)); err == nil {
			err = stopped
		}
	}()
	if err := f.WaitForSync(ctx); err != nil {
		return err
	}
	listConfigMap, err := configMaps.Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	show(out, "Configmap:", listConfigMap)
	listPod, err := pods.Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	show(out, "Pod:", listPod)

	select {
	case name := <-resynced:
		fmt.Fprintln(out, "Resync:", name, "given again, unchanged")
	case <-ctx.Done():
	}
	return nil
}
