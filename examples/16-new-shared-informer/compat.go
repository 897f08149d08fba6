// Package newsharedinformer is NewSharedInformer: one list, one watch and one store
// for as many handlers as one likes.
//
// Corrected in the original program: a context ends it.
package newsharedinformer

import (
	"context"
	"fmt"
	"io"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// handler prints what happens, after its own name.
func handler(name string, out io.Writer) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj interface{}) { fmt.Fprintln(out, name, "Add: ", obj.(*v1.ConfigMap).Name) },
		UpdateFunc: func(_, obj interface{}) { fmt.Fprintln(out, name, "Update: ", obj.(*v1.ConfigMap).Name) },
		DeleteFunc: func(obj interface{}) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			fmt.Fprintln(out, name, "Delete: ", obj.(*v1.ConfigMap).Name)
		},
	}
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
	shareInformer := cache.NewSharedInformer(listWatcher, &v1.ConfigMap{}, 0)
	for _, name := range []string{"CmdHandler", "CmdHandler2"} {
		if _, err := shareInformer.AddEventHandler(handler(name, out)); err != nil {
			return err
		}
	}
	shareInformer.Run(ctx.Done())
	return nil
}
