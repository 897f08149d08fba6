package watchdog

import (
	"context"
	"errors"
	"fmt"
	"io"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// PodHandler prints each event.
type PodHandler struct{ out io.Writer }

// OnAdd implements cache.ResourceEventHandler.
func (h *PodHandler) OnAdd(obj interface{}, isInInitialList bool) {
	fmt.Fprintln(h.out, "OnAdd:", obj.(*v1.Pod).Name)
}

// OnDelete implements cache.ResourceEventHandler.
func (h *PodHandler) OnDelete(obj interface{}) {
	fmt.Fprintln(h.out, "OnDelete:", obj.(*v1.Pod).Name)
}

// OnUpdate implements cache.ResourceEventHandler.
func (h *PodHandler) OnUpdate(oldObj interface{}, newObj interface{}) {
	fmt.Fprintln(h.out, "OnUpdate:", newObj.(*v1.Pod).Name)
}

var _ cache.ResourceEventHandler = &PodHandler{}

// moody is a store that rejects each pod with the label mood=bad once.
type moody struct {
	cache.Store
	refused map[string]bool
}

var errMood = errors.New("not in the mood")

func (m *moody) Add(obj interface{}) error {
	pod := obj.(*v1.Pod)
	if pod.Labels["mood"] == "bad" && !m.refused[pod.Name] {
		m.refused[pod.Name] = true
		return fmt.Errorf("storing %s: %w", pod.Name, errMood)
	}
	return m.Store.Add(obj)
}

// Compat is the original program, written with client-go's names.
func Compat(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	podLW := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace, fields.Everything())
	store := &moody{Store: cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc), refused: map[string]bool{}}

	wd := NewWatchDog(podLW, &v1.Pod{}, store, &PodHandler{out}, func(err error) {
		fmt.Fprintln(out, "failed, queued again:", err)
	})
	wd.Run(ctx)
	return nil
}
