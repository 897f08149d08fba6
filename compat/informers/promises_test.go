package informers_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/compat/informers"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/informertest/kit"
	"github.com/mirador-k8s/mirador/object"
)

// subject is a pod informer of the factory with a real clientset.
type subject struct {
	informer cache.SharedIndexInformer
	engine   *informer.Informer[any]
	cancel   context.CancelFunc
}

func newSubject(setup kit.Setup) (kit.Subject, error) {
	cfg := rest.CopyConfig(setup.Config)
	cfg.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	opts := []informers.SharedInformerOption{informers.WithCacheOptions(cache.Options{
		MaxBacklog: setup.Backlog,
		OnProblem:  func(p informer.Problem) { setup.OnProblem(p.Err) },
	})}
	if setup.Transform != nil {
		opts = append(opts, informers.WithTransform(func(obj any) (any, error) {
			p, err := setup.Transform(obj.(*corev1.Pod))
			if err != nil {
				return nil, err
			}
			return p, nil
		}))
	}
	s := &subject{informer: informers.NewSharedInformerFactoryWithOptions(client, 0,
		opts...).Core().V1().Pods().Informer()}
	engine, ok := cache.Engine(s.informer)
	if !ok {
		return nil, fmt.Errorf("the factory's informer is a %T", s.informer)
	}
	s.engine = engine
	return s, nil
}

func (s *subject) AddHandler(_ string, handle func(informertest.Event)) (func() bool, error) {
	key := func(p *corev1.Pod) object.Key { return object.NewKey(p.Namespace, p.Name) }
	reg, err := s.informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			p := obj.(*corev1.Pod)
			handle(informertest.Event{Type: object.Added, Key: key(p), New: p, Initial: initial})
		},
		UpdateFunc: func(old, now any) {
			p := now.(*corev1.Pod)
			handle(informertest.Event{Type: object.Updated, Key: key(p), Old: old.(*corev1.Pod), New: p})
		},
		DeleteFunc: func(obj any) {
			e := informertest.Event{Type: object.Deleted}
			if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj, e.Missed = missed.Obj, true
			}
			e.Old = obj.(*corev1.Pod)
			e.Key = key(e.Old)
			handle(e)
		},
	})
	if err != nil {
		return nil, err
	}
	return reg.HasSynced, nil
}

func (s *subject) Run(ctx context.Context) error {
	ctx, s.cancel = context.WithCancel(ctx)
	defer s.cancel()
	s.informer.RunWithContext(ctx)
	return nil
}

func (s *subject) Stop(ctx context.Context) error {
	s.cancel()
	return s.engine.Stop(ctx)
}

func (s *subject) Synced() bool { return s.informer.HasSynced() }

func (s *subject) Get(key object.Key) (*corev1.Pod, bool) {
	obj, ok, err := s.informer.GetStore().GetByKey(string(key))
	if err != nil || !ok {
		return nil, false
	}
	return obj.(*corev1.Pod), true
}

func (s *subject) Versions() map[object.Key]object.Version {
	out := map[object.Key]object.Version{}
	for _, obj := range s.informer.GetStore().List() {
		p := obj.(*corev1.Pod)
		out[object.NewKey(p.Namespace, p.Name)] = object.Version(p.ResourceVersion)
	}
	return out
}

func (s *subject) Health() informertest.Health {
	h := s.engine.Health()
	out := informertest.Health{State: h.Reflector.State.String(), Version: h.Reflector.Version,
		LastWord: h.Reflector.LastWord}
	for _, n := range h.Problems {
		out.Problems += n
	}
	return out
}

// broken are the promises that compat cannot keep, because of client-go's API or because
// of client-go's clients, which decode objects before the engine receives them.
var broken = []kit.Broken{
	{Case: "P2_RestoredHistoryStartsANewEpoch", Why: "events are applied without comparing versions, as in client-go"},
	{Case: "P6_DeleteIsAnnouncedOnce", Why: "a repeated DELETED is a second event, as in client-go"},
	{Case: "P6_RecreatedUnseenIsDeleteAndAdd", Why: "one update, as in client-go"},
	{Case: "P9_StopNamesTheHandlersThatStillRun",
		Why: "handlers have no names in client-go's API; the error has their types"},
	{Case: "P9_SubjectCanStartAgain", Why: "one Run, as in client-go"},
	{Case: "P10_ObjectsCarryTheirKind",
		Why: "client-go's decoder clears apiVersion and kind, and compat does not write to its objects"},
	{Case: "P10_ListedObjectsCarryTheirKind",
		Why: "client-go's decoder clears apiVersion and kind, and compat does not write to its objects"},
	{Case: "P11_NoStormWhenConnectionsBreak",
		Why: "client-go's client repeats each request ten times, within the engine's backoff"},
	{Case: "P11_NoStormWhenEveryVersionIsTooLarge",
		Why: "client-go's client repeats each request ten times, within the engine's backoff"},
	{Case: "P11_RetryAfterIsHonoured",
		Why: "client-go's client honours it ten times and does not return it; then the engine's backoff applies"},
	{Case: "P12_UndecodableObjectInAListIsReported",
		Why: "client-go's client decodes the whole list, which fails because of one bad item"},
	{Case: "P13_RelistTransformsNothingThatIsUnchanged",
		Why: "every object in a relist is an update, as in client-go, so it is transformed"},
	{Case: "P16_ListIsNotHeldWhole", Why: "client-go's client reads the whole body before it decodes it"},
}

func TestConformanceOfCompat(t *testing.T) {
	crash := utilruntime.ReallyCrash
	utilruntime.ReallyCrash = false // otherwise a handler's panic ends the process
	defer func() { utilruntime.ReallyCrash = crash }()
	kit.Conformance(t, newSubject, broken...)
}
