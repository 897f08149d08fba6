package feed

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Buffered is how many events a watch buffers.
const Buffered = 1000

// ListWatch is a lister and watcher for client-go's informers and compat's, over existing pods. It does not support
// sendInitialEvents, so that both sides list and then watch.
type ListWatch struct {
	list *corev1.PodList

	mu      sync.Mutex
	watches []chan watch.Event // in the order in which they were opened
	opened  chan struct{}      // one signal for each watch
}

// NewListWatch returns a ListWatch that lists the pods, without copying them, at a version.
func NewListWatch(pods []*corev1.Pod, version string) *ListWatch {
	l := &ListWatch{list: &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: version}},
		opened: make(chan struct{}, 100)}
	l.list.Items = make([]corev1.Pod, len(pods))
	for i, p := range pods {
		l.list.Items[i] = *p
	}
	return l
}

// IsWatchListSemanticsUnSupported tells client-go not to use sendInitialEvents.
func (l *ListWatch) IsWatchListSemanticsUnSupported() bool { return true }

// List returns all pods in one page.
func (l *ListWatch) List(metav1.ListOptions) (runtime.Object, error) {
	list := *l.list
	return &list, nil
}

// Watch opens a watch, which delivers what is sent to its channel.
func (l *ListWatch) Watch(metav1.ListOptions) (watch.Interface, error) {
	return l.watch(), nil
}

func (l *ListWatch) watch() *open {
	w := &open{events: make(chan watch.Event, Buffered)}
	l.mu.Lock()
	l.watches = append(l.watches, w.events)
	l.mu.Unlock()
	l.opened <- struct{}{}
	return w
}

// ListWithContext is List.
func (l *ListWatch) ListWithContext(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return l.List(o)
}

// WatchWithContext is Watch.
func (l *ListWatch) WatchWithContext(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return l.Watch(o)
}

// Events waits for the next watch to be opened and returns the channel for its events.
func (l *ListWatch) Events(ctx context.Context) (chan<- watch.Event, error) {
	select {
	case <-l.opened:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.watches[len(l.watches)-1], nil
}

// open is a watch. Its channel belongs to the driver: Stop does not close it.
type open struct{ events chan watch.Event }

func (o *open) Stop()                          {}
func (o *open) ResultChan() <-chan watch.Event { return o.events }

// Forget drops the list, so that only the informer references the pods.
func (l *ListWatch) Forget() {
	l.list = &corev1.PodList{ListMeta: l.list.ListMeta}
}
