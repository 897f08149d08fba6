package server

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// workSlice is how long a turn lasts before other work gets one.
	workSlice = 2 * time.Millisecond
	// maxWork is how many requests may be in the gate, running or waiting. One client gets at most half of them.
	maxWork = 1024
	// maxWorkWait is how long a request may wait in the gate before its answer has begun.
	maxWorkWait = 15 * time.Second
	// workTurns is how many turns shorter work gets before longer work of the same client gets one.
	workTurns = 3
)

// workLevels are the limits of used time that separate short from long work. Work of a lower level is preferred: a
// list of some dozen objects to a list of thousands, and that to a scan of everything.
var workLevels = [...]time.Duration{0, 16 * time.Millisecond, 128 * time.Millisecond}

// workGate bounds how much work that reads many objects runs at a time, so that one processor is left for short
// requests. While only one request is in the gate, it may use that processor too: one large list uses the whole
// machine, and a short request beside it waits no longer than a slice. Work runs in turns of one slice. After each
// slice, the client that has used the least time gets the next turn. Within a client, a request that has used little
// time goes before one that has used much, and among equals the older one goes first. So a small list is answered at
// once beside any number of scans, many long scans finish one after the other instead of all late, and no client waits
// for the work of another beyond its share.
//
// A goroutine that waits for a client's socket must not hold a turn.
type workGate struct {
	slots      int    // how much work runs at a time
	slotsAlone int    // the same, while only one request is in the gate
	requests   *quota // requests in the gate

	mu      sync.Mutex
	arrived uint64 // requests so far
	running int
	busy    int                       // requests with running or waiting work
	clients map[clientKey]*workClient // clients with running or waiting work
	clock   time.Duration             // used time of the client that got the last turn
}

// workClient has the work of one client.
type workClient struct {
	used    time.Duration // by all of its work since it was last idle; starts at the gate's clock
	running int
	waiting [len(workLevels) + 1]workQueue
}

// workQueue is the waiting work of one level, the oldest request first.
type workQueue struct {
	work  []*work
	turns int // since a longer level got one
}

// workRequest is the state that all parts of a request share. The gate's lock guards it.
type workRequest struct {
	client clientKey
	number uint64 // order of arrival
	used   time.Duration
	parts  int // parts that run or wait
}

// work is a request in the gate, or a part of one with its own goroutine. It must be used by one goroutine at a time.
type work struct {
	gate      *workGate
	ctx       context.Context
	request   *workRequest
	grant     *grant        // of the request; only its first part has one
	turn      chan struct{} // receives when a turn begins
	begun     time.Time     // when the turn began
	waitLimit time.Duration // how long it may still wait; 0 means forever
	holds     bool          // it has a turn, or turn will receive; guarded by the gate's lock
}

// newWorkGate returns a gate that leaves one of several processors to everything else while it has several requests.
func newWorkGate(processors int) *workGate {
	return &workGate{slots: max(1, processors-1), slotsAlone: max(1, processors),
		requests: newQuota("requests at a time", maxWork), clients: map[clientKey]*workClient{}}
}

// begin waits for the first turn of a request. If there is no error, the caller must call end.
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

// end removes the request from the gate.
func (w *work) end() {
	w.leave()
	w.grant.close()
}

// part returns another part of the request, for another goroutine. It has no turn yet.
func (w *work) part(ctx context.Context) *work {
	return &work{gate: w.gate, ctx: ctx, request: w.request, turn: make(chan struct{}, 1), waitLimit: w.waitLimit}
}

// answering records that the answer has begun: from now on the work waits for turns as long as its client does.
func (w *work) answering() { w.waitLimit = 0 }

// asNewRequest makes the next turns count as a new request of the same client, which has used no time yet. The work
// must not have a turn.
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

// leave ends the turn, if there is one. Call it before an operation that may block, such as a write to a socket.
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

// pace is to be called often while work runs. At the end of a slice it ends the turn and waits for the next one.
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
		runtime.Gosched() // with one processor, short requests wait for it
	}
	return w.await()
}

// errNoTurn is the error for a request that has waited too long.
func errNoTurn() error {
	return tooManyRequests(refusedBusy, fmt.Sprintf("the server is busy: the request has waited for %v in total",
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
		<-w.turn // the gate gave it at the same moment
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

// enqueue adds work to the queue of its level. The lock is held.
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

// removePart records that a part of a request neither runs nor waits any more. The lock is held.
func (g *workGate) removePart(r *workRequest) {
	if r.parts--; r.parts == 0 {
		g.busy--
	}
}

// limit returns how much work may run now. The lock is held.
func (g *workGate) limit() int {
	if g.busy <= 1 {
		return g.slotsAlone
	}
	return g.slots
}

// release ends a turn and charges the time that it took instead of the whole slice that giveTurns charged. The lock is
// held.
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

// forgetIdle drops a client that has no work, with the time that it has used. The lock is held.
func (g *workGate) forgetIdle(key clientKey) {
	if c := g.clients[key]; c != nil && c.running == 0 && !c.waits() {
		delete(g.clients, key)
	}
}

// giveTurns gives turns to waiting work while there are free slots. It charges a whole slice in advance, so that a
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

// next removes the work that gets the next turn from its queue: work of the lowest level, unless that level has had
// workTurns turns while a longer one waited. There must be waiting work. The lock is held.
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
