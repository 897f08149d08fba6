package kit_test

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/informertest/kit"
	"github.com/mirador-k8s/mirador/object"
)

// mutant is client-go's informer with one defect.
type mutant struct {
	kit.Subject
	versions func(map[object.Key]object.Version)
	get      func(*corev1.Pod, bool) (*corev1.Pod, bool)
	handler  func(name string, handle func(informertest.Event)) func(informertest.Event)
	synced   func() bool
	run      func(ctx context.Context)
	ended    func()
}

func (m *mutant) Versions() map[object.Key]object.Version {
	v := m.Subject.Versions()
	if m.versions != nil {
		m.versions(v)
	}
	return v
}

func (m *mutant) Get(key object.Key) (*corev1.Pod, bool) {
	p, ok := m.Subject.Get(key)
	if m.get != nil {
		return m.get(p, ok)
	}
	return p, ok
}

func (m *mutant) AddHandler(name string, handle func(informertest.Event)) (func() bool, error) {
	if m.handler != nil {
		handle = m.handler(name, handle)
	}
	synced, err := m.Subject.AddHandler(name, handle)
	if m.synced != nil {
		synced = m.synced
	}
	return synced, err
}

func (m *mutant) Run(ctx context.Context) error {
	if m.run != nil {
		go m.run(ctx)
	}
	err := m.Subject.Run(ctx)
	if m.ended != nil {
		m.ended()
	}
	return err
}

// mutants are subjects that break a promise which client-go keeps, with the cases that must detect it.
var mutants = map[string]struct {
	cases []string
	spoil func(m *mutant, setup *kit.Setup)
}{
	"forgets a pod": {
		[]string{"P1_StoreEqualsTheServerAfterRandomWrites", "P1_StoreEqualsTheServerAfterRandomFaults",
			"P1_StoreEqualsTheServerAfterARestore"},
		func(m *mutant, _ *kit.Setup) {
			m.versions = func(v map[object.Key]object.Version) { delete(v, "default/pod-0001") }
		}},
	"delivers an old state again": {
		[]string{"P2_StatesOfAKeyNeverGoBack"},
		func(m *mutant, _ *kit.Setup) {
			m.handler = func(_ string, handle func(informertest.Event)) func(informertest.Event) {
				return func(e informertest.Event) {
					handle(e)
					if e.Type == object.Updated {
						e.Old, e.New = e.New, e.Old
						handle(e)
					}
				}
			}
		}},
	"swaps events for one handler": {
		[]string{"P3_AllHandlersSeeOneOrder"},
		func(m *mutant, _ *kit.Setup) {
			m.handler = func(name string, handle func(informertest.Event)) func(informertest.Event) {
				var kept *informertest.Event
				return func(e informertest.Event) {
					if name != "two" {
						handle(e)
					} else if kept == nil {
						kept = &e
					} else {
						handle(e)
						handle(*kept)
						kept = nil
					}
				}
			}
		}},
	"stores after it delivers": {
		[]string{"P4_StoreIsThereBeforeTheHandler"},
		func(m *mutant, _ *kit.Setup) {
			m.get = func(*corev1.Pod, bool) (*corev1.Pod, bool) { return nil, false }
		}},
	"reports handlers as synced immediately": {
		[]string{"P5_InitialStateIsDeliveredBeforeSynced", "P5_LateHandlerGetsTheStateBeforeSynced"},
		func(m *mutant, _ *kit.Setup) { m.synced = func() bool { return true } }},
	"loses deletes": {
		[]string{"P6_DeleteMissedDuringGapIsAnnounced"},
		func(m *mutant, _ *kit.Setup) {
			m.handler = func(_ string, handle func(informertest.Event)) func(informertest.Event) {
				return func(e informertest.Event) {
					if e.Type != object.Deleted {
						handle(e)
					}
				}
			}
		}},
	"lets one handler run at a time": {
		[]string{"P7_BlockedHandlerDelaysNoOther"},
		func(m *mutant, _ *kit.Setup) {
			turn := make(chan struct{}, 1)
			m.handler = func(_ string, handle func(informertest.Event)) func(informertest.Event) {
				return func(e informertest.Event) {
					turn <- struct{}{}
					defer func() { <-turn }()
					handle(e)
				}
			}
		}},
	"delivers events after its end": {
		[]string{"P9_NothingIsToldAfterRunHasReturned"},
		func(m *mutant, _ *kit.Setup) {
			var last func(informertest.Event)
			m.handler = func(_ string, handle func(informertest.Event)) func(informertest.Event) {
				last = handle
				return handle
			}
			m.ended = func() {
				time.AfterFunc(time.Minute, func() { last(informertest.Event{Type: object.Deleted, Key: "default/pod-0002"}) })
			}
		}},
	"sends a request every second": {
		[]string{"P11_NoStormWhenTheServerFails", "P11_NoStormWhenTheServerIsUnavailable", "P11_NoStormWhenTheServerIsBusy",
			"P11_NoStormWhenAccessIsDenied", "P11_NoStormWhenBodiesAreCutShort", "P11_NoStormWhenEveryFrameIsGarbage",
			"P11_NoStormWhenWatchesCloseAtOnce"},
		func(m *mutant, setup *kit.Setup) {
			pods := kubernetes.NewForConfigOrDie(setup.Config).CoreV1().Pods("")
			m.run = func(ctx context.Context) {
				for ctx.Err() == nil {
					pods.List(ctx, metav1.ListOptions{})
					select {
					case <-time.After(time.Second):
					case <-ctx.Done():
					}
				}
			}
		}},
	"keeps everything twice until it has synced": {
		[]string{"P16_WatchedStateIsNotHeldTwice"},
		func(m *mutant, setup *kit.Setup) {
			var mu sync.Mutex
			var copies [][]byte
			setup.Transform = func(p *corev1.Pod) (*corev1.Pod, error) {
				mu.Lock()
				defer mu.Unlock()
				copies = append(copies, []byte(p.Annotations["filler"]))
				return p, nil
			}
			m.versions = func(map[object.Key]object.Version) {
				mu.Lock()
				defer mu.Unlock()
				copies = nil
			}
		}},
	"stores nothing": {
		[]string{"P11_RefusedInitialEventsAreListedInstead"},
		func(m *mutant, _ *kit.Setup) {
			m.versions = func(v map[object.Key]object.Version) { clear(v) }
		}},
}

func TestKitDetectsEveryMutant(t *testing.T) {
	for what, c := range mutants {
		for _, name := range c.cases {
			t.Run(what+"/"+name, func(t *testing.T) {
				failures := kit.RunCase(t, name, func(setup kit.Setup) (kit.Subject, error) {
					m := &mutant{}
					c.spoil(m, &setup)
					var err error
					m.Subject, err = newStock(setup)
					return m, err
				})
				if len(failures) == 0 {
					t.Errorf("an informer that %s passes", what)
				}
			})
		}
	}
}
