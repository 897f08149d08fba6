// Package deltafifo shows the queue of an informer with plain structs and without Kubernetes: it lists the queued
// objects, returns all changes of an object together, oldest first, and calls a function by the type of each change.
//
// Corrected in the original program: Value is a float64, since 1.1 does not fit the int that some of them declare;
// Pop's callback takes isInInitialList, as it has since client-go 0.27; and the queue is closed once it is filled, so
// that the loop ends with the last object.
package deltafifo

import (
	"errors"
	"fmt"
	"io"

	"github.com/mirador-k8s/mirador/compat/cache"
)

type pod struct {
	Name  string
	Value float64
}

func newPod(name string, v float64) pod {
	return pod{Name: name, Value: v}
}

func podKeyFunc(obj interface{}) (string, error) {
	return obj.(pod).Name, nil
}

// Compat is the original program, written with client-go's names.
func Compat(out io.Writer) error {
	df := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KeyFunction: podKeyFunc})
	pod1 := newPod("pod1", 1)
	pod2 := newPod("pod2", 2)
	pod3 := newPod("pod3", 3)
	df.Add(pod1)
	df.Add(pod2)
	df.Add(pod3)
	fmt.Fprintln(out, df.List())

	pod1.Value = 1.1
	df.Update(pod1)
	df.Delete(pod1)
	fmt.Fprintln(out, df.List()) // still three: each key is queued once, with all its changes
	df.Close()

	for {
		_, err := df.Pop(func(obj interface{}, isInInitialList bool) error {
			for _, delta := range obj.(cache.Deltas) {
				fmt.Fprintln(out, delta.Type, ":", delta.Object.(pod).Name, "value:", delta.Object.(pod).Value)
				switch delta.Type {
				case cache.Added:
					fmt.Fprintln(out, "执行新增回调")
				case cache.Updated:
					fmt.Fprintln(out, "执行更新回调")
				case cache.Deleted:
					fmt.Fprintln(out, "执行删除回调")
				}
			}
			return nil
		})
		if errors.Is(err, cache.ErrFIFOClosed) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
