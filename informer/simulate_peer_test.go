package informer_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/object"
)

// peer is client-go's own shared informer on the simulated connection. It cannot be executed in steps and runs on its
// own goroutines.
type peer struct {
	setup  informertest.SimSetup
	client kubernetes.Interface

	mu       sync.Mutex
	informer cache.SharedIndexInformer
	cancel   context.CancelFunc
	done     chan struct{}
	counts   map[string]uint64
}

func newPeer(setup informertest.SimSetup) (informertest.Simulated, error) {
	cfg := rest.CopyConfig(setup.Config)
	if !setup.JSON {
		cfg.ContentType = runtime.ContentTypeProtobuf
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	p := &peer{setup: setup, client: client, counts: map[string]uint64{}}
	return p, p.build()
}

// build makes an informer; client-go's runs once, so every run has its own.
func (p *peer) build() error {
	indexers := cache.Indexers{}
	for name, values := range p.setup.Indexes {
		indexers[name] = func(o any) (out []string, err error) {
			defer func() { // an index function that fails or panics ends the process
				if r := recover(); r != nil {
					out, err = nil, nil
				}
			}()
			if out, err = values(o.(*corev1.Pod)); err != nil {
				return nil, nil
			}
			return out, nil
		}
	}
	i := coreinformers.NewPodInformer(p.client, "", 40*time.Second, indexers)
	err := i.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		p.mu.Lock()
		p.counts["watch"]++
		p.mu.Unlock()
		p.setup.OnProblem("watch", "", err, 0)
	})
	if p.setup.Transform != nil {
		err = errors.Join(err, i.SetTransform(func(o any) (any, error) {
			pod, ok := o.(*corev1.Pod)
			if !ok {
				return o, nil
			}
			return p.setup.Transform(pod)
		}))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.informer, p.cancel, p.done = i, nil, nil
	return err
}

func (p *peer) now() cache.SharedIndexInformer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.informer
}

// Start runs the informer. A state to start from is not offered: it lists.
func (p *peer) Start(*informertest.SimState) error {
	p.mu.Lock()
	used := p.done != nil
	p.mu.Unlock()
	if used {
		if err := p.build(); err != nil {
			return err
		}
	}
	// It logs every failure, and there are thousands.
	ctx, cancel := context.WithCancel(logr.NewContext(context.Background(), logr.Discard()))
	p.mu.Lock()
	p.cancel, p.done = cancel, make(chan struct{})
	i, done := p.informer, p.done
	p.mu.Unlock()
	go func() {
		defer close(done)
		i.RunWithContext(ctx)
	}()
	return nil
}

func (p *peer) Stop(context.Context) error {
	p.mu.Lock()
	cancel, done := p.cancel, p.done
	p.mu.Unlock()
	cancel()
	<-done
	return nil
}

func (p *peer) Handle(h informertest.SimHandler, handle func(informertest.Event)) (informertest.SimSubscription,
	error) {
	i := p.now()
	reg, err := i.AddEventHandlerWithResyncPeriod(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) {
			pod := o.(*corev1.Pod)
			handle(informertest.Event{Type: object.Added, Key: podKey(pod), New: pod, Initial: initial})
		},
		UpdateFunc: func(old, now any) {
			was, pod := old.(*corev1.Pod), now.(*corev1.Pod)
			e := informertest.Event{Type: object.Updated, Key: podKey(pod), Old: was, New: pod}
			if was.ResourceVersion == pod.ResourceVersion { // a resync, or an object listed again
				e.Type = object.Resynced
			}
			handle(e)
		},
		DeleteFunc: func(o any) {
			e := informertest.Event{Type: object.Deleted}
			if unseen, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o, e.Missed = unseen.Obj, true
			}
			e.Old = o.(*corev1.Pod)
			e.Key, e.Version = podKey(e.Old), object.Version(e.Old.ResourceVersion)
			handle(e)
		},
	}, h.Resync)
	if err != nil {
		return nil, err
	}
	return &peerSub{i, reg}, nil
}

func podKey(p *corev1.Pod) object.Key { return object.NewKey(p.Namespace, p.Name) }

type peerSub struct {
	informer cache.SharedIndexInformer
	reg      cache.ResourceEventHandlerRegistration
}

func (s *peerSub) HasSynced() bool        { return s.reg.HasSynced() }
func (s *peerSub) Remove()                { s.informer.RemoveEventHandler(s.reg) }
func (s *peerSub) Backlog() (int, uint64) { return 0, 0 }

func (p *peer) Synced() bool { return p.now().HasSynced() }

func (p *peer) Health() informertest.SimHealth {
	out := informertest.SimHealth{}
	out.Version = object.Version(p.now().LastSyncResourceVersion())
	return out
}

// Snapshot copies the store, because client-go has no snapshots.
func (p *peer) Snapshot() informertest.SimSnapshot {
	s := &peerSnapshot{informer: p.now(), pods: map[object.Key]*corev1.Pod{}}
	for _, o := range s.informer.GetStore().List() {
		s.pods[podKey(o.(*corev1.Pod))] = o.(*corev1.Pod)
	}
	return s
}

type peerSnapshot struct {
	informer cache.SharedIndexInformer
	pods     map[object.Key]*corev1.Pod
}

func (s *peerSnapshot) Version() object.Version {
	return object.Version(s.informer.LastSyncResourceVersion())
}
func (s *peerSnapshot) Len() int { return len(s.pods) }
func (s *peerSnapshot) Get(k object.Key) (*corev1.Pod, bool) {
	p, ok := s.pods[k]
	return p, ok
}
func (s *peerSnapshot) All() iter.Seq2[object.Key, *corev1.Pod] {
	return func(yield func(object.Key, *corev1.Pod) bool) {
		for k, p := range s.pods {
			if !yield(k, p) {
				return
			}
		}
	}
}
func (s *peerSnapshot) ByIndex(index, value string) iter.Seq[*corev1.Pod] {
	all, err := s.informer.GetIndexer().ByIndex(index, value)
	if err != nil {
		return func(func(*corev1.Pod) bool) {}
	}
	return func(yield func(*corev1.Pod) bool) {
		for _, o := range all {
			if !yield(o.(*corev1.Pod)) {
				return
			}
		}
	}
}

// client-go's informer gets through the same seeds as ours. It is not held to our promises; make simulate-peer prints
// how often it breaks each of them.
func TestSimulationOfClientGo(t *testing.T) {
	opts := simOptions(20)
	sum := informertest.Survey(t, newPeer, opts)
	if sum.Seeds != opts.Seeds {
		t.Errorf("%d of %d seeds ended", sum.Seeds, opts.Seeds)
	}
	if os.Getenv("SIM_PEER") == "" {
		return
	}
	ours := informertest.Survey(t, newSimulated, opts)
	fmt.Print(informertest.SimTable(ours, sum))
}
