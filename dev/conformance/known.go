package main

import "time"

// suite is one package of client-go whose tests run in one of ours.
type suite struct {
	// from is client-go's package, into ours, both below their modules.
	from, into string
	// external says that the tests are in an external test package, which imports the one under test.
	external bool
	// atLeast is how many tests must pass.
	atLeast int
	// streaming names tests that pass a plain ListWatch and expect the informer to use sendInitialEvents. In compat that
	// is an option, or client-go's own feature switch, which is set for these tests.
	streaming []string
	// timed names tests that fail when a few milliseconds too many of real time have passed, with how many they allow.
	timed map[string]string
	// fail lists the tests that are expected to fail, with the reason.
	fail map[string]string
}

var suites = []suite{
	{
		from: "tools/cache", into: "compat/cache", atLeast: 95,
		streaming: []string{"TestWatchList", "TestReflectorListAndWatch"},
		timed:     map[string]string{"TestNewReflectorWithCustomBackoff": "50 ms for the start and the end of five waits"},
	},
	{from: "dynamic/dynamicinformer", into: "compat/dynamicinformer", external: true, atLeast: 4},
	{from: "metadata/metadatainformer", into: "compat/metadatainformer", atLeast: 3},
}

const (
	theirs = "k8s.io/client-go"
	ours   = "github.com/mirador-k8s/mirador"
	// limit bounds one run of "go test".
	limit = 6 * time.Minute
	// repeats is how often a timed test is run until it passes.
	repeats = 40
	// watchListSwitch is client-go's feature switch for sendInitialEvents.
	watchListSwitch = "KUBE_FEATURE_WatchListClient=true"
)
