package queue_test

import (
	"errors"
	"fmt"

	"github.com/mirador-k8s/mirador/queue"
)

// Pod is any type: a queue needs to know nothing about its objects except their keys.
type Pod struct {
	Name  string
	Value int
}

func podName(p Pod) (string, error) {
	if p.Name == "" {
		return "", errors.New("the pod has no name")
	}
	return p.Name, nil
}

func Example() {
	df, err := queue.NewDeltaFIFO(queue.Options[Pod]{Key: podName})
	if err != nil {
		fmt.Println(err)
		return
	}
	pod1 := Pod{"pod-1", 1}
	_ = df.Add(pod1)
	_ = df.Add(Pod{"pod-2", 2})
	_ = df.Add(Pod{"pod-3", 3})
	pod1.Value = 11
	_ = df.Update(pod1)
	_ = df.Delete(pod1)
	fmt.Println(df.List())

	df.Close() // makes the loop end when the queue is empty
	for {
		_, err := df.Pop(func(key string, deltas queue.Deltas[Pod], _ bool) error {
			for _, d := range deltas {
				fmt.Printf("%s: %v\n", d.Type, d.Object)
			}
			return nil
		})
		if errors.Is(err, queue.ErrClosed) {
			break
		}
	}
	// Output:
	// [{pod-1 11} {pod-2 2} {pod-3 3}]
	// Added: {pod-1 1}
	// Updated: {pod-1 11}
	// Deleted: {pod-1 11}
	// Added: {pod-2 2}
	// Added: {pod-3 3}
}

// A delta that could not be processed goes back to the end of the queue.
func ExampleDeltaFIFO_AddIfNotPresent() {
	df, _ := queue.NewDeltaFIFO(queue.Options[Pod]{Key: podName})
	_ = df.Add(Pod{"pod-1", 1})
	_ = df.Add(Pod{"pod-2", 2})
	failures := 1
	for range 3 {
		var popped string
		deltas, err := df.Pop(func(key string, _ queue.Deltas[Pod], _ bool) error {
			popped = key
			if failures > 0 {
				failures--
				return errors.New("not now")
			}
			return nil
		})
		fmt.Println(popped, err)
		if err != nil {
			_ = df.AddIfNotPresent(popped, deltas)
		}
	}
	// Output:
	// pod-1 not now
	// pod-2 <nil>
	// pod-1 <nil>
}
