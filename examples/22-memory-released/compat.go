package memoryreleased

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// Compat shows the pitfall, which compat keeps because users of client-go may rely on it: a stopped informer stays
// readable. Its memory is freed once nothing refers to the informer, its store or its lister. The solution is to drop
// all references, and to make a new informer when it is needed again.
func Compat(ctx context.Context, config *rest.Config, namespace string, out io.Writer) (err error) {
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
	lw := cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", namespace,
		func(o *metav1.ListOptions) { o.LabelSelector = label })
	informer := cache.NewSharedInformer(lw, &v1.ConfigMap{}, 0)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	running.Go(func() { informer.Run(ctx.Done()) })
	synced := cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
	if synced {
		m.show("mirrored", len(informer.GetStore().List()))
	}
	stop()
	running.Wait()
	if !synced {
		return fmt.Errorf("interrupted before the sync: %w", ctx.Err())
	}
	m.show("stopped", len(informer.GetStore().List()))
	informer = nil
	m.show("let go", 0)
	return nil
}
