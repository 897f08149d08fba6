// Package manylisteners delivers one stream of events to several handlers. Each is called at its own pace, and all see
// the same order. A handler that joins late first receives the existing objects.
//
// The original drives client-go's sharedProcessor by hand, from a copy of its source, and adds the pods to each
// listener separately. Here package fanout does it, and a pod is published once for all handlers.
package manylisteners

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/object"
)

// MySharedInformer is a shared informer without a source: the program publishes the events.
type MySharedInformer struct {
	processor *fanout.Fanout[*v1.Pod]

	mu   sync.Mutex
	seq  uint64
	pods []*v1.Pod
}

// NewMySharedInformer returns an informer without handlers.
func NewMySharedInformer() *MySharedInformer {
	return &MySharedInformer{processor: fanout.New[*v1.Pod](fanout.Options{})}
}

func (msi *MySharedInformer) addEventHandler(name string, out io.Writer) (*fanout.Subscription[*v1.Pod], error) {
	return msi.processor.Join(fanout.HandlerOptions[*v1.Pod]{
		Name:   name,
		Handle: func(e object.Event[*v1.Pod]) { fmt.Fprintln(out, "OnAdd:", name, e.New.GetName()) },
		Replay: msi.state,
	})
}

// state returns the existing objects and the number of the last event that they include, so that a handler that joins
// late receives each event exactly once.
func (msi *MySharedInformer) state() fanout.Replay[*v1.Pod] {
	msi.mu.Lock()
	defer msi.mu.Unlock()
	pods := slices.Clone(msi.pods)
	return fanout.Replay[*v1.Pod]{Seq: msi.seq, Events: func(yield func(object.Event[*v1.Pod]) bool) {
		for _, pod := range pods {
			if !yield(object.Event[*v1.Pod]{Key: object.Key(pod.Name), New: pod}) {
				return
			}
		}
	}}
}

func (msi *MySharedInformer) add(pod *v1.Pod) {
	msi.mu.Lock()
	defer msi.mu.Unlock()
	msi.seq++
	msi.pods = append(msi.pods, pod)
	msi.processor.Publish(msi.seq, []object.Event[*v1.Pod]{{Type: object.Added, Key: object.Key(pod.Name), New: pod}})
}

// Run is the original program with package fanout.
func Run(out io.Writer) error {
	msi := NewMySharedInformer()
	first, err := msi.addEventHandler("first", out)
	if err != nil {
		return err
	}
	second, err := msi.addEventHandler("second", out)
	if err != nil {
		return err
	}
	for count := range 3 {
		msi.add(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod%d", count)}})
	}
	msi.processor.MarkSynced(msi.seq)
	<-first.Synced()
	<-second.Synced()
	fmt.Fprintln(out, "both have seen all")

	late, err := msi.addEventHandler("late", out)
	if err != nil {
		return err
	}
	<-late.Synced()
	fmt.Fprintln(out, "so has the late one")
	return msi.processor.Stop(context.Background())
}
