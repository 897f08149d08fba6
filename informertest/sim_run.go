package informertest

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	kwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/object"
)

// simulation is the run of one seed. Only one thing happens at a time: either the simulator's own goroutine runs, or a
// task to which it has passed control. A subject that cannot be stepped runs freely until it waits; then the simulator
// continues.
type simulation struct {
	plan    *plan
	subject Simulated
	make    func(SimSetup) (Simulated, error)
	stepper Stepper
	free    bool

	server    *Server
	res       *resource
	elsewhere *entry
	model     *model
	judge     *judge
	rng       *rand.Rand // for the current action
	began     time.Time

	mu   sync.Mutex
	stir *sync.Cond
	runs []*task // handlers that are ready to run, by name

	current     *task
	reflector   *task
	wakeAt      time.Time // when the reflector continues
	exchanges   []*exchange
	requests    int
	armed       []action // pending faults of frames
	refusals    []action // pending faults of requests
	lazy        int      // how rarely the consumer is chosen
	marks       bool     // the server sends bookmarks
	endless     bool     // it never sends the bookmark that ends the initial state
	noList      bool     // it refuses watches with sendInitialEvents
	noWatch     int      // it refuses all watches with this status; 0: it serves them
	noPages     bool     // it sends the first page of a list, and the rest has expired
	noWatchKind kind     // why noWatch is set
	unsettled   bool     // history was reset, and the subject has not noticed yet
	dump        *SimState
	saves       []savedState
	followers   []*follower
	kept        keptState // the content of the store at the last stop
	running     bool
	run         int
	handlers    []*handler
	joined      int

	steps  int
	bites  [allKinds]int
	out    io.Writer
	keep   bool
	lines  []string
	failed []failure
}

// failure is a promise that was broken.
type failure struct {
	promise string
	what    string
}

func (f failure) String() string { return f.promise + ": " + f.what }

// result is the outcome of a seed.
type result struct {
	plan     *plan
	steps    int
	hash     uint64
	bites    [allKinds]int
	failures []failure
	lines    []string
}

// runPlan runs a plan inside a synctest bubble.
func runPlan(p *plan, make func(SimSetup) (Simulated, error), keep bool) *result {
	h := fnv.New64a()
	s := &simulation{plan: p, make: make, server: NewServer(), model: newModel(p.keys), out: h, keep: keep,
		began: time.Now(), lazy: 1, marks: true, rng: rand.New(rand.NewPCG(p.seed, 1))}
	s.stir = sync.NewCond(&s.mu)
	s.judge = newJudge(s)
	if p.saves {
		s.followers = newFollowers()
	}
	s.res = s.server.resources[pods]
	s.elsewhere = newElsewhere(s.server.resources[pods.GroupVersion().WithResource("configmaps")])
	for _, k := range s.rng.Perm(p.keys)[:p.first] {
		s.put(s.model.keys[k], flaw{})
	}
	if s.build() {
		s.start(nil)
		for i := range p.actions {
			s.perform(&p.actions[i])
		}
		s.settle()
	}
	return &result{plan: p, steps: s.steps, hash: h.Sum64(), bites: s.bites, failures: s.failed, lines: s.lines}
}

// build makes the subject.
func (s *simulation) build() bool {
	setup := SimSetup{
		Config:  &rest.Config{Host: "http://informertest.invalid", Transport: s, QPS: -1},
		Variant: s.plan.variant, JSON: s.plan.json, WatchList: s.plan.watchList, PageSize: s.plan.pageSize,
		QueueBytes: s.plan.queue,
		Indexes:    s.judge.indexes(), OnProblem: s.judge.problem, Rand: s.stretch, Go: s.runHandler, Wait: s.wait,
	}
	if s.plan.transform {
		setup.Transform = s.judge.transform
	}
	var err error
	if s.subject, err = s.make(setup); err != nil {
		s.fail("setup", "making the subject: %v", err)
		return false
	}
	s.stepper, _ = s.subject.(Stepper)
	s.free = s.stepper == nil
	return true
}

// stretch is the subject's random source for jitter: it returns 0 half of the time, so that waits that are too short
// are detected.
func (s *simulation) stretch() float64 {
	if s.free {
		return rand.Float64()
	}
	if s.rng.IntN(2) == 0 {
		return 0
	}
	return s.rng.Float64()
}

// note adds a line to the history.
func (s *simulation) note(format string, args ...any) {
	if s.free && !s.keep {
		return
	}
	line := fmt.Appendf(nil, "%10.3fs  ", time.Since(s.began).Seconds())
	line = fmt.Appendf(line, format, args...)
	s.out.Write(line)
	if s.keep {
		s.lines = append(s.lines, string(line))
	}
}

// fail records a broken promise.
func (s *simulation) fail(promise, format string, args ...any) {
	f := failure{promise, fmt.Sprintf(format, args...)}
	s.note("BROKEN %s", f)
	if !slices.ContainsFunc(s.failed, func(o failure) bool { return o.promise == promise }) {
		s.failed = append(s.failed, f) // the first of each promise tells most
	}
}

// runHandler queues a handler that is ready to run. Timers call it too, in any order.
func (s *simulation) runHandler(name string, run func()) {
	t := newTask(name, run)
	s.mu.Lock()
	defer s.mu.Unlock()
	at, _ := slices.BinarySearchFunc(s.runs, t, func(a, b *task) int { return cmp.Compare(a.name, b.name) })
	s.runs = slices.Insert(s.runs, at, t)
}

// choice is something that can happen next.
type choice struct {
	what byte
	ex   *exchange
	task *task
}

const (
	doAnswer = iota
	doRelease
	doFrame
	doReflect
	doConsume
	doHandler
)

// choices returns everything that can happen now, in a fixed order.
func (s *simulation) choices() []choice {
	now := time.Now()
	var out []choice
	s.exchanges = slices.DeleteFunc(s.exchanges, (*exchange).over)
	for _, ex := range s.exchanges {
		if ex.held || now.Before(ex.heldUntil) {
			continue
		}
		switch {
		case !ex.answered:
			out = append(out, choice{doAnswer, ex, nil})
		case ex.end != nil:
		case ex.verb == "list":
			out = append(out, choice{doRelease, ex, nil})
		case len(ex.frames) > 0 || ex.hasOutput() || !now.Before(ex.deadline):
			out = append(out, choice{doFrame, ex, nil})
		}
	}
	if s.stepper != nil && s.running {
		if s.reflector.runnable() {
			out = append(out, choice{doReflect, nil, s.reflector})
		}
		if s.stepper.Waiting() > 0 && (s.lazy <= 1 || s.rng.IntN(s.lazy) == 0) {
			out = append(out, choice{doConsume, nil, nil})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = slices.DeleteFunc(s.runs, func(t *task) bool { return t.done })
	for _, t := range s.runs {
		if t.runnable() {
			out = append(out, choice{doHandler, nil, t})
		}
	}
	return out
}

// step runs one choice, and reports whether there was one.
func (s *simulation) step() bool {
	s.steps++
	s.runFree()
	all := s.choices()
	if len(all) == 0 {
		return false
	}
	c := all[s.rng.IntN(len(all))]
	s.out.Write([]byte{c.what})
	switch c.what {
	case doAnswer:
		s.mu.Lock()
		s.answerWith(c.ex)
		s.mu.Unlock()
	case doRelease:
		s.mu.Lock()
		s.release(c.ex)
		s.mu.Unlock()
	case doFrame:
		s.mu.Lock()
		s.deliverFrame(c.ex)
		s.mu.Unlock()
	case doReflect:
		before := s.subject.Snapshot().Version()
		s.resume(c.task)
		s.judge.reflected()
		if s.subject.Snapshot().Version() != before {
			s.judge.consumed() // the change did not go through the queue
		}
	case doConsume:
		s.judge.maxBatch = max(s.judge.maxBatch, s.stepper.Waiting())
		s.stepper.Consume()
		s.judge.consumed()
	case doHandler:
		s.resume(c.task)
	}
	s.runFree()
	if s.unsettled {
		s.unsettled = !s.noticed()
	}
	return true
}

// noticed reports whether the subject knows of the history that a restore started: nothing of the old one is left on
// the wire, and the subject is not past the new one's version.
func (s *simulation) noticed() bool {
	for _, ex := range s.exchanges {
		if ex.answered && !ex.over() && ex.epoch < s.model.epoch() {
			return false
		}
	}
	v, err := versionOf(string(s.subject.Health().Version))
	return err == nil && v <= s.server.history.version
}

// runFree lets a free-running subject run until it waits.
func (s *simulation) runFree() {
	if s.free {
		s.wakeFree()
		synctest.Wait()
	}
}

// pass lets time pass.
func (s *simulation) pass(d time.Duration) {
	s.runFree()
	time.Sleep(d)
	synctest.Wait()
	s.runFree()
}

// nextTime returns how long nothing will happen without an action, as far as that is known.
func (s *simulation) nextTime() time.Duration {
	now := time.Now()
	next := 45 * time.Second
	consider := func(t time.Time) {
		if d := t.Sub(now); d > 0 {
			next = min(next, d)
		}
	}
	if s.running {
		consider(s.wakeAt)
	}
	for _, ex := range s.exchanges {
		consider(ex.heldUntil)
		if ex.watch != nil && !ex.held {
			consider(ex.deadline)
			consider(ex.nextMark)
		}
	}
	return next
}

// release delivers a piece of a list.
func (s *simulation) release(ex *exchange) {
	n := len(ex.rest)
	if n > 1 && s.rng.IntN(3) > 0 {
		n = 1 + s.rng.IntN(n)
	}
	ex.inbox = append(ex.inbox, ex.rest[:n]...)
	ex.rest = ex.rest[n:]
	if len(ex.rest) == 0 {
		ex.stated = true
		s.judge.listed(ex)
		ex.finish()
	}
}

// deliverFrame delivers the next frame of a watch, or what a fault makes of it.
func (s *simulation) deliverFrame(ex *exchange) {
	if len(ex.frames) == 0 && ex.watch != nil {
		if !time.Now().Before(ex.deadline) && !ex.hasOutput() {
			ex.finish()
			return
		}
		ex.pump(ex.takeMark())
	}
	if !s.marks || s.endless {
		ex.frames = slices.DeleteFunc(ex.frames, func(f frame) bool {
			skip := f.what == kwatch.Bookmark && (f.initialEnd && s.endless || !f.initialEnd && !s.marks)
			if skip && f.initialEnd {
				s.countFault(noInitialEnd)
			}
			ex.unmarked = ex.unmarked || skip
			return skip
		})
	}
	if len(ex.frames) == 0 {
		return
	}
	if s.judge.taint > 0 && s.rng.IntN(8) == 0 {
		s.expire()
		if ex.end != nil {
			return
		}
	}
	f := ex.frames[0]
	ex.frames = ex.frames[1:]
	if f.what != kwatch.Bookmark && f.what != kwatch.Error && len(s.armed) > 0 {
		a := s.armed[0]
		s.armed = s.armed[1:]
		s.applyToFrame(ex, f, a)
		return
	}
	s.deliver(ex, f)
	if f.what == kwatch.Error {
		ex.finish()
	}
}

// deliver makes a frame available to the reader.
func (s *simulation) deliver(ex *exchange, f frame) {
	s.note("request %d: %s %s version %d initialEnd=%t", ex.id, f.what, f.key, f.version, f.initialEnd)
	ex.inbox = append(ex.inbox, f.bytes...)
	ex.spoke = time.Now()
	ex.stated = ex.stated || f.initialEnd
	s.judge.delivered(ex, f)
}

// start starts a run of the subject.
func (s *simulation) start(from *SimState) {
	s.run++
	s.judge.begin(from)
	if s.run > 1 || s.plan.seed%2 == 0 { // handlers are added before the run, or right after its start
		s.startSubject(from)
		s.join(true)
	} else {
		s.join(true)
		s.startSubject(from)
	}
	for i := 1; i < s.plan.handlers; i++ {
		s.join(false)
	}
}

func (s *simulation) startSubject(from *SimState) {
	if from != nil {
		s.note("start from version %s with %d objects", from.Version, len(from.Pods))
	} else {
		s.note("start")
	}
	if err := s.subject.Start(from); err != nil {
		s.fail("P9", "starting: %v", err)
		return
	}
	s.running, s.wakeAt = true, time.Time{}
	s.judge.checkSynced()
	if n := s.subject.Snapshot().Len(); s.stepper != nil && from == nil && n > 0 {
		s.fail("P9", "a run without a start state begins with %d objects", n)
	}
	if s.stepper != nil {
		s.reflector = newTask("reflector", s.reflect)
	}
}

// reflect is the task of the reflector.
func (s *simulation) reflect() {
	for {
		wait, done := s.stepper.Reflect()
		s.judge.stepped()
		if done {
			return
		}
		s.wakeAt = time.Time{}
		if wait <= 0 {
			s.pause()
			continue
		}
		at := time.Now().Add(wait)
		s.wakeAt = at
		s.wait(func() bool { return !time.Now().Before(at) || s.judge.cancelled })
	}
}

// countFault counts a fault that took effect.
func (s *simulation) countFault(k kind) { s.bites[k]++ }

// key picks a name that has an object, or one that has none.
func (s *simulation) key(n int, live bool) (object.Key, bool) {
	all := s.model.keys
	if live {
		all = s.model.live()
	}
	if len(all) == 0 {
		return "", false
	}
	return all[n%len(all)], true
}
