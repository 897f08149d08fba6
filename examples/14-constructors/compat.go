// Package constructors compares the three constructors of informers that client-go has beside its factory. Each gets
// the ConfigMaps of a namespace:
//
//   - NewInformer: one handler and a store,
//   - NewIndexerInformer: one handler and a store with indexes,
//   - NewSharedInformer: one list, one watch and one store for any number of handlers.
//
// Corrected in the original programs: OnAdd takes isInInitialList, as it has since client-go 0.27; WaitForCacheSync
// replaces a sleep of three seconds; the program with the index listed ConfigMaps but declared Pods, so that every
// object was dropped; a context ends the program; and the output has names instead of whole objects. The index function
// is that of 11-index.
package constructors

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/compat/cache"
	index "github.com/mirador-k8s/mirador/examples/11-index"
)

// handler prints each event after its own name.
type handler struct {
	name string
	out  io.Writer
}

// OnAdd is called for each ConfigMap that exists or is created.
func (h handler) OnAdd(obj interface{}, isInInitialList bool) {
	fmt.Fprintf(h.out, "%s: add %s\n", h.name, obj.(*v1.ConfigMap).Name)
}

// OnUpdate is called for each ConfigMap that changes.
func (h handler) OnUpdate(_, obj interface{}) {
	fmt.Fprintf(h.out, "%s: update %s\n", h.name, obj.(*v1.ConfigMap).Name)
}

// OnDelete is called for each ConfigMap that is deleted.
func (h handler) OnDelete(obj interface{}) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	fmt.Fprintf(h.out, "%s: delete %s\n", h.name, obj.(*v1.ConfigMap).Name)
}

// Compat is the original programs, written with client-go's names.
func Compat(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	listWatcher := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", namespace,
		fields.Everything())

	store, informer := cache.NewInformer(listWatcher, &v1.ConfigMap{}, 0, handler{"informer", out})
	indexer, indexerInformer := cache.NewIndexerInformer(listWatcher, &v1.ConfigMap{}, 0,
		handler{"indexer informer", out}, cache.Indexers{"app": index.LabelsIndexFunc})
	sharedInformer := cache.NewSharedInformer(listWatcher, &v1.ConfigMap{}, 0)
	for _, name := range []string{"shared informer, handler 1", "shared informer, handler 2"} {
		if _, err := sharedInformer.AddEventHandler(handler{name, out}); err != nil {
			return err
		}
	}

	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { informer.Run(ctx.Done()) })
	running.Go(func() { indexerInformer.Run(ctx.Done()) })
	running.Go(func() { sharedInformer.Run(ctx.Done()) })
	defer func() { stop(); running.Wait() }()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced, indexerInformer.HasSynced, sharedInformer.HasSynced) {
		return nil // interrupted
	}
	found, err := indexer.ByIndex("app", "busy-box")
	if err != nil {
		return err
	}
	keys := store.ListKeys()
	slices.Sort(keys)
	fmt.Fprintln(out, "stored:", strings.ReplaceAll(strings.Join(keys, " "), namespace+"/", ""))
	for _, obj := range found {
		fmt.Fprintln(out, "app=busy-box:", obj.(*v1.ConfigMap).Name)
	}
	<-ctx.Done()
	return nil
}
