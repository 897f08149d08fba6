package server

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// workSlice is how long work runs before other work gets its turn.
	workSlice = 2 * time.Millisecond
	// maxWork is how many requests may be in the gate, running or waiting. One client gets half of them at most.
	maxWork = 1024
	// maxWorkWait is how long a request may wait in the gate before its answer has begun.
	maxWorkWait = 15 * time.Second
	// workTurns is how many turns shorter work has before longer work of the same client has one.
	workTurns = 3
)

// workLevels are the times up to which work is preferred to work that has used more: a list of some dozen objects to a
// list of thousands, and that to a scan of everything.
var workLevels = [...]time.Duration{0, 16 * time.Millisecond, 128 * time.Millisecond}

// workGate bounds how much work that reads many objects runs at a time, so that a processor is left for short
// requests. A request that is alone in the gate is slotsAlone that processor too, until another request comes: one large
// list uses the whole machine, and short requests beside it wait no longer than its slices. Work runs in slices of
// time. After each slice the client that has used the least time gets the next one; within a client the request that
// has used little goes before one that has used much, and of those alike the older one. So a small list is answered
// at once beside any number of scans, many long scans are finished one after the other instead of all of them late,
// and no client waits for the work of another beyond its share.
//
// Whatever waits for a client's socket must not hold a turn.
type workGate struct {
	slots      int    // how much work runs at a time
	slotsAlone int    // how much does of a request that is alone
	requests   *quota // requests in the gate

	mu      sync.Mutex
	arrived uint64 // requests so far
	running int
	busy    int                       // requests that have work which runs or waits
	clients map[clientKey]*workClient // those that have work which runs or waits
	clock   time.Duration             // how much the client had used that got the last turn
}

// workClient is the work of one client.
type workClient struct {
	used    time.Duration // by all of its work since it was idle; it begins with the gate's clock
	running int
	waiting [len(workLevels) + 1]workQueue
}

// workQueue has the work of one level, the oldest request first.
type workQueue struct {
	work  []*work
	turns int // turns since a longer level had one
}

// workRequest is what all parts of a request have in common. The gate's lock guards it.
type workRequest struct {
	client clientKey
	number uint64 // in the order of arrival
	used   time.Duration
	parts  int // that run or wait
}

// work is a request in the gate, or a part of one with a goroutine of its own. It belongs to one goroutine.
type work struct {
	gate      *workGate
	ctx       context.Context
	request   *workRequest
	grant     *grant        // of a request's first part
	turn      chan struct{} // receives when a turn begins
	begun     time.Time     // when it did
	waitLimit time.Duration // how long it may still wait
	holds     bool          // it has a turn, or will receive it; the gate's lock guards it
}

// newWorkGate leaves one processor to everything else where there are several requests and several processors.
func newWorkGate(processors int) *workGate {
	return &workGate{slots: max(1, processors-1), slotsAlone: max(1, processors),
		requests: newQuota("requests at a time", maxWork), clients: map[clientKey]*workClient{}}
}

// begin waits for the first turn of a request. The caller must call end.
func (g *workGate) begin(ctx context.Context, client clientKey) (*work, error) {
	w := &work{gate: g, ctx: ctx, request: &workRequest{client: client}, grant: g.requests.open(client),
		turn: make(chan struct{}, 1), waitLimit: maxWorkWait}
	if err := w.grant.set(1); err != nil {
		return nil, err
	}
	if err := w.resume(); err != nil {
		w.grant.close()
		return nil, err
	}
	return w, nil
}

// end leaves the gate for good.
func (w *work) end() {
	w.leave()
	w.grant.close()
}

// part returns another part of the request, for a goroutine of its own. It has no turn yet.
func (w *work) part(ctx context.Context) *work {
	return &work{gate: w.gate, ctx: ctx, request: w.request, turn: make(chan struct{}, 1), waitLimit: w.waitLimit}
}

// answering says that the answer has begun: from now on the work waits as long as its client does.
func (w *work) answering() { w.waitLimit = 0 }

// again makes what follows count as a new request of the same client: what was used before is forgotten. The work has
// no turn.
func (w *work) asNewRequest() { w.request = &workRequest{client: w.request.client} }

// resume waits for a turn.
func (w *work) resume() error {
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	g := w.gate
	g.mu.Lock()
	if w.request.number == 0 {
		g.arrived++
		w.request.number = g.arrived
	}
	g.enqueue(w)
	g.giveTurns()
	g.mu.Unlock()
	return w.await()
}

// leave ends a turn, before anything that may take long without a processor, such as a write to a socket.
func (w *work) leave() {
	g := w.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.holds {
		g.release(w)
		g.forgetIdle(w.request.client)
		g.giveTurns()
	}
}

// pace is called often while work runs. At the end of a slice it lets other work have its turn and waits for the next
// one.
func (w *work) pace() error {
	if time.Since(w.begun) < workSlice {
		return nil
	}
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	g := w.gate
	g.mu.Lock()
	g.release(w)
	g.enqueue(w)
	g.giveTurns()
	more := w.holds
	g.mu.Unlock()
	if more {
		runtime.Gosched() // where there is one processor, short requests wait for it
	}
	return w.await()
}

// errNoTurn ends a request that has waited too long.
func errNoTurn() error {
	return apierrors.NewTooManyRequests(fmt.Sprintf("the server is busy: the request has waited for %v in all",
		maxWorkWait), 1)
}

// await waits until the gate has given a turn.
func (w *work) await() error {
	select {
	case <-w.turn:
		w.begun = time.Now()
		return nil
	default:
	}
	var late <-chan time.Time
	from := time.Now()
	if w.waitLimit > 0 {
		timer := time.NewTimer(w.waitLimit)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-w.turn:
		w.begun = time.Now()
		if w.waitLimit > 0 {
			w.waitLimit = max(1, w.waitLimit-w.begun.Sub(from))
		}
		return nil
	case <-w.ctx.Done():
		w.giveUp()
		return context.Cause(w.ctx)
	case <-late:
		w.giveUp()
		return errNoTurn()
	}
}

// giveUp ends the wait for a turn.
func (w *work) giveUp() {
	g := w.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.holds {
		<-w.turn // it was given at the same moment
		w.begun = time.Now()
		g.release(w)
	} else {
		for i := range g.clients[w.request.client].waiting {
			q := &g.clients[w.request.client].waiting[i]
			q.work = slices.DeleteFunc(q.work, func(other *work) bool { return other == w })
		}
		g.removePart(w.request)
	}
	g.forgetIdle(w.request.client)
	g.giveTurns()
}

// enqueue has work wait for a turn. The lock is held.
func (g *workGate) enqueue(w *work) {
	c := g.clients[w.request.client]
	if c == nil {
		c = &workClient{used: g.clock}
		g.clients[w.request.client] = c
	}
	level := 0
	for level < len(workLevels) && w.request.used > workLevels[level] {
		level++
	}
	q := &c.waiting[level]
	at, _ := slices.BinarySearchFunc(q.work, w.request.number+1, func(other *work, number uint64) int {
		if other.request.number < number {
			return -1
		}
		return 1
	})
	q.work = slices.Insert(q.work, at, w)
	if w.request.parts++; w.request.parts == 1 {
		g.busy++
	}
}

// removePart notes that a part of a request neither runs nor waits any more. The lock is held.
func (g *workGate) removePart(r *workRequest) {
	if r.parts--; r.parts == 0 {
		g.busy--
	}
}

// limit is how much work may run now. The lock is held.
func (g *workGate) limit() int {
	if g.busy <= 1 {
		return g.slotsAlone
	}
	return g.slots
}

// release ends a turn and charges what it took in place of the whole slice that was charged for it. The lock is held.
func (g *workGate) release(w *work) {
	took := time.Since(w.begun)
	w.holds = false
	w.request.used += max(took, 1)
	c := g.clients[w.request.client]
	c.running--
	c.used += took - workSlice
	g.running--
	g.removePart(w.request)
}

// forgetIdle drops a client that has no work. What it used before does not count when it comes back. The lock is held.
func (g *workGate) forgetIdle(key clientKey) {
	if c := g.clients[key]; c != nil && c.running == 0 && !c.waits() {
		delete(g.clients, key)
	}
}

// giveTurns gives turns while there are slots and work that waits. A whole slice is charged beforehand, so that a
// client does not get all slots before its use is known. The lock is held.
func (g *workGate) giveTurns() {
	for g.running < g.limit() {
		var least *workClient
		for _, c := range g.clients {
			if c.waits() && (least == nil || c.used < least.used) {
				least = c
			}
		}
		if least == nil {
			return
		}
		w := least.next()
		g.clock = max(g.clock, least.used)
		least.used += workSlice
		least.running++
		g.running++
		w.holds = true
		w.turn <- struct{}{}
	}
}

func (c *workClient) waits() bool {
	return slices.ContainsFunc(c.waiting[:], func(q workQueue) bool { return len(q.work) > 0 })
}

// next takes the work whose turn it is: of the shortest level, unless that has had some turns more than a longer one
// that waits. There is some. The lock is held.
func (c *workClient) next() *work {
	var from *workQueue
	for i := range c.waiting {
		q := &c.waiting[i]
		if len(q.work) == 0 {
			continue
		}
		if from != nil {
			from.turns = 0
		}
		from = q
		if from.turns < workTurns {
			break
		}
	}
	from.turns++
	w := from.work[0]
	from.work = slices.Delete(from.work, 0, 1)
	return w
}
