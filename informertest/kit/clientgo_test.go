package kit_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/dev/sharedinformer"
	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/informertest/kit"
)

// newStock makes client-go's shared informer, as its generated code does.
func newStock(setup kit.Setup) (kit.Subject, error) {
	cfg := rest.CopyConfig(setup.Config)
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	pods := coreinformers.NewPodInformer(client, "", 0, cache.Indexers{})
	err = errors.Join(pods.SetTransform(sharedinformer.TransformFor(setup)),
		pods.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { setup.OnProblem(err) }))
	return &sharedinformer.Subject{Informer: pods}, err
}

// brokenByClientGo lists the promises that client-go v0.37.2 does not make or does not keep.
var brokenByClientGo = []kit.Broken{
	{Case: "P2_RestoredHistoryStartsANewEpoch", Why: "takes over the older state without reporting it"},
	{Case: "P6_DeleteIsAnnouncedOnce", Why: "a repeated DELETED is delivered again"},
	{Case: "P6_RecreatedUnseenIsDeleteAndAdd", Why: "UIDs are not compared: one update"},
	{Case: "P7_BacklogOfABlockedHandlerIsBounded", Why: "every event waits, without bound"},
	{Case: "P7_PanickingHandlerCrashesNothing", Why: "a handler's panic ends the process", Crashes: true},
	{Case: "P9_StopNamesTheHandlersThatStillRun", Why: "there is no Stop; Run waits for handlers without bound"},
	{Case: "P9_SubjectCanStartAgain", Why: "a second Run only warns"},
	{Case: "P10_ObjectsCarryTheirKind", Why: "apiVersion and kind of typed objects are cleared"},
	{Case: "P10_ListedObjectsCarryTheirKind", Why: "apiVersion and kind of typed objects are cleared"},
	{Case: "P11_NoStormWhenConnectionsBreak",
		Why: "each request is repeated ten times, a second apart, under the backoff"},
	{Case: "P11_NoStormWhenEveryVersionIsTooOld", Why: "the initial stream is requested again without a pause"},
	{Case: "P11_NoStormWhenEveryVersionIsTooOldAtOnce", Why: "the initial stream is requested again without a pause"},
	{Case: "P11_NoStormWhenEveryVersionIsTooLarge",
		Why: "each request is repeated ten times, a second apart, under the backoff"},
	{Case: "P11_NoStormWhenWatchesAreCutAfterTheirFirstFrame", Why: "the initial stream is opened again without a pause"},
	{Case: "P11_RetryAfterIsHonoured", Why: "honoured ten times, then the reflector's own backoff of a second counts"},
	{Case: "P11_CancelIsImmediate", Why: "the backoff of the initial stream ignores the context"},
	{Case: "P11_MissingBookmarkIsNoEndlessWait", Why: "waits for the bookmark forever"},
	{Case: "P11_UnservedResourceGoesQuietAndComesBack", Why: "retries as after any other error"},
	{Case: "P12_UndecodableObjectInAWatchIsReported", Why: "stream errors reach no handler"},
	{Case: "P12_UndecodableObjectInAListIsReported", Why: "one bad item fails the whole list"},
	{Case: "P12_StreamErrorIsReported", Why: "stream errors reach no handler"},
	{Case: "P12_FailingTransformIsReportedAndEmptiesNothing", Why: "the whole first state is discarded"},
	{Case: "P13_TransformRunsOncePerVersion", Why: "twice for each initial object"},
	{Case: "P13_RelistTransformsNothingThatIsUnchanged", Why: "everything is transformed again"},
	{Case: "P14_StateIsReadableAtAnyTime", Why: "there is no state to read"},
	{Case: "P14_VersionAndLastEventAgeAreReadable", Why: "the version can be read, the age cannot"},
	{Case: "P16_ListIsNotHeldWhole", Why: "the body is read whole before it is decoded"},
}

func TestConformanceOfClientGo(t *testing.T) {
	kit.Conformance(t, newStock, brokenByClientGo...)
}

// insideCrash is set in the process that TestP7_ClientGoCrashesWhenAHandlerPanics starts and that crashes.
const insideCrash = "INFORMERTEST_INSIDE_CRASH"

func TestP7_ClientGoCrashesWhenAHandlerPanics(t *testing.T) {
	if os.Getenv(insideCrash) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestP7_ClientGoCrashesWhenAHandlerPanics$")
		cmd.Env = append(os.Environ(), insideCrash+"=1")
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "a handler that panics") {
			t.Errorf("the process did not crash: %v\n%s", err, out)
		}
		return
	}
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer()
		cfg, stop := informertest.Pipe(s)
		defer stop()
		a := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
		if _, err := s.Create(a); err != nil {
			t.Fatal(err)
		}
		sub, err := newStock(kit.Setup{Config: cfg, OnProblem: func(error) {}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sub.AddHandler("panics", func(informertest.Event) { panic("a handler that panics") }); err != nil {
			t.Fatal(err)
		}
		sub.Run(t.Context())
	})
}
