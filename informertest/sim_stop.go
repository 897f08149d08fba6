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

// restart stops the subject and starts it again: from nothing, or from what it knew.
func (s *simulation) restart(a *action) {
	if !s.running {
		return
	}
	if a.n%3 == 0 || s.dump == nil {
		s.dump = s.judge.dump()
	}
	from := s.dump
	keeps, _ := s.subject.(Releaser)
	if keeps != nil && a.n%7 == 0 {
		s.releaseEarly(keeps)
	}
	s.stop(time.Duration(1+a.n%5) * time.Second)
	if a.n%2 == 0 {
		s.mu.Lock()
		s.write(&action{kind: burst, n: a.n})
		s.mu.Unlock()
	}
	if keeps != nil {
		s.judgeKept()
		if a.n%5 == 0 {
			s.releaseKept(keeps)
		}
	}
	if a.kind != restartedFromDump || from == nil || s.unsettled {
		from = nil
	}
	s.bite(a.kind)
	s.start(from)
}

// stop ends a run the way Stop and Run do together, and holds it to P9.
func (s *simulation) stop(patience time.Duration) {
	s.settleFree()
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
			s.fail("P11", "the reflector goes on after it was cancelled")
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
	s.settleFree()
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

// drain lets every handler run that can.
func (s *simulation) drain() {
	for {
		s.settleFree()
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

// stuck names the handlers whose callback does not return.
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

// releaseHandlers lets blocked handlers go.
func (s *simulation) releaseHandlers() {
	s.mu.Lock()
	for _, h := range s.handlers {
		h.blocked = false
	}
	s.mu.Unlock()
	s.stirUp()
	s.drain()
}

func (s *simulation) judgeStop(stopped, ended <-chan struct{}, err error, stuck []string, began time.Time) {
	if !isDone(stopped) || !isDone(ended) {
		s.fail("P9", "Stop did not return: %d callbacks are running", len(stuck))
		return
	}
	if len(stuck) == 0 {
		if err != nil {
			s.fail("P9", "Stop failed although nothing held it up: %v", err)
		}
		if d := time.Since(began); d > 0 {
			s.fail("P11", "a cancelled run went on for %s", d)
		}
	}
	for _, name := range stuck {
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			s.fail("P9", "handler %s is still running, and Stop says: %v", name, err)
		}
	}
	for _, h := range s.handlers {
		if err != nil && !slices.Contains(stuck, h.spec.Name) &&
			strings.Contains(err.Error(), fmt.Sprintf("%q", h.spec.Name)) {
			s.fail("P9", "handler %s is not running, and Stop says: %v", h.spec.Name, err)
		}
	}
	s.judgeKept()
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.subject.Health(); h.State != "stopped" {
		s.fail("P14", "after the stop the state is %q", h.State)
	}
}

// judgeKept judges P9: after a stop the store shows what it showed last.
func (s *simulation) judgeKept() {
	if now := s.judge.keep(); now.version != s.kept.version || !maps.Equal(now.shows, s.kept.shows) {
		s.fail("P9", "at the stop the store had %d objects of version %q, and after it %d of version %q",
			len(s.kept.shows), s.kept.version, len(now.shows), now.version)
	}
}

// releaseEarly asks a run for its memory, which is refused and changes nothing.
func (s *simulation) releaseEarly(r Releaser) {
	before := s.judge.keep()
	if err := r.Release(); err == nil {
		s.fail("P9", "Release while it runs is not refused")
	}
	if now := s.judge.keep(); now.version != before.version || !maps.Equal(now.shows, before.shows) {
		s.fail("P9", "Release while it runs changed the store")
	}
}

// releaseKept gives up what the stopped subject keeps.
func (s *simulation) releaseKept(r Releaser) {
	s.note("release")
	if err := r.Release(); err != nil {
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

// settle is the quiet part: faults end, time passes, and everything runs until
// nothing is left to do. Then the promises are judged.
func (s *simulation) settle() {
	s.rng = rand.New(rand.NewPCG(s.plan.seed, 2))
	s.mu.Lock()
	s.note("the quiet part begins")
	s.armed, s.refusals, s.lazy = nil, nil, 1
	if s.plan.patient {
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
				s.fail("P11", "it never comes to rest")
				return
			}
		}
		if !s.unsettled && !mended {
			mended = true
			s.mend()
			continue
		}
		if mended && s.judge.quiet() {
			if s.plan.patient && len(s.failed) == 0 {
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
	s.stop(time.Second)
	s.judge.atEnd()
}

// mend writes every object anew that could not be stored, and a last change for all
// to see.
func (s *simulation) mend() {
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
