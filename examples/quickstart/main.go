// Command quickstart watches the pods of a cluster with an informer and prints
// a line when a pod appears, changes its phase or is deleted.
//
//	quickstart                        # the cluster of $KUBECONFIG, or of ~/.kube/config
//	quickstart --namespace web        # one namespace
//
// "make quickstart" runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source/kube"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "`file` to read instead of $KUBECONFIG or ~/.kube/config")
	namespace := flag.String("namespace", "", "only this `namespace`; all if empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *kubeconfig, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, kubeconfig, namespace string) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("no cluster to look at; start one with \"make quickstart\", or set KUBECONFIG: %w", err)
	}
	src, err := kube.Typed[*corev1.Pod](cfg, &kube.Options{Namespace: namespace})
	if err != nil {
		return err
	}
	pods, err := informer.New(src, &informer.Options[*corev1.Pod]{
		Name:   "pods",
		Logger: slog.New(slog.NewTextHandler(out, nil)),
	})
	if err != nil {
		return err
	}
	p := &printer{out: out, start: time.Now()}
	if _, err := pods.Subscribe(informer.HandlerFunc[*corev1.Pod](p.handle),
		&informer.HandlerOptions{Name: "printer"}); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- pods.Run(ctx) }()
	if err := pods.WaitSynced(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return errors.Join(err, <-ended)
	}
	return <-ended
}

// printer prints a line for each event that changes a pod's phase.
type printer struct {
	out   io.Writer
	start time.Time
}

func (p *printer) handle(e object.Event[*corev1.Pod]) {
	switch e.Type {
	case object.Added:
		p.line("appears", "", phase(e.New), e.New)
	case object.Updated:
		if was, is := phase(e.Old), phase(e.New); was != is {
			p.line("changes", was, is, e.New)
		}
	case object.Deleted:
		p.line("is gone", phase(e.Old), "", e.Old)
	}
}

// phase returns a pod's phase, or Terminating once its deletion was requested.
func phase(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return "Terminating"
	}
	return string(pod.Status.Phase)
}

func (p *printer) line(what, was, is string, pod *corev1.Pod) {
	how := was + is
	if was != "" && is != "" {
		how = was + " -> " + is
	}
	where := ""
	if pod.Spec.NodeName != "" {
		where = " on " + pod.Spec.NodeName
	}
	fmt.Fprintf(p.out, "%6.1fs  %-8s %-24s %s/%s%s\n", time.Since(p.start).Seconds(), what, how,
		pod.Namespace, pod.Name, where)
}
