// Package factoryhttp is a factory built by hand: all users of the informer of pods get the same one. Its store is
// served over HTTP.
//
//	curl localhost:4000/
//
// Corrected in the original program: it gives the ListWatch client.RESTClient(), the client of discovery, which knows
// no API group, so that every list is answered 404; it must be client.CoreV1().RESTClient(). The factory's map has a
// lock, since the HTTP handler reads it concurrently. net/http replaces gin.
package factoryhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// MyFactory has one informer for each type of object.
type MyFactory struct {
	client    *kubernetes.Clientset
	namespace string

	mu        sync.Mutex
	informers map[reflect.Type]cache.SharedIndexInformer
}

// PodInformer returns the informer of pods, the same one each time.
func (f *MyFactory) PodInformer() cache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if informer, ok := f.informers[reflect.TypeOf(&v1.Pod{})]; ok {
		return informer
	}
	podLW := cache.NewListWatchFromClient(f.client.CoreV1().RESTClient(), "pods",
		f.namespace, fields.Everything())
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	informer := cache.NewSharedIndexInformer(podLW, &v1.Pod{}, 0, indexers)
	f.informers[reflect.TypeOf(&v1.Pod{})] = informer
	return informer
}

// NewMyFactory returns a factory without informers.
func NewMyFactory(client *kubernetes.Clientset, namespace string) *MyFactory {
	return &MyFactory{client: client, namespace: namespace, informers: make(map[reflect.Type]cache.SharedIndexInformer)}
}

// Start runs all informers until ctx ends; the function it returns waits for that.
func (f *MyFactory) Start(ctx context.Context) (wait func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var running sync.WaitGroup
	for _, i := range f.informers {
		running.Go(func() { i.Run(ctx.Done()) })
	}
	return running.Wait
}

// Compat is the original program, written with client-go's names.
func Compat(ctx context.Context, config *rest.Config, namespace string, listener net.Listener, out io.Writer) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	fact := NewMyFactory(client, namespace)
	_, err = fact.PodInformer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj interface{}) {
			fmt.Fprintln(out, obj.(*v1.Pod).Name)
		},
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	wait := fact.Start(ctx)
	defer wait()
	defer stop() // also if the endpoint failed

	return serve(ctx, listener, func() (any, error) { return fact.PodInformer().GetIndexer().List(), nil })
}

// serve answers every request with the result of list, until ctx ends.
func serve(ctx context.Context, listener net.Listener, list func() (any, error)) error {
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all, err := list()
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(all) // fails only if the client has disconnected
	})}
	closed := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { closed <- server.Close() })
	err := server.Serve(listener)
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-closed
}
