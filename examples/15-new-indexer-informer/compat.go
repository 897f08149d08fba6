// Package newindexerinformer is NewIndexerInformer: an informer of one handler whose
// store can be searched by an index of our own.
//
// Corrected in the original program: it lists ConfigMaps and says that they are Pods,
// so that every object is dropped as being of the wrong type; here it lists pods. It
// runs "controller" where it has called it "c", sleeps where it has to wait for the
// sync, and takes the first of what may be an empty list. The index function is that
// of 11-index, which the original writes out again.
package newindexerinformer

import (
	"context"
	"fmt"
	"io"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/compat/cache"
	index "github.com/mirador-k8s/mirador/examples/11-index"
)

// Compat is the original program on client-go's names.
func Compat(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	cliset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	listWatcher := cache.NewListWatchFromClient(
		cliset.CoreV1().RESTClient(),
		"pods",
		namespace,
		fields.Everything(),
	)
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj interface{}) { fmt.Fprintln(out, "Add: ", obj.(*v1.Pod).Name) },
	}
	myIndexer := cache.Indexers{"app": index.LabelsIndexFunc}
	i, c := cache.NewIndexerInformer(listWatcher, &v1.Pod{}, 0, handler, myIndexer)

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { c.Run(ctx.Done()) })
	if !cache.WaitForCacheSync(ctx.Done(), c.HasSynced) {
		return nil // ended before that
	}
	objList, err := i.ByIndex("app", "busy-box")
	if err != nil {
		stop()
		return err
	}
	for _, obj := range objList {
		fmt.Fprintln(out, "app=busy-box:", obj.(*v1.Pod).Name)
	}
	return nil
}
