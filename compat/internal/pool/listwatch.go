package pool

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// Client is what client-go's clients of one resource have in common.
type Client[List runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (List, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// ListWatch lists and watches through a client. tweak, if it is not nil, changes the
// options of each request. whole is the client that says whether it can stream its
// state: a clientset says nothing, which means yes, and a fake one says no.
func ListWatch[List runtime.Object](whole any, client Client[List],
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
	follow := func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		if tweak != nil {
			tweak(&o)
		}
		return client.Watch(ctx, o)
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc:  list,
		WatchFuncWithContext: follow,
	}, whole)
}
