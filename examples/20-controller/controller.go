// Package controller is a custom controller: an informer says which objects to look at, client-go's work queue holds
// their keys, and workers bring each object to its desired state, with retries until that succeeds or is given up.
//
// The originals leave the code of this part to the reader. This controller writes greetings: a ConfigMap with data.name
// gets data.greeting. If data.language is a language that the controller does not know, reconciling fails, is retried
// with growing delays, and is given up after the third attempt until the ConfigMap changes.
package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"

	"github.com/mirador-k8s/mirador/object"
)

const (
	workers  = 2
	attempts = 3
)

var greetings = map[string]string{"": "Hello", "en": "Hello", "de": "Guten Tag", "zh": "你好"}

// Controller reconciles the objects whose keys are in its queue. The get function reads them.
type Controller struct {
	client kubernetes.Interface
	queue  workqueue.TypedRateLimitingInterface[string]
	// get reads one ConfigMap from the local store, by "namespace/name".
	get func(key string) (obj *corev1.ConfigMap, exists bool, err error)
	out io.Writer
}

func newController(client kubernetes.Interface, out io.Writer) *Controller {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](5*time.Millisecond, time.Second)
	return &Controller{client: client, queue: workqueue.NewTypedRateLimitingQueue(limiter), out: out}
}

// work runs the workers until ctx ends. Each finishes its current key.
func (c *Controller) work(ctx context.Context) {
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	c.queue.ShutDown()
	running.Wait()
}

// next reconciles one key. It returns false if the queue has shut down.
func (c *Controller) next(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	name := object.Key(key).Name()
	switch err := c.reconcile(ctx, key); {
	case err == nil:
		c.queue.Forget(key)
	case ctx.Err() != nil:
	case c.queue.NumRequeues(key) < attempts-1:
		fmt.Fprintf(c.out, "%s: attempt %d failed: %v\n", name, c.queue.NumRequeues(key)+1, err)
		c.queue.AddRateLimited(key)
	default:
		fmt.Fprintf(c.out, "%s: given up after %d attempts: %v\n", name, attempts, err)
		c.queue.Forget(key)
	}
	return true
}

var errLanguage = errors.New("no greeting in that language")

// reconcile brings one object to its desired state. It reads the current state and no event, so it does not matter how
// many events the key stands for.
func (c *Controller) reconcile(ctx context.Context, key string) error {
	cm, exists, err := c.get(key)
	if err != nil || !exists || cm.Data["name"] == "" {
		return err
	}
	hello, ok := greetings[cm.Data["language"]]
	if !ok {
		return fmt.Errorf("greeting in %q: %w", cm.Data["language"], errLanguage)
	}
	want := hello + ", " + cm.Data["name"]
	if cm.Data["greeting"] == want {
		return nil
	}
	cm = cm.DeepCopy() // stored objects are shared
	cm.Data["greeting"] = want
	_, err = c.client.CoreV1().ConfigMaps(cm.Namespace).Update(ctx, cm, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the object has changed, and that change queues the key again
	}
	if err == nil {
		fmt.Fprintf(c.out, "%s: greeted: %s\n", cm.Name, want)
	}
	return err
}
