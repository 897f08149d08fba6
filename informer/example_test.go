package informer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/source/kube"
)

func newPod(name, app string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
		Labels: map[string]string{"app": app}}}
}

func Example() {
	server := informertest.NewServer() // stands for a cluster
	config, stop := informertest.Pipe(server)
	defer stop()
	server.Create(newPod("db-0", "mysql"))
	server.Create(newPod("db-1", "mysql"))
	server.Create(newPod("web-0", "nginx"))

	src, err := kube.Typed[*corev1.Pod](config, &kube.Options{Namespace: "default"})
	if err != nil {
		fmt.Println(err)
		return
	}
	pods, err := informer.New(src, &informer.Options[*corev1.Pod]{Indexes: informer.Indexes[*corev1.Pod]{
		"app": func(p *corev1.Pod) ([]string, error) { return []string{p.Labels["app"]}, nil },
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- pods.Run(ctx) }()
	if err := pods.WaitSynced(ctx); err != nil {
		fmt.Println(err)
		return
	}
	snap := pods.Snapshot() // it does not change any more
	mysql := 0
	for range snap.ByIndex("app", "mysql") {
		mysql++
	}
	fmt.Println(snap.Len(), "pods,", mysql, "of mysql")

	written, _ := server.Create(newPod("db-2", "mysql"))
	if err := pods.WaitVersion(ctx, written); err != nil { // so that reads see the write
		fmt.Println(err)
		return
	}
	p, ok := pods.Get("default/db-2")
	fmt.Println(p.Name, ok, p.Kind)
	fmt.Println("the snapshot still has", snap.Len())
	cancel()
	fmt.Println(<-ended)
	// Output:
	// 3 pods, 2 of mysql
	// db-2 true Pod
	// the snapshot still has 3
	// <nil>
}

func ExampleInformer_Subscribe() {
	server := informertest.NewServer()
	config, stop := informertest.Pipe(server)
	defer stop()
	server.Create(newPod("a", "x"))

	src, _ := kube.Typed[*corev1.Pod](config, nil)
	pods, _ := informer.New(src, nil)
	lines := make(chan string)
	sub, _ := pods.Subscribe(informer.Funcs[*corev1.Pod]{
		OnAdd:    func(p *corev1.Pod, _ bool) { lines <- "added " + p.Name },
		OnUpdate: func(old, p *corev1.Pod) { lines <- "changed " + p.Labels["app"] + ", was " + old.Labels["app"] },
		OnDelete: func(last *corev1.Pod, _ bool) { lines <- "deleted " + last.Name },
	}, &informer.HandlerOptions{Name: "printer"})

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- pods.Run(ctx) }()
	fmt.Println(<-lines)
	<-sub.Synced()
	server.Update(newPod("a", "y"))
	fmt.Println(<-lines)
	server.Delete(newPod("a", "y"))
	fmt.Println(<-lines)
	cancel()
	<-ended
	// Output:
	// added a
	// changed y, was x
	// deleted a
}

// An informer saves its state when it ends, and the next one starts from it: it is synced at once, and asks the cluster
// only for what has changed since.
func ExampleInformer_State() {
	server := informertest.NewServer() // stands for a cluster
	config, stop := informertest.Pipe(server)
	defer stop()
	server.Create(newPod("db-0", "mysql"))

	run := func(opts *informer.Options[*corev1.Pod], do func(pods *informer.Informer[*corev1.Pod]) error) error {
		src, err := kube.Typed[*corev1.Pod](config, nil)
		if err != nil {
			return err
		}
		pods, err := informer.New(src, opts)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- pods.Run(ctx) }()
		err = errors.Join(pods.WaitSynced(ctx), do(pods))
		cancel()
		return errors.Join(err, <-ended)
	}

	var file bytes.Buffer
	err := run(nil, func(pods *informer.Informer[*corev1.Pod]) error {
		state, err := pods.State()
		if err != nil {
			return err
		}
		return state.Write(&file, nil)
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	written, _ := server.Create(newPod("db-1", "mysql"))
	state, err := informer.ReadState[*corev1.Pod](&file, nil)
	if err != nil {
		fmt.Println(err) // without a state, the informer lists
	}
	err = run(&informer.Options[*corev1.Pod]{StartFrom: state}, func(pods *informer.Informer[*corev1.Pod]) error {
		if err := pods.WaitVersion(context.Background(), written); err != nil {
			return err
		}
		fmt.Println(pods.Snapshot().Len(), "pods,", pods.Health().Reflector.Lists, "lists")
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: 2 pods, 0 lists
}
