// Package factorybygvr asks a factory for informers by the names of resources, in one namespace, waits until all have
// synced, reads through listers, and receives every object again at an interval (resync).
//
// Corrected in the original programs: errors are returned, and the resync interval is one second, the shortest that is
// possible, and is shown once. Lists are sorted.
package factorybygvr

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/compat/informers"
)

const resync = time.Second

// Compat is the original program, written with client-go's names.
func Compat(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	cliset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	informerFactory := informers.NewSharedInformerFactoryWithOptions(
		cliset,
		resync,
		informers.WithNamespace(namespace),
	)
	cmGVR := schema.GroupVersionResource{
		Group:    "",
		Version:  "v1",
		Resource: "configmaps",
	}
	cmInformer, err := informerFactory.ForResource(cmGVR)
	if err != nil {
		return err
	}
	resynced := make(chan string, 1)
	var once sync.Once
	_, err = cmInformer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(oldObj, newObj interface{}) {
			if oldObj == newObj {
				once.Do(func() { resynced <- newObj.(*v1.ConfigMap).Name })
			}
		},
	})
	if err != nil {
		return err
	}
	podGVR := schema.GroupVersionResource{
		Group:    "",
		Version:  "v1",
		Resource: "pods",
	}
	if _, err := informerFactory.ForResource(podGVR); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer informerFactory.Shutdown()
	defer cancel()
	informerFactory.Start(ctx.Done())
	for informerType, synced := range informerFactory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("%s has not synced", informerType)
		}
	}

	listConfigMap, err := informerFactory.Core().V1().ConfigMaps().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	show(out, "Configmap:", listConfigMap)
	listPod, err := informerFactory.Core().V1().Pods().Lister().List(labels.Everything())
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

func show[T metav1.Object](out io.Writer, title string, objs []T) {
	slices.SortFunc(objs, func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) })
	fmt.Fprintln(out, title)
	for _, obj := range objs {
		fmt.Fprintln(out, " ", obj.GetName())
	}
}
