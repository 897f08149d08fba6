package main

import "time"

// suite is one package of client-go whose tests are run in one of ours.
type suite struct {
	// from is client-go's package, into ours, both below their modules.
	from, into string
	// external says that the tests are in a package of their own, which imports the
	// one under test.
	external bool
	// atLeast is how many tests must pass.
	atLeast int
	// streaming names tests that hand over a plain ListWatch and expect it to be
	// asked for its state by a watch. In compat one has to say so, or to set
	// client-go's own switch by hand: that is done for these.
	streaming []string
	// timed names tests that fail when a few milliseconds of real time too many have
	// passed, with how many they allow.
	timed map[string]string
	// fail lists the tests that may fail, and must, with the reason.
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
	// repeats is how often a test of real time is run again until it passes.
	repeats = 40
	// watchListSwitch is client-go's switch for asking for the state by a watch.
	watchListSwitch = "KUBE_FEATURE_WatchListClient=true"
)
