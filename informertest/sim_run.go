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

// simulation is one seed being run. One thing happens at a time: the simulator's own
// goroutine does it, or a task to which it has handed control. What is free (a subject
// that cannot be stepped) runs until it waits before the simulator goes on.
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
	rng       *rand.Rand // of the action under way
	began     time.Time

	mu   sync.Mutex
	stir *sync.Cond
	runs []*task // handlers that have something to do, by name

	current     *task
	reflector   *task
	wakeAt      time.Time // when the reflector goes on
	exchanges   []*exchange
	requests    int
	armed       []action // frame faults that wait for a frame
	refusals    []action // faults that wait for a request
	lazy        int      // how reluctant the consumer is
	marks       bool     // the server sends bookmarks
	endless     bool     // it never sends the one that ends the initial state
	noList      bool     // it refuses to give the state by a watch
	noWatch     int      // it refuses all watches with this status; 0: it serves them
	noPages     bool     // it gives the first page of a list and then says that the list has expired
	noWatchKind kind     // why noWatch is set
	unsettled   bool     // history was set back, and the subject does not know it yet
	dump        *SimState
	kept        keptState // what the store had at the last stop
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

// result is what became of a seed.
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

// stretch is the subject's randomness: half of all waits are not stretched at all, so
// that whoever does not wait long enough is seen.
func (s *simulation) stretch() float64 {
	if s.free {
		return rand.Float64()
	}
	if s.rng.IntN(2) == 0 {
		return 0
	}
	return s.rng.Float64()
}

// note writes a line of the history.
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

// fail notes a broken promise.
func (s *simulation) fail(promise, format string, args ...any) {
	f := failure{promise, fmt.Sprintf(format, args...)}
	s.note("BROKEN %s", f)
	if !slices.ContainsFunc(s.failed, func(o failure) bool { return o.promise == promise }) {
		s.failed = append(s.failed, f) // the first of each tells most
	}
}

// runHandler takes over what a handler has to do. Timers call it too, in any order.
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

// choices gives everything that can happen now, in a fixed order.
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
		case len(ex.frames) > 0 || ex.talks() || !now.Before(ex.deadline):
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

// step lets one thing happen, and reports whether there was one.
func (s *simulation) step() bool {
	s.steps++
	s.settleFree()
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
		s.letFrame(c.ex)
		s.mu.Unlock()
	case doReflect:
		before := s.subject.Snapshot().Version()
		s.resume(c.task)
		s.judge.reflected()
		if s.subject.Snapshot().Version() != before {
			s.judge.consumed() // it went past the queue
		}
	case doConsume:
		s.judge.maxBatch = max(s.judge.maxBatch, s.stepper.Waiting())
		s.stepper.Consume()
		s.judge.consumed()
	case doHandler:
		s.resume(c.task)
	}
	s.settleFree()
	if s.unsettled {
		s.unsettled = !s.noticed()
	}
	return true
}

// noticed reports whether the subject knows of the history that a restore began:
// nothing of the old one is left on the wire, and it has come no further than the new
// one.
func (s *simulation) noticed() bool {
	for _, ex := range s.exchanges {
		if ex.answered && !ex.over() && ex.epoch < s.model.epoch() {
			return false
		}
	}
	v, err := versionOf(string(s.subject.Health().Version))
	return err == nil && v <= s.server.history.version
}

// settleFree lets what runs free run until it waits.
func (s *simulation) settleFree() {
	if s.free {
		s.stirUp()
		synctest.Wait()
	}
}

// pass lets time pass.
func (s *simulation) pass(d time.Duration) {
	s.settleFree()
	time.Sleep(d)
	synctest.Wait()
	s.settleFree()
}

// nextTime is how long nothing will happen by itself, as far as that is known.
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

// release lets a piece of a list through.
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

// letFrame lets the next frame of a watch through, or what a fault makes of it.
func (s *simulation) letFrame(ex *exchange) {
	if len(ex.frames) == 0 && ex.watch != nil {
		if !time.Now().Before(ex.deadline) && !ex.talks() {
			ex.finish()
			return
		}
		ex.pump(ex.takeMark())
	}
	if !s.marks || s.endless {
		ex.frames = slices.DeleteFunc(ex.frames, func(f frame) bool {
			skip := f.what == kwatch.Bookmark && (f.initialEnd && s.endless || !f.initialEnd && !s.marks)
			if skip && f.initialEnd {
				s.bite(noInitialEnd)
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
		s.spoil(ex, f, a)
		return
	}
	s.deliver(ex, f)
	if f.what == kwatch.Error {
		ex.finish()
	}
}

// deliver puts a frame where the reader finds it.
func (s *simulation) deliver(ex *exchange, f frame) {
	s.note("request %d: %s %s version %d initialEnd=%t", ex.id, f.what, f.key, f.version, f.initialEnd)
	ex.inbox = append(ex.inbox, f.bytes...)
	ex.spoke = time.Now()
	ex.stated = ex.stated || f.initialEnd
	s.judge.delivered(ex, f)
}

// start begins a run of the subject.
func (s *simulation) start(from *SimState) {
	s.run++
	s.judge.begin(from)
	if s.run > 1 || s.plan.seed%2 == 0 { // handlers come before the run, or right after it began
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
		s.fail("P9", "a run that starts from nothing begins with %d objects", n)
	}
	if s.stepper != nil {
		s.reflector = newTask("reflector", s.reflect)
	}
}

// reflect is the life of the reflector.
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

// bite counts a fault that took effect.
func (s *simulation) bite(k kind) { s.bites[k]++ }

// key picks a name that holds something, or nothing.
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
