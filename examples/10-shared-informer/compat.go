package sharedinformer

import (
	"context"
	"fmt"
	"io"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// PodHandler prints each event after its own prefix.
type PodHandler struct {
	Out io.Writer
	Msg string
}

// OnAdd implements cache.ResourceEventHandler.
func (p PodHandler) OnAdd(obj interface{}, isInit bool) {
	fmt.Fprintln(p.Out, "OnAdd:", p.Msg, obj.(metav1.Object).GetName())
}

// OnUpdate implements cache.ResourceEventHandler.
func (p PodHandler) OnUpdate(obj interface{}, newObj interface{}) {
	fmt.Fprintln(p.Out, "OnUpdate:", p.Msg, obj.(*v1.Pod).Status.Phase, "->", newObj.(*v1.Pod).Status.Phase)
}

// OnDelete implements cache.ResourceEventHandler.
func (p PodHandler) OnDelete(obj interface{}) {
	fmt.Fprintln(p.Out, "OnDelete:", p.Msg, obj.(metav1.Object).GetName())
}

// Compat runs the informer twice, as in the original and corrected, each with two handlers. At the end it prints what
// the stores contain.
func Compat(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	podLw := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace, fields.Everything())
	wrongStore := cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc)
	rightStore := cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc)
	wrong := NewMySharedInformer(podLw, &v1.Pod{}, wrongStore).AsInTheOriginal()
	right := NewMySharedInformer(podLw, &v1.Pod{}, rightStore)

	for msi, msg := range map[*MySharedInformer]string{wrong: "wrong", right: "right"} {
		for _, which := range []string{"first", "second"} {
			if err := msi.AddEventHandler(PodHandler{out, msg + " " + which}); err != nil {
				return err
			}
		}
	}
	var running sync.WaitGroup
	var failed [2]error
	running.Go(func() { failed[0] = wrong.Run(ctx) })
	running.Go(func() { failed[1] = right.Run(ctx) })
	running.Wait()

	for i, store := range []cache.Store{wrongStore, rightStore} {
		for _, obj := range store.List() {
			fmt.Fprintln(out, "in the store:", []string{"wrong", "right"}[i], obj.(*v1.Pod).Name, obj.(*v1.Pod).Status.Phase)
		}
		if failed[i] != nil {
			return failed[i]
		}
	}
	return nil
}
