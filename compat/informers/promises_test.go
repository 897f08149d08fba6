package informers_test

import (
	"context"
	"fmt"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/compat/informers"
	"github.com/mirador-k8s/mirador/dev/sharedinformer"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/informertest/kit"
)

// subject is a pod informer of the factory with a real clientset.
type subject struct {
	sharedinformer.Subject
	engine *informer.Informer[any]
}

func newSubject(setup kit.Setup) (kit.Subject, error) {
	cfg := rest.CopyConfig(setup.Config)
	cfg.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithCacheOptions(cache.Options{
			MaxBacklog: setup.Backlog,
			OnProblem:  func(p informer.Problem) { setup.OnProblem(p.Err) },
		}),
		informers.WithTransform(sharedinformer.TransformFor(setup)))
	pods := factory.Core().V1().Pods().Informer()
	engine, ok := cache.Engine(pods)
	if !ok {
		return nil, fmt.Errorf("the factory's informer is a %T", pods)
	}
	return &subject{sharedinformer.Subject{Informer: pods}, engine}, nil
}

// Stop cancels Run and waits for the handlers, or names those that still run.
func (s *subject) Stop(ctx context.Context) error { return s.engine.Stop(ctx) }

func (s *subject) Health() informertest.Health {
	h := s.engine.Health()
	out := informertest.Health{State: h.Reflector.State.String(), Version: h.Reflector.Version,
		LastEvent: h.Reflector.LastEvent}
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
