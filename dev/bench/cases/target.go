package cases

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/dev/bench/feed"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// target is an informer over pods that were made beforehand, of whichever side.
type target interface {
	// handle adds a handler that is given the new state of each update.
	handle(update func(*corev1.Pod)) error
	// join adds a handler that is given each object that is there.
	join(add func(*corev1.Pod)) error
	// run starts it and waits until it has synced, and its handlers with it.
	run(ctx context.Context) (stop func(), err error)
}

// side names an informer and opens it.
type side struct {
	name   string
	layout string
	open   func(lw *feed.ListWatch) (target, error)
}

// sides are client-go's, ours through compat and ours in the typed API: next to each other what is compared,
// because the machine is another one some minutes later.
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

// factoryIndexers is the one index that client-go's factories give an informer.
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
	}, &informer.HandlerOptions{MaxBacklog: -1}) // client-go keeps every event
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
	stop := func() { _ = r.stop() } // a stop that fails has no part in the figures
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
