package informertest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing/synctest"
	"time"
)

// restart stops the subject and starts it again: empty, or from a saved state.
func (s *simulation) restart(a *action) {
	if !s.running {
		return
	}
	if a.n%3 == 0 || s.dump == nil {
		s.dump = s.judge.dump()
	}
	from := s.dump
	if s.stepper != nil && a.n%7 == 0 {
		s.releaseEarly(s.stepper.Release)
	}
	s.stop(time.Duration(1+a.n%5) * time.Second)
	if a.n%2 == 0 {
		s.mu.Lock()
		s.write(&action{kind: burst, n: a.n})
		s.mu.Unlock()
	}
	if s.stepper != nil {
		s.judgeKept()
		if a.n%5 == 0 {
			s.releaseKept(s.stepper.Release)
		}
	}
	if a.kind != restartedFromDump || from == nil || s.unsettled {
		from = nil
	}
	s.countFault(a.kind)
	s.start(from)
}

// stop ends a run the way Stop and Run do together, and checks P9.
func (s *simulation) stop(patience time.Duration) {
	s.runFree()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.note("stop")
	began := time.Now()
	s.judge.stopping()
	var err error
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		err = s.subject.Stop(ctx)
	}()
	synctest.Wait()
	ended := make(chan struct{})
	if s.stepper != nil {
		for !s.reflector.done && s.reflector.runnable() {
			s.resume(s.reflector)
		}
		if !s.reflector.done {
			s.fail("P11", "the reflector still runs after it was cancelled")
		}
		s.kept = s.judge.keep()
		go func() {
			defer close(ended)
			s.stepper.End()
		}()
		synctest.Wait()
	}
	s.drain()
	stuck := s.stuck()
	if len(stuck) > 0 {
		s.pass(patience + 11*time.Second)
	}
	s.runFree()
	if s.stepper != nil {
		s.judgeStop(stopped, ended, err, stuck, began)
	}
	s.releaseHandlers()
	<-stopped
	if s.stepper != nil {
		<-ended
	}
	s.running, s.unsettled = false, false
	s.judge.stopped()
	s.handlers = nil
}

// drain runs every handler that can run.
func (s *simulation) drain() {
	for {
		s.runFree()
		s.mu.Lock()
		at := slices.IndexFunc(s.runs, (*task).runnable)
		var t *task
		if at >= 0 {
			t = s.runs[at]
		}
		s.mu.Unlock()
		if t == nil {
			return
		}
		s.resume(t)
		synctest.Wait()
	}
}

// stuck returns the names of the handlers with a callback that does not return.
func (s *simulation) stuck() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, h := range s.handlers {
		if h.inside && h.blocked {
			out = append(out, h.spec.Name)
		}
	}
	return out
}

// releaseHandlers unblocks the blocked handlers.
func (s *simulation) releaseHandlers() {
	s.mu.Lock()
	for _, h := range s.handlers {
		h.blocked = false
	}
	s.mu.Unlock()
	s.wakeFree()
	s.drain()
}

func (s *simulation) judgeStop(stopped, ended <-chan struct{}, err error, stuck []string, began time.Time) {
	if !isDone(stopped) || !isDone(ended) {
		s.fail("P9", "Stop did not return: %d callbacks are running", len(stuck))
		return
	}
	if len(stuck) == 0 {
		if err != nil {
			s.fail("P9", "Stop failed although no handler was running: %v", err)
		}
		if d := time.Since(began); d > 0 {
			s.fail("P11", "a cancelled run took %s to end", d)
		}
	}
	for _, name := range stuck {
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			s.fail("P9", "handler %s is still running, but Stop returned: %v", name, err)
		}
	}
	for _, h := range s.handlers {
		if err != nil && !slices.Contains(stuck, h.spec.Name) &&
			strings.Contains(err.Error(), fmt.Sprintf("%q", h.spec.Name)) {
			s.fail("P9", "handler %s is not running, but Stop returned: %v", h.spec.Name, err)
		}
	}
	s.judgeKept()
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.subject.Health(); h.State != "stopped" {
		s.fail("P14", "after the stop the state is %q", h.State)
	}
}

// judgeKept checks P9: after a stop the store shows what it showed last.
func (s *simulation) judgeKept() {
	if now := s.judge.keep(); now.version != s.kept.version || !maps.Equal(now.shows, s.kept.shows) {
		s.fail("P9", "at the stop the store had %d objects of version %q, and after it %d of version %q",
			len(s.kept.shows), s.kept.version, len(now.shows), now.version)
	}
}

// releaseEarly calls Release during a run, which must fail and change nothing.
func (s *simulation) releaseEarly(release func() error) {
	before := s.judge.keep()
	if err := release(); err == nil {
		s.fail("P9", "Release while it runs is not refused")
	}
	if now := s.judge.keep(); now.version != before.version || !maps.Equal(now.shows, before.shows) {
		s.fail("P9", "Release while it runs changed the store")
	}
}

// releaseKept calls Release on the stopped subject, which must empty the store.
func (s *simulation) releaseKept(release func() error) {
	s.note("release")
	if err := release(); err != nil {
		s.fail("P9", "Release after the stop: %v", err)
	}
	if n := s.subject.Snapshot().Len(); n > 0 {
		s.fail("P9", "%d objects are left in the store after Release", n)
	}
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// settle is the quiet part: faults end, time passes, and everything runs until nothing is left to do. Then the
// promises are checked.
func (s *simulation) settle() {
	s.rng = rand.New(rand.NewPCG(s.plan.seed, 2))
	s.mu.Lock()
	s.note("the quiet part begins")
	s.armed, s.refusals, s.lazy = nil, nil, 1
	if s.plan.repairs {
		s.marks, s.endless, s.noList, s.noWatch, s.noPages = true, false, false, 0, false
	}
	s.mu.Unlock()
	quietEnd := time.Now().Add(30 * time.Minute)
	mended := false
	for turn := 0; ; turn++ {
		s.mu.Lock()
		s.expire()
		s.mu.Unlock()
		for n := 0; s.step(); n++ {
			if n > 20000 {
				s.fail("P11", "it never becomes quiet")
				return
			}
		}
		if !s.unsettled && !mended {
			mended = true
			s.repair()
			continue
		}
		if mended && s.judge.quiet() {
			if s.plan.repairs && len(s.failed) == 0 {
				s.idle(12 * time.Minute)
			}
			break
		}
		if time.Now().After(quietEnd) {
			s.judge.neverQuiet()
			break
		}
		s.mu.Lock()
		s.res.bookmarks++
		s.mu.Unlock()
		s.pass(max(s.nextTime(), time.Millisecond))
	}
	s.judge.final()
	for _, f := range s.followers {
		if s.stepper != nil {
			f.read(s)
		}
	}
	s.stop(time.Second)
	s.judge.atEnd()
}

// repair rewrites every object that could not be stored, and makes a last change to one object.
func (s *simulation) repair() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.model.live() {
		if s.model.current(k).bad {
			s.put(k, flaw{})
		}
	}
	if key, ok := s.key(s.rng.IntN(1000), false); ok {
		s.put(key, flaw{})
	}
}
