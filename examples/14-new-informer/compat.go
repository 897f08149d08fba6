// Package newinformer follows the ConfigMaps of a namespace with NewInformer, the
// smallest informer: one handler, a store to read from, and a controller to run.
//
// Corrected in the original program: the handler's OnAdd takes isInInitialList, as it
// has since client-go 0.27; a WaitForCacheSync is in the place of "sleep three
// seconds and hope"; and the output has the names and not the whole objects.
package newinformer

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// CmdHandler prints what happens to ConfigMaps.
type CmdHandler struct{ out io.Writer }

// OnAdd is called for each ConfigMap that is there or comes.
func (h *CmdHandler) OnAdd(obj interface{}, isInInitialList bool) {
	fmt.Fprintln(h.out, "Add: ", obj.(*v1.ConfigMap).Name)
}

// OnUpdate is called for each that changes.
func (h *CmdHandler) OnUpdate(obj interface{}, newObj interface{}) {
	fmt.Fprintln(h.out, "Update: ", newObj.(*v1.ConfigMap).Name)
}

// OnDelete is called for each that is gone.
func (h *CmdHandler) OnDelete(obj interface{}) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	fmt.Fprintln(h.out, "Delete: ", obj.(*v1.ConfigMap).Name)
}

// Compat is the original program on client-go's names.
func Compat(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	cliset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	listWatcher := cache.NewListWatchFromClient(
		cliset.CoreV1().RESTClient(),
		"configmaps",
		namespace,
		fields.Everything(),
	)
	store, controller := cache.NewInformer(listWatcher, &v1.ConfigMap{}, 0, &CmdHandler{out})

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { controller.Run(ctx.Done()) })
	if !cache.WaitForCacheSync(ctx.Done(), controller.HasSynced) {
		return nil // ended before that
	}
	keys := store.ListKeys()
	slices.Sort(keys)
	for _, key := range keys {
		_, name, err := cache.SplitMetaNamespaceKey(key)
		if err != nil {
			stop()
			return err
		}
		fmt.Fprintln(out, "in the store:", name)
	}
	return nil
}
