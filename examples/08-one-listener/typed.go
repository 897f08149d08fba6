// Package onelistener shows the part of a shared informer that calls one handler: events are published, and the handler
// is called at its own pace.
//
// The original drives client-go's processorListener by hand, from a copy of its source, since that type is not
// exported. Here package fanout does the same. The original adds a pod each second forever; here there are three
// pods, one of which changes and is deleted, and nothing sleeps.
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

// Run is the original program with package fanout.
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
	// Publishing does not wait for handlers. To wait for one: it has synced when it was called with all events up to the
	// mark.
	stream.MarkSynced(seq)
	<-listener.Synced()
	fmt.Fprintln(out, "synced")

	publish(object.Event[*v1.Pod]{Type: object.Updated, Key: object.Key(pod.Name), Old: pod, New: pod})
	publish(object.Event[*v1.Pod]{Type: object.Deleted, Key: object.Key(pod.Name), Old: pod})
	<-gone
	return stream.Stop(context.Background())
}
