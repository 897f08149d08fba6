package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source/kube"
	"github.com/mirador-k8s/mirador/store"
)

// mirror is a running informer within the limits of its cluster.
type mirror[T any] struct {
	*informer.Informer[T]
	usage *mirrorUsage
	// stop ends the mirror and closes over; it does not wait. It is also called if the mirror
	// exceeds a limit.
	stop func()
	over chan struct{}
}

// ended reports whether stop was called.
func (m *mirror[T]) ended() bool {
	select {
	case <-m.over:
		return true
	default:
		return false
	}
}

// opener returns a source of one form.
type opener[T any] = func(*rest.Config, schema.GroupVersionResource, *kube.Options) (*kube.Source[T], error)

// openMirror makes an informer of a resource with the given options, calls prepare unless it is nil, and runs the
// informer.
func openMirror[T any](l *clusterClient, gvr schema.GroupVersionResource, form string, open opener[T],
	opts *informer.Options[T], prepare func(*informer.Informer[T]) error) (*mirror[T], error) {
	name := mirrorName(l.cluster, gvr, form)
	src, err := open(l.plain, gvr,
		&kube.Options{Cluster: l.cluster, HTTPClient: l.client, UserAgent: userAgent, Buffers: l.buffers})
	if err != nil {
		return nil, err
	}
	bounded := &limited[T]{Source: src, gate: l.gate}
	opts.Name, opts.Layout, opts.OnProblem = name, store.Packed, l.onProblem
	opts.Logger = slog.New(requestsAtDebug{l.log.Handler()})
	opts.Admit = l.lists.admit
	opts.ReadCache = -1 // the daemon reads encoded objects, which are unpacked each time
	opts.HistoryBytes, opts.HistoryAge = l.options.HistoryBytes, l.options.HistoryAge
	inf, err := informer.New(bounded, opts)
	if err == nil && prepare != nil {
		err = prepare(inf)
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(l.mirrors.context())
	m := &mirror[T]{Informer: inf, over: make(chan struct{})}
	m.stop = sync.OnceFunc(func() { close(m.over); cancel() })
	m.usage = l.usage.open(name, m.stop)
	bounded.usage, bounded.held, bounded.visible = m.usage, holds(inf), inf.HasSynced
	l.mirrors.run(func() error {
		defer m.usage.close()
		err := inf.Run(ctx)
		return errors.Join(err, inf.Release()) // a reference to the resource must not keep its memory
	})
	return m, nil
}

// mirrorName returns the name of an informer in logs and metrics, such as
// "eu/deployments.v1.apps(raw)".
func mirrorName(cluster string, gvr schema.GroupVersionResource, form string) string {
	return fmt.Sprintf("%s/%s(%s)", cluster, strings.TrimSuffix(gvr.Resource+"."+gvr.Version+"."+gvr.Group, "."), form)
}

// forget removes the limit history of resources that the cluster no longer serves.
func (l *clusterClient) forget(served map[schema.GroupVersionResource]metav1.APIResource) {
	names := map[string]bool{}
	for gvr := range served {
		names[mirrorName(l.cluster, gvr, "raw")] = true
		names[mirrorName(l.cluster, gvr, "metadata")] = true
	}
	l.usage.forget(func(name string) bool { return names[name] })
}

// mirrorGroup has the running informers of a cluster. Only the cluster's goroutine calls start,
// run and stop.
type mirrorGroup struct {
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu       sync.Mutex
	stopErrs []error // of informers that did not stop in time
}

// start sets the context of the informers.
func (g *mirrorGroup) start(ctx context.Context) { g.ctx, g.cancel = context.WithCancel(ctx) }

func (g *mirrorGroup) context() context.Context { return g.ctx }

func (g *mirrorGroup) run(f func() error) {
	g.work.Go(func() {
		if err := f(); err != nil {
			g.mu.Lock()
			g.stopErrs = append(g.stopErrs, err)
			g.mu.Unlock()
		}
	})
}

// stop ends all informers and waits for them, including those that were ended before. An
// informer waits for its handlers for a bounded time. The error names those that still run.
func (g *mirrorGroup) stop() error {
	if g.cancel == nil {
		return nil
	}
	g.cancel()
	g.work.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return errors.Join(g.stopErrs...)
}
