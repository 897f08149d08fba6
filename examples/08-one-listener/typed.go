// Package onelistener drives the part of a shared informer that calls one handler:
// events are put in at one end, and the handler is called at its own pace at the
// other.
//
// The original drives client-go's processorListener by hand, from a copy of its source,
// since that type is not exported. Here the same is package fanout, which is. The
// original puts in a pod each second for ever; here there are three, one that changes
// and is deleted, and nobody sleeps.
package onelistener

import (
	"context"
	"fmt"
	"io"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
)

// Run is the original program on package fanout.
func Run(out io.Writer) error {
	gone := make(chan struct{})
	handler := informer.Funcs[*v1.Pod]{
		OnAdd:    func(pod *v1.Pod, _ bool) { fmt.Fprintln(out, "OnAdd:", pod.GetName()) },
		OnUpdate: func(old, pod *v1.Pod) { fmt.Fprintln(out, "OnUpdate:", pod.GetName()) },
		OnDelete: func(last *v1.Pod, _ bool) {
			fmt.Fprintln(out, "OnDelete:", last.GetName())
			close(gone)
		},
	}
	stream := fanout.New[*v1.Pod](fanout.Options{})
	listener, err := stream.Join(fanout.HandlerOptions[*v1.Pod]{Name: "printer", Handle: handler.Handle})
	if err != nil {
		return err
	}

	var seq uint64
	publish := func(e object.Event[*v1.Pod]) {
		seq++
		stream.Publish(seq, []object.Event[*v1.Pod]{e})
	}
	var pod *v1.Pod
	for count := range 3 {
		pod = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod%d", count)}}
		publish(object.Event[*v1.Pod]{Type: object.Added, Key: object.Key(pod.Name), New: pod, Initial: true})
	}
	// Publishing waits for nobody. To wait is a matter of its own: the handler has
	// synced when it was called with everything up to the mark.
	stream.MarkSynced(seq)
	<-listener.Synced()
	fmt.Fprintln(out, "synced")

	publish(object.Event[*v1.Pod]{Type: object.Updated, Key: object.Key(pod.Name), Old: pod, New: pod})
	publish(object.Event[*v1.Pod]{Type: object.Deleted, Key: object.Key(pod.Name), Old: pod})
	<-gone
	return stream.Stop(context.Background())
}
