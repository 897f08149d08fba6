package kube_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/source/kube"
)

// apiServer stands in for a cluster, so that the examples run anywhere.
func apiServer() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "true" {
			fmt.Fprintln(w,
				`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"web","name":"front",`+
					`"resourceVersion":"7"}}}`)
			fmt.Fprintln(w,
				`{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9",`+
					`"annotations":{"k8s.io/initial-events-end":"true"}}}}`)
			fmt.Fprintln(w,
				`{"type":"DELETED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"web","name":"front",`+
					`"resourceVersion":"12"}}}`)
			return
		}
		fmt.Fprint(w,
			`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},`+
				`"items":[{"metadata":{"namespace":"web","name":"front","resourceVersion":"7"},"spec":{"nodeName":"n1"}}]}`)
	}))
}

func ExampleTyped() {
	server := apiServer()
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()

	pods, err := kube.Typed[*corev1.Pod](&rest.Config{Host: server.URL},
		&kube.Options{Namespace: "web", HTTPClient: http.DefaultClient})
	if err != nil {
		fmt.Println(err)
		return
	}
	list, err := pods.List(context.Background(), source.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer list.Close()
	var batch []object.Item[*corev1.Pod]
	for {
		batch, err = list.Read(batch[:0])
		if err == io.EOF {
			break
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, item := range batch {
			pod := item.Value
			fmt.Println(pod.APIVersion, pod.Kind, item.Key, "on", pod.Spec.NodeName)
		}
	}
	fmt.Println("as of version", list.Version())
	// Output:
	// v1 Pod web/front on n1
	// as of version 9
}

func ExampleRaw() {
	server := apiServer()
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()

	pods, err := kube.Raw(&rest.Config{Host: server.URL}, schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		&kube.Options{HTTPClient: http.DefaultClient})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The state and then its changes, over one request.
	watch, err := pods.Watch(context.Background(), source.WatchOptions{InitialState: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer watch.Close()
	var changes []source.Change[*kube.RawObject]
	for err == nil {
		changes, err = watch.Read(changes)
	}
	for _, c := range changes {
		switch c.Type {
		case object.Added, object.Updated:
			fmt.Println(c.Type, c.Item.Key, string(c.Item.Encoded))
		case object.Deleted:
			fmt.Println(c.Type, c.Item.Key, "at", c.Item.Version)
		case object.Bookmark:
			fmt.Println("the state is complete:", c.InitialEnd, "at", c.Item.Version)
		}
	}
	fmt.Println(err)
	// Output:
	// Added web/front {"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"web","name":"front","resourceVersion":"7"}}
	// the state is complete: true at 9
	// Deleted web/front at 12
	// EOF
}
