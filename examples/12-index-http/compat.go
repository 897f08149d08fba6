// Package indexhttp serves the index of an informer over HTTP: which pods have the label app=mysqltest? Requests do not
// reach the API server.
//
//	curl localhost:4000/
//
// Corrected in the original program: net/http replaces gin, an error of the index is returned to the client, and the
// names are sorted and have no namespace. The informer is that of 10-shared-informer with an Indexer as its store; with
// the original's lost updates the index would miss changed labels.
package indexhttp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/compat/cache"
	sharedinformer "github.com/mirador-k8s/mirador/examples/10-shared-informer"
	index "github.com/mirador-k8s/mirador/examples/11-index"
)

// Compat is the original program, written with client-go's names.
func Compat(ctx context.Context, config *rest.Config, namespace string, listener net.Listener, out io.Writer) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	indexers := cache.Indexers{"app": index.LabelsIndexFunc}
	myindex := cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, indexers)

	podLw := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace, fields.Everything())
	msi := sharedinformer.NewMySharedInformer(podLw, &v1.Pod{}, myindex)
	if err := msi.AddEventHandler(&sharedinformer.PodHandler{Out: out, Msg: "pod"}); err != nil {
		return err
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ret, err := myindex.IndexKeys("app", "mysqltest")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		answer(w, names(ret))
	})
	return beside(ctx, listener, handler, msi.Run)
}

// names returns the keys without their namespace, sorted.
func names(keys []string) []string {
	out := make([]string, len(keys))
	for i, key := range keys {
		_, out[i], _ = cache.SplitMetaNamespaceKey(key)
	}
	slices.Sort(out)
	return out
}

func answer(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(what) // fails only if the client has disconnected
}

// beside serves HTTP until run returns.
func beside(ctx context.Context, listener net.Listener, handler http.Handler, run func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{Handler: handler}
	var serving sync.WaitGroup
	var failed error
	serving.Go(func() {
		defer cancel() // without an endpoint the informer is useless
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			failed = err
		}
	})
	err := run(ctx)
	closed := server.Close()
	serving.Wait()
	return errors.Join(err, failed, closed)
}
