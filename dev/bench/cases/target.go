package cases

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/dev/bench/feed"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// target is an informer of either side, over pods that were made beforehand.
type target interface {
	// handle adds a handler that receives the new state of each update.
	handle(update func(*corev1.Pod)) error
	// join adds a handler that receives each existing object.
	join(add func(*corev1.Pod)) error
	// run starts the informer and waits until it and its handlers have synced.
	run(ctx context.Context) (stop func(), err error)
}

// side names an informer and opens it.
type side struct {
	name   string
	layout string
	open   func(lw *feed.ListWatch) (target, error)
}

// sides returns client-go's informer, ours through compat and ours through the typed API. Those that are compared are
// next to each other, because the speed of the machine changes over minutes.
func sides() []side {
	all := []side{{peer, "", func(lw *feed.ListWatch) (target, error) {
		return &shared{SharedIndexInformer: clientgo.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, factoryIndexers())}, nil
	}}}
	for _, l := range layouts {
		all = append(all, side{compat + " " + l.String(), l.String(), func(lw *feed.ListWatch) (target, error) {
			return &shared{SharedIndexInformer: cache.With(cache.Options{Layout: l}).NewSharedIndexInformer(lw, &corev1.Pod{},
				0, factoryIndexers())}, nil
		}}, side{typed + " " + l.String(), l.String(), func(lw *feed.ListWatch) (target, error) {
			inf, err := informer.New(&feed.Source{ListWatch: lw, Item: podItem}, &informer.Options[*corev1.Pod]{Layout: l,
				Indexes: informer.Indexes[*corev1.Pod]{byNamespace: store.ByNamespace[*corev1.Pod]()}})
			return &own{Informer: inf}, err
		}})
	}
	return all
}

// session is a running informer whose watch the driver feeds.
type session struct {
	target
	lw     *feed.ListWatch
	events chan<- watch.Event
	stop   func()
}

// start opens the side's informer over pods, adds the handlers, and waits until the informer and the handlers have
// synced and the watch is open.
func (s side) start(ctx context.Context, pods []*corev1.Pod, handlers ...func(*corev1.Pod)) (*session, error) {
	lw := feed.NewListWatch(pods, latest)
	t, err := s.open(lw)
	if err != nil {
		return nil, err
	}
	for _, h := range handlers {
		if err := t.handle(h); err != nil {
			return nil, err
		}
	}
	stop, err := t.run(ctx)
	if err != nil {
		return nil, err
	}
	run := &session{target: t, lw: lw, stop: stop}
	if err := run.nextWatch(ctx); err != nil {
		stop()
		return nil, err
	}
	return run, nil
}

// nextWatch waits until the informer opens its next watch.
func (s *session) nextWatch(ctx context.Context) (err error) {
	s.events, err = s.lw.Events(ctx)
	return err
}

// update sends a changed pod.
func (s *session) update(p *corev1.Pod) { s.events <- watch.Event{Type: watch.Modified, Object: p} }

// factoryIndexers returns the one index that client-go's factories give an informer.
func factoryIndexers() clientgo.Indexers {
	return clientgo.Indexers{byNamespace: clientgo.MetaNamespaceIndexFunc}
}

// shared is an informer of client-go's interface.
type shared struct {
	clientgo.SharedIndexInformer
	handlers []clientgo.ResourceEventHandlerRegistration
}

func (s *shared) handle(update func(*corev1.Pod)) error {
	h, err := s.AddEventHandler(clientgo.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, obj any) { update(obj.(*corev1.Pod)) },
	})
	s.handlers = append(s.handlers, h)
	return err
}

func (s *shared) join(add func(*corev1.Pod)) error {
	_, err := s.AddEventHandler(clientgo.ResourceEventHandlerFuncs{AddFunc: func(obj any) { add(obj.(*corev1.Pod)) }})
	return err
}

func (s *shared) run(ctx context.Context) (func(), error) {
	stop, err := runShared(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, h := range s.handlers {
		for !h.HasSynced() {
			if ctx.Err() != nil {
				stop()
				return nil, fmt.Errorf("a handler has not synced: %w", ctx.Err())
			}
			time.Sleep(2 * time.Millisecond)
		}
	}
	return stop, nil
}

// own is an informer of ours.
type own struct {
	*informer.Informer[*corev1.Pod]
	handlers []<-chan struct{} // closed when they have synced
}

func (o *own) handle(update func(*corev1.Pod)) error {
	h, err := o.SubscribeEntries(func(e *object.Event[*store.Entry[*corev1.Pod]]) {
		if e.Type == object.Updated {
			update(e.New.Object())
		}
	}, &informer.HandlerOptions{MaxBacklog: -1}) // unbounded, as in client-go
	if err == nil {
		o.handlers = append(o.handlers, h.Synced())
	}
	return err
}

func (o *own) join(add func(*corev1.Pod)) error {
	_, err := o.SubscribeEntries(func(e *object.Event[*store.Entry[*corev1.Pod]]) {
		if e.Type == object.Added {
			add(e.New.Object())
		}
	}, &informer.HandlerOptions{MaxBacklog: -1})
	return err
}

func (o *own) run(ctx context.Context) (func(), error) {
	r, err := run(ctx, o.Informer)
	if err != nil {
		return nil, err
	}
	stop := func() { _ = r.stop() } // a failed stop does not affect the figures
	for _, synced := range o.handlers {
		select {
		case <-synced:
		case <-ctx.Done():
			stop()
			return nil, fmt.Errorf("a handler has not synced: %w", ctx.Err())
		}
	}
	return stop, nil
}
