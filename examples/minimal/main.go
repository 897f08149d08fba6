// Command minimal mirrors the pods of a cluster, prints what changes, and reads them by an index. README.md shows it.
package main

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source/kube"
)

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", clientcmd.NewDefaultPathOptions().GetDefaultFilename())
	if err == nil {
		err = run(context.Background(), config)
	}
	log.Fatal(err)
}

func run(ctx context.Context, config *rest.Config) error {
	src, err := kube.Typed[*corev1.Pod](config, nil)
	if err != nil {
		return err
	}
	pods, err := informer.New(src, &informer.Options[*corev1.Pod]{Indexes: informer.Indexes[*corev1.Pod]{
		"node": func(p *corev1.Pod) ([]string, error) { return []string{p.Spec.NodeName}, nil },
	}})
	if err != nil {
		return err
	}
	_, err = pods.Subscribe(informer.Funcs[*corev1.Pod]{
		OnAdd:    func(p *corev1.Pod, _ bool) { fmt.Println("added", p.Name) },
		OnUpdate: func(old, p *corev1.Pod) { fmt.Println("updated", p.Name, old.Status.Phase, p.Status.Phase) },
		OnDelete: func(last *corev1.Pod, _ bool) { fmt.Println("deleted", last.Name) },
	}, nil)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- pods.Run(ctx) }()
	if err := pods.WaitSynced(ctx); err != nil {
		return err
	}
	for p := range pods.Snapshot().ByIndex("node", "node-1") { // objects, indexes and version of one moment
		fmt.Println("on node-1:", p.Namespace, p.Name)
	}
	return <-ended
}
