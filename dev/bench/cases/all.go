package cases

import "github.com/mirador-k8s/mirador/dev/bench/harness"

// All returns the cases in the order of the table.
func All() []harness.Case {
	return []harness.Case{
		heapTyped(),
		heapGiven(),
		heapDynamic(),
		eventCost(),
		eventLatency(),
		storeGet(),
		storeUpdate(),
		storeIterate(),
		writerBesideReaders(),
		lateHandler(),
		relist(),
		coldSync(),
		idleInformers(),
		growth(),
		growthOfEvents(),
		million(),
		served(),
		userRights(),
		restarted(),
	}
}

// The names of the sides. Variants of ours include the layout.
const (
	peer   = "client-go"
	compat = "compat"
	typed  = "typed"
)

// Names of the two indexes that every store in these cases has.
const (
	byNamespace = "namespace"
	byApp       = "app"
)
