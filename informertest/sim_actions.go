package informertest

import (
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// perform runs one action of the plan and then the steps that follow it.
func (s *simulation) perform(a *action) {
	s.steps++
	s.runFree()
	s.rng = rand.New(rand.NewPCG(a.seed, s.plan.seed))
	s.note("action %s", a)
	s.act(a)
	for range a.steps {
		if !s.step() {
			s.pass(min(s.nextTime(), time.Duration(1+s.rng.Int64N(int64(3*time.Second)))))
		}
	}
	s.judge.betweenActions()
	s.keepUp(a)
}

func (s *simulation) act(a *action) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch k := a.kind; {
	case k <= burst:
		s.write(a)
	case k >= firstRestart:
		s.mu.Unlock()
		s.comeBack(a)
		s.mu.Lock()
	case k == bookmarks:
		s.res.bookmarks++
	case k == lazyConsumer:
		s.lazy = 1 + a.n%2*(1+a.n%30)
	case k == passTime, k == clockJump:
		s.mu.Unlock()
		s.pass(a.d)
		s.mu.Lock()
		if k == clockJump {
			s.countFault(k)
		}
	case k == takeSnapshot:
		s.mu.Unlock()
		s.judge.hold()
		s.mu.Lock()
	case k >= frameLost && k <= frameGarbage:
		s.armed = append(s.armed, *a)
	case k >= gonePage && k <= staleWatch, k == cutList, k == silentList:
		for range 1 + a.n%3 {
			s.refusals = append(s.refusals, *a)
		}
	case k == cutWatch, k == silentWatch:
		s.onWatches(a)
	case k >= failingIndex:
		s.writeFlawed(a)
	case k == panickingReport:
		s.judge.panics += 1 + a.n%3
	case k == restored:
		s.restore(a)
	case k == noBookmarks:
		s.marks = !s.marks
		s.countFault(k)
	case k == bookmarksOnly:
		if s.unsettled {
			return // see write
		}
		for range 1 + a.n%5 {
			s.writeElsewhere()
		}
		s.res.bookmarks++
		s.countFault(k)
	case k == noInitialEnd:
		s.endless = !s.endless
	case k == noWatchList:
		s.noList = !s.noList
	case k == watchDenied, k == watchUnsupported:
		s.toggleWatches(k)
	case k == expiringPages:
		if s.noPages = !s.noPages; s.noPages {
			s.relist()
		}
	case k == compaction:
		s.compact()
		s.countFault(k)
	default:
		s.mu.Unlock()
		s.actOnHandlers(a)
		s.mu.Lock()
	}
}

// below reports whether a restored server can write n times more and still be behind the version that the subject
// knows, or will know from a list that it is still reading. Once the server has passed that version, no informer can
// notice that history was reset, so the simulation does not go there. Before, it reuses versions.
func (s *simulation) below(n int) bool {
	known, err := versionOf(string(s.subject.Health().Version))
	for _, ex := range s.exchanges {
		if ex.answered && !ex.over() && (ex.verb == "list" || ex.initial) && ex.version > 0 {
			known = min(known, ex.version)
		}
	}
	return err == nil && s.server.history.version+2*uint64(n) < known // a recreation is two writes
}

// write performs an action that only writes objects.
func (s *simulation) write(a *action) {
	n := 1
	if a.kind == burst {
		n = 2 + a.n%12
	}
	if s.unsettled && !s.below(n) {
		return
	}
	for i := range n {
		k := a.kind
		if k == burst {
			k = []kind{create, update, update, remove, recreate}[s.rng.IntN(5)]
		}
		key, ok := s.key(a.n+i*7, k != create)
		if !ok {
			continue
		}
		switch k {
		case create, update:
			s.put(key, flaw{})
		case remove:
			s.drop(key)
		case recreate:
			s.drop(key)
			s.put(key, flaw{})
		}
	}
}

func (s *simulation) writeFlawed(a *action) {
	key, ok := s.key(a.n, a.n%2 == 0)
	if !ok || s.unsettled {
		return
	}
	var f flaw
	switch a.kind {
	case failingIndex:
		f.index = "fail"
	case panickingIndex:
		f.index = "panic"
	case failingTransform:
		f.transform = "fail"
	case panickingTransform:
		f.transform = "panic"
	case undecodable:
		f.corrupt = true
		s.countFault(undecodable)
	}
	s.put(key, f)
}

// onWatches cuts the open watches, or makes them silent.
func (s *simulation) onWatches(a *action) {
	for _, ex := range s.exchanges {
		if ex.verb != "watch" || !ex.answered || ex.end != nil || ex.closed || ex.bad != "" {
			continue
		}
		s.countFault(a.kind)
		if a.kind == silentWatch {
			ex.held = true
			s.note("request %d: silent", ex.id)
			continue
		}
		if a.n%2 == 0 && len(ex.frames) > 0 { // a frame already sent may still arrive
			s.deliver(ex, ex.frames[0])
		}
		ex.cut("watch cut")
	}
}

// answerWith answers a request, applying the first pending fault that fits it.
func (s *simulation) answerWith(ex *exchange) {
	var a *action
	at := slices.IndexFunc(s.refusals, func(a action) bool { return a.fits(ex) })
	if at >= 0 {
		a = &s.refusals[at]
		defer func(at int) { s.refusals = slices.Delete(s.refusals, at, at+1) }(at)
	}
	f := Fault{}
	if f.Code = s.refusal(ex); f.Code != 0 {
		s.answer(ex, f)
		return
	}
	if s.noList && ex.initial {
		f.RefuseInitialEvents = true
		s.countFault(noWatchList)
		s.answer(ex, f)
		return
	}
	if a == nil {
		s.answer(ex, f)
		return
	}
	s.note("request %d meets %s", ex.id, a.kind)
	switch a.kind {
	case gonePage, goneWatch:
		f.Code = 410
	case goneEvent:
		f.Status = new(statusFor(410, 0, "watch", s.res.gvr.GroupResource(), ""))
	case throttled:
		f.Code, f.RetryAfter = 429, a.d
	case serverError:
		f.Code = 500
	case forbidden:
		f.Code = 403
	case notServed:
		f.Code = 404
	case refused:
		f.Refuse = true
	case staleList:
		h := &s.server.history
		f.StaleAt = formatVersion(max(h.compacted, h.version-min(h.version, uint64(a.n%30)), 1))
	}
	s.countFault(a.kind)
	s.answer(ex, f)
	switch a.kind {
	case staleList:
		s.judge.staleReads++
		s.judge.resumes = false
	case staleWatch:
		if ex.watch != nil && !ex.initial {
			ex.watch.cursor = max(s.server.history.compacted, ex.watch.cursor-min(ex.watch.cursor, uint64(a.n%30)))
			s.judge.staleReads++
			s.judge.resumes = false
		}
	case silentList:
		ex.held = ex.end == nil
	case cutList:
		if ex.end == nil {
			n := len(ex.rest) * (a.n % 100) / 100
			ex.inbox = append(ex.inbox, ex.rest[:n]...)
			ex.cut("list cut")
		}
	}
}

// fits reports whether a pending fault can apply to this request.
func (a *action) fits(ex *exchange) bool {
	switch a.kind {
	case gonePage:
		return ex.verb == "list"
	case cutList, silentList:
		return ex.verb == "list"
	case staleList:
		return (ex.verb == "list" && !ex.more) || ex.initial
	case goneWatch, goneEvent:
		return ex.verb == "watch"
	case staleWatch:
		return ex.verb == "watch" && !ex.initial
	}
	return true
}

// applyToFrame applies an armed fault to a frame.
func (s *simulation) applyToFrame(ex *exchange, f frame, a action) {
	s.note("request %d: %s %s version %d meets %s", ex.id, f.what, f.key, f.version, a.kind)
	s.countFault(a.kind)
	switch a.kind {
	case frameLost:
		ex.cut("frame lost")
	case frameLostSilently:
		ex.held, ex.frames = true, nil
	case frameLostUnnoticed:
		ex.lossy = true
		s.judge.lossy(ex, f)
	case frameDelayed:
		ex.heldUntil = time.Now().Add(a.d)
		ex.frames = slices.Insert(ex.frames, 0, f)
	case frameTwice:
		s.deliver(ex, f)
		s.deliver(ex, f)
	case frameCut:
		ex.inbox = append(ex.inbox, f.bytes[:len(f.bytes)*(a.n%100)/100]...)
		ex.cut("frame truncated")
	case frameGarbage:
		ex.inbox = append(ex.inbox, s.garbage()...)
		ex.bad = "garbage"
		ex.end, ex.frames = ex.broken(), nil
	}
}

func (s *simulation) garbage() []byte { return form{protobuf: !s.plan.json}.garbageFrame() }

// expire ends the streams in which a frame is missing. A subject cannot detect that, so the simulator forces a relist.
func (s *simulation) expire() {
	if s.judge.taint == 0 || s.judge.mended > 0 {
		return
	}
	for _, ex := range s.exchanges {
		if (ex.lossy || !ex.initial) && ex.watch != nil && ex.end == nil && !ex.closed {
			ex.frames = nil
			ex.writes = nil
			ex.watch.onFrame = nil
			ex.watch.sendStatus(statusFor(410, 0, "watch", s.res.gvr.GroupResource(), ""))
			ex.inbox = append(ex.inbox, slices.Concat(ex.writes...)...)
			ex.bad = "410 event"
			s.judge.resumes = false
			ex.finish()
		}
	}
}

func (s *simulation) compact() {
	if err := s.server.Compact(formatVersion(s.server.history.version)); err != nil {
		s.fail("setup", "%v", err)
	}
	s.note("compacted at %d", s.server.history.version)
}

// restore sets the server's history back.
func (s *simulation) restore(a *action) {
	h := &s.server.history
	back := uint64(a.n % 40)
	to := max(h.compacted, h.version-min(h.version-1, back))
	if to >= h.version {
		return
	}
	if err := s.server.Restore(formatVersion(to)); err != nil {
		s.fail("setup", "%v", err)
		return
	}
	s.countFault(restored)
	s.note("restored to version %d", to)
	s.model.restore(to)
	s.judge.restores++
	s.judge.resumes = false
	s.dump = nil
	for _, ex := range s.exchanges {
		if ex.watch != nil || ex.answered && ex.verb == "list" {
			ex.cut("server restored")
		}
	}
	s.unsettled = s.running
}

// actOnHandlers performs actions on handlers and on the run as a whole.
func (s *simulation) actOnHandlers(a *action) {
	switch a.kind {
	case joiningHandler:
		if s.running && len(s.handlers) < 7 {
			s.join(false)
			s.countFault(a.kind)
		}
		return
	case stopped, restartedFromDump:
		s.restart(a)
		return
	}
	var others []*handler
	for _, h := range s.handlers {
		if !h.witness && !h.removed {
			others = append(others, h)
		}
	}
	if len(others) == 0 {
		return
	}
	h := others[a.n%len(others)]
	s.mu.Lock()
	defer s.mu.Unlock()
	switch a.kind {
	case slowHandler:
		h.slow = a.n % 8
		s.countFault(a.kind)
	case blockedHandler:
		h.blocked = !h.blocked
	case panickingHandler:
		h.panics += 1 + a.n%3
	case leavingHandler:
		s.note("handler %s leaves", h.spec.Name)
		h.removed = true
		s.mu.Unlock()
		h.sub.Remove()
		s.mu.Lock()
		s.countFault(a.kind)
	}
}

func podOf(p *corev1.Pod) string {
	if p == nil {
		return "-"
	}
	return p.Labels[labelWrite] + "@" + p.ResourceVersion
}
