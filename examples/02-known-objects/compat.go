// Package known gives a DeltaFIFO its known objects with a hand-written lister. Known objects decide three things:
// which deletes are queued, which objects a new list deletes, and what a resync queues.
//
// Corrected in the original program: its lister has Get and List, but NewDeltaFIFO takes ListKeys and GetByKey, and a
// missing object is reported by false, not by an error. ListKeys sorts, so that the output is always the same.
package known

import (
	"fmt"
	"io"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// PodLister has the objects that the consumer of the queue already knows.
type PodLister struct {
	Pods map[string]*v1.Pod
}

// ListKeys returns the names of all pods.
func (lister *PodLister) ListKeys() []string {
	return slices.Sorted(maps.Keys(lister.Pods))
}

// GetByKey returns one pod.
func (lister *PodLister) GetByKey(key string) (interface{}, bool, error) {
	pod, ok := lister.Pods[key]
	return pod, ok, nil
}

func podKeyFunc(obj interface{}) (string, error) {
	pod, ok := obj.(*v1.Pod)
	if !ok {
		return "", fmt.Errorf("not a Pod object")
	}
	return pod.Name, nil
}

func newPod(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// Compat is the original program, written with client-go's names.
func Compat(out io.Writer) error {
	podLister := &PodLister{Pods: make(map[string]*v1.Pod)}
	podLister.Pods["a"] = newPod("a")
	podLister.Pods["b"] = newPod("b")
	deltaFIFO := cache.NewDeltaFIFO(podKeyFunc, podLister)

	pop := func() error {
		for len(deltaFIFO.ListKeys()) > 0 {
			_, err := deltaFIFO.Pop(func(obj interface{}, isInInitialList bool) error {
				for _, delta := range obj.(cache.Deltas) {
					// A missed delete is wrapped and has the last known state.
					object := delta.Object
					if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
						object = gone.Obj
					}
					name := object.(*v1.Pod).Name
					fmt.Fprintln(out, " ", delta.Type, ":", name)
					if delta.Type == cache.Deleted {
						delete(podLister.Pods, name)
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}

	fmt.Fprintln(out, "delete a, which is known, and x, which is not:")
	if err := deltaFIFO.Delete(newPod("a")); err != nil {
		return err
	}
	if err := deltaFIFO.Delete(newPod("x")); err != nil {
		return err
	}
	if err := pop(); err != nil {
		return err
	}
	podLister.Pods["c"] = newPod("c")
	fmt.Fprintln(out, "a list that has c and no longer b:")
	if err := deltaFIFO.Replace([]interface{}{newPod("c")}, "7"); err != nil {
		return err
	}
	if err := pop(); err != nil {
		return err
	}
	fmt.Fprintln(out, "resync:")
	if err := deltaFIFO.Resync(); err != nil {
		return err
	}
	return pop()
}
