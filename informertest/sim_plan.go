package informertest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// kind is what an action of a plan does.
type kind int

// The actions. Those from frameLost on are faults.
const (
	create kind = iota
	update
	remove
	recreate
	burst
	bookmarks
	passTime
	takeSnapshot
	lazyConsumer

	frameLost
	frameLostSilently
	frameLostUnnoticed
	frameDelayed
	frameTwice
	frameCut
	frameGarbage
	cutList
	cutWatch
	silentList
	silentWatch
	gonePage
	goneWatch
	goneEvent
	throttled
	serverError
	forbidden
	notServed
	refused
	staleList
	staleWatch
	restored
	noBookmarks
	bookmarksOnly
	noInitialEnd
	noWatchList
	watchDenied
	watchUnsupported
	expiringPages
	compaction
	clockJump
	slowHandler
	blockedHandler
	panickingHandler
	joiningHandler
	leavingHandler
	stopped
	restartedFromDump
	panickingReport
	failingIndex
	panickingIndex
	failingTransform
	panickingTransform
	undecodable

	resumed
	killed
	compactedMeanwhile
	restoredMeanwhile

	allKinds
)

const firstFault = frameLost

// firstRestart is the first of the faults in which the subject starts from a state that it has saved.
const firstRestart = resumed

var kindNames = [allKinds]string{
	"create", "update", "delete", "recreate", "burst", "bookmark", "time passes", "snapshot", "lazy consumer",
	"frame lost with its connection", "frame lost, then silence", "frame lost unnoticed, then expired",
	"frame delayed", "frame twice",
	"frame truncated", "frame garbled", "list cut", "watch cut", "list silent", "watch silent",
	"410 on a page", "410 on a watch", "410 as an event", "429 with Retry-After", "500", "403", "404",
	"connection refused",
	"stale list", "stale watch", "etcd restored", "no bookmarks", "bookmarks only", "initial bookmark never sent",
	"WatchList refused",
	"watches denied", "watches not supported", "all pages expire",
	"compaction", "clock jump", "slow handler", "blocked handler", "panicking handler", "handler joins", "handler leaves",
	"stopped and restarted", "restarted from a dump", "OnProblem panics", "index fails", "index panics",
	"transform fails", "transform panics", "undecodable object",
	"stopped, restarted from its saved state", "killed, restarted from its saved state",
	"compaction before such a restart", "etcd restored before such a restart",
}

func (k kind) String() string { return kindNames[k] }

// action is one action of a plan, and for how many steps the parts of the informer and of the wire run afterwards, in
// an order that seed decides. It is self-contained, so that a plan without some of its actions is still a plan.
type action struct {
	kind  kind
	n     int
	d     time.Duration
	seed  uint64
	steps int
}

func (a action) String() string {
	return fmt.Sprintf("%s (n=%d, d=%s, then %d steps)", a.kind, a.n, a.d, a.steps)
}

// plan is everything that a seed decides.
type plan struct {
	seed      uint64
	keys      int // how many names there are
	first     int // how many objects there are at the start
	handlers  int
	json      bool
	watchList bool
	transform bool
	variant   int
	pageSize  int
	queue     int
	repairs   bool // whether objects that could not be stored are repaired at the end
	saves     bool // the subject saves its state now and then, and followers outlive it
	actions   []action
}

// minSteps is the least number of steps of a seed.
const minSteps = 1000

// drawPlan returns the plan of a seed.
func drawPlan(seed uint64) *plan {
	r := rand.New(rand.NewPCG(seed, 0x5eed))
	p := &plan{
		seed: seed, keys: 5 + r.IntN(36), handlers: 1 + r.IntN(3),
		json: r.IntN(4) == 0, watchList: r.IntN(2) == 0, transform: r.IntN(3) == 0,
		variant: r.IntN(6), pageSize: []int{0, 3, 7, 500}[r.IntN(4)], queue: []int{1500, 6000, 1 << 20}[r.IntN(3)],
		repairs: r.IntN(4) > 0,
	}
	p.first = r.IntN(p.keys + 1)
	var faults []kind
	for k := firstFault; k < firstRestart; k++ {
		if r.IntN(3) == 0 {
			faults = append(faults, k)
		}
	}
	p.transform = p.transform || slices.Contains(faults, failingTransform) || slices.Contains(faults, panickingTransform)
	p.watchList = p.watchList || slices.Contains(faults, noInitialEnd) || slices.Contains(faults, noWatchList)
	if slices.Contains(faults, expiringPages) { // there must be pages
		p.watchList, p.pageSize, p.first = false, 3, p.keys
	}
	often := []float64{0.05, 0.15, 0.3}[r.IntN(3)]
	quiet := false
	for steps := 0; steps < minSteps; {
		if r.IntN(12) == 0 {
			quiet = !quiet
		}
		a := action{kind: drawKind(r, quiet), n: r.IntN(1 << 16), seed: r.Uint64(), steps: 2 + r.IntN(14)}
		if len(faults) > 0 && r.Float64() < often {
			a.kind = faults[r.IntN(len(faults))]
		}
		a.d = drawTime(r, a.kind)
		p.actions = append(p.actions, a)
		steps += a.steps + 1
	}
	p.addRestarts()
	return p
}

// addRestarts adds restarts from saved states to half of the plans. They have a random source of their own, so that the
// other half stays as it was without them.
func (p *plan) addRestarts() {
	r := rand.New(rand.NewPCG(p.seed, 0xd15c))
	if p.saves = r.IntN(2) == 0; !p.saves {
		return
	}
	for k := firstRestart; k < allKinds; k++ {
		for range r.IntN(3) {
			a := action{kind: k, n: r.IntN(1 << 16), seed: r.Uint64(), steps: 2 + r.IntN(30)}
			a.d = drawTime(r, k)
			p.actions = slices.Insert(p.actions, r.IntN(len(p.actions)+1), a)
		}
	}
}

func drawKind(r *rand.Rand, quiet bool) kind {
	if quiet && r.IntN(3) > 0 {
		return []kind{passTime, bookmarks, takeSnapshot}[r.IntN(3)]
	}
	weights := []kind{create, create, create, update, update, update, update, update, remove, remove, recreate,
		burst, bookmarks, passTime, passTime, takeSnapshot, takeSnapshot, lazyConsumer}
	return weights[r.IntN(len(weights))]
}

func drawTime(r *rand.Rand, k kind) time.Duration {
	switch k {
	case clockJump:
		return time.Duration(1+r.IntN(180)) * time.Minute
	case throttled:
		return time.Duration(1+r.IntN(40)) * time.Second
	}
	most := []time.Duration{10 * time.Millisecond, time.Second, 10 * time.Second, time.Minute}[r.IntN(4)]
	return time.Duration(1 + r.Int64N(int64(most)))
}
