// Package manylisteners gives one stream of events to several handlers, each of
// which is called at its own pace and sees the same order. One that joins late is
// given first what is there already.
//
// The original drives client-go's sharedProcessor by hand, from a copy of its source,
// and puts the pods into each listener by itself. Here it is package fanout, and a
// pod is put in once for all.
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

// MySharedInformer is a shared informer without a source: it is told what happens.
type MySharedInformer struct {
	processor *fanout.Fanout[*v1.Pod]

	mu   sync.Mutex
	seq  uint64
	pods []*v1.Pod
}

// NewMySharedInformer makes one without handlers.
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

// state is what is there, and the number of the event that it goes up to: so a
// handler that joins late gets nothing twice and misses nothing.
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

// Run is the original program on package fanout.
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
