package pool

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// Client is the part of client-go's clients for one resource that informers use.
type Client[List runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (List, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// ListWatch returns a ListerWatcher that uses a client. tweak, if it is not nil, changes
// the options of each request. clientset decides whether the state can be streamed: a
// fake clientset states that it cannot, a real one can.
func ListWatch[List runtime.Object](clientset any, client Client[List],
	tweak func(*metav1.ListOptions)) cache.ListerWatcher {
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		if tweak != nil {
			tweak(&o)
		}
		l, err := client.List(ctx, o)
		if err != nil {
			return nil, err // l may be a nil pointer, which as an interface is not nil
		}
		return l, nil
	}
	watch := func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		if tweak != nil {
			tweak(&o)
		}
		return client.Watch(ctx, o)
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc:  list,
		WatchFuncWithContext: watch,
	}, clientset)
}
