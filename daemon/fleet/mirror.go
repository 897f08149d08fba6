package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source/kube"
	"github.com/mirador-k8s/mirador/store"
)

// mirror is an informer that runs, within the limits of its cluster.
type mirror[T any] struct {
	*informer.Informer[T]
	gauge *gauge
	// stop ends it and does not wait. over is closed then, also where the mirror was ended
	// because it was too large.
	stop func()
	over chan struct{}
}

// ended reports whether it was ended.
func (m *mirror[T]) ended() bool {
	select {
	case <-m.over:
		return true
	default:
		return false
	}
}

// opener makes a source of one form.
type opener[T any] = func(*rest.Config, schema.GroupVersionResource, *kube.Options) (*kube.Source[T], error)

// openMirror makes an informer of a resource, prepares it and has it run.
func openMirror[T any](l *link, gvr schema.GroupVersionResource, form string, open opener[T],
	prepare func(*informer.Informer[T]) error) (*mirror[T], error) {
	name := mirrorName(l.cluster, gvr, form)
	src, err := open(l.plain, gvr,
		&kube.Options{Cluster: l.cluster, HTTPClient: l.client, UserAgent: userAgent, Buffers: l.buffers})
	if err != nil {
		return nil, err
	}
	bounded := &limited[T]{Source: src, of: l.ledger}
	inf, err := informer.New(bounded, &informer.Options[T]{
		Name: name, Layout: store.Packed, HistoryBytes: l.options.HistoryBytes, HistoryAge: l.options.HistoryAge,
		Logger: l.log, OnProblem: l.problem,
	})
	if err == nil {
		err = prepare(inf)
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(l.crew.context())
	m := &mirror[T]{Informer: inf, over: make(chan struct{})}
	m.stop = sync.OnceFunc(func() { close(m.over); cancel() })
	m.gauge = l.ledger.open(name, m.stop)
	bounded.gauge, bounded.held, bounded.shows = m.gauge, holds(inf), inf.HasSynced
	l.crew.run(func() error {
		defer m.gauge.close()
		err := inf.Run(ctx)
		return errors.Join(err, inf.Release()) // whoever still has the resource shall not keep its memory
	})
	return m, nil
}

// mirrorName names an informer in logs and metrics, as in "eu/deployments.v1.apps(raw)".
func mirrorName(cluster string, gvr schema.GroupVersionResource, form string) string {
	return fmt.Sprintf("%s/%s(%s)", cluster, strings.TrimSuffix(gvr.Resource+"."+gvr.Version+"."+gvr.Group, "."), form)
}

// forget drops what is remembered of resources that the cluster serves no more.
func (l *link) forget(served map[schema.GroupVersionResource]metav1.APIResource) {
	names := map[string]bool{}
	for gvr := range served {
		names[mirrorName(l.cluster, gvr, "raw")] = true
		names[mirrorName(l.cluster, gvr, "metadata")] = true
	}
	l.ledger.forget(func(name string) bool { return names[name] })
}

// crew are the informers of a cluster that run. Its cluster's goroutine alone starts,
// runs and stops.
type crew struct {
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu    sync.Mutex
	stuck []error // what did not end as it should
}

// start lets informers run until ctx ends.
func (c *crew) start(ctx context.Context) { c.ctx, c.cancel = context.WithCancel(ctx) }

func (c *crew) context() context.Context { return c.ctx }

func (c *crew) run(f func() error) {
	c.work.Go(func() {
		if err := f(); err != nil {
			c.mu.Lock()
			c.stuck = append(c.stuck, err)
			c.mu.Unlock()
		}
	})
}

// stop ends all of them, those that were ended before included, and waits for them: an
// informer waits for its handlers for a while only. The error names those that still run.
func (c *crew) stop() error {
	if c.cancel == nil {
		return nil
	}
	c.cancel()
	c.work.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.stuck...)
}
