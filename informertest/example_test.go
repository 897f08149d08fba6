package informertest_test

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/mirador-k8s/mirador/informertest"
)

func Example() {
	s := informertest.NewServer()
	cfg, stop := informertest.Pipe(s)
	defer stop()

	version, err := s.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "settings"}})
	fmt.Println(version, err)

	client := kubernetes.NewForConfigOrDie(cfg)
	list, err := client.CoreV1().ConfigMaps("web").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(list.Items), list.Items[0].Name, list.ResourceVersion)
	// Output:
	// 2 <nil>
	// 1 settings 2
}

func ExampleServer_Inject() {
	s := informertest.NewServer()
	cfg, stop := informertest.Pipe(s)
	defer stop()
	nodes := kubernetes.NewForConfigOrDie(cfg).CoreV1().Nodes()

	s.Inject(informertest.Fault{Verbs: []string{"list"}, Resource: "nodes", Times: 1, Code: http.StatusForbidden})
	for range 2 {
		_, err := nodes.List(context.Background(), metav1.ListOptions{})
		fmt.Println("denied:", apierrors.IsForbidden(err))
	}
	for _, r := range s.Requests() {
		fmt.Println(r.Verb, r.Resource.Resource, r.Code)
	}
	// Output:
	// denied: true
	// denied: false
	// list nodes 403
	// list nodes 200
}

func ExampleServer_Compact() {
	s := informertest.NewServer()
	cfg, stop := informertest.Pipe(s)
	defer stop()
	for _, name := range []string{"a", "b", "c"} {
		if _, err := s.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("compacted:", s.Compact(s.Version()))

	nodes := kubernetes.NewForConfigOrDie(cfg).CoreV1().Nodes()
	w, err := nodes.Watch(context.Background(), metav1.ListOptions{ResourceVersion: "1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Stop()
	e := <-w.ResultChan()
	fmt.Println(e.Type, e.Object.(*metav1.Status).Message)
	// Output:
	// compacted: <nil>
	// ERROR too old resource version: 1 (4)
}

func ExampleServer_Register() {
	s := informertest.NewServer()
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	fmt.Println(s.Register(widgets, "Widget", true))
	fmt.Println(s.Create(widget("first", 1)))
	fmt.Println(s.Unregister(widgets))
	_, err := s.List(widgets)
	fmt.Println(err)
	// Output:
	// <nil>
	// 2 <nil>
	// <nil>
	// listing example.com/v1, Resource=widgets: the resource is not served; register it first
}
