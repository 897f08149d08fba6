package informertest

import (
	"fmt"
)

// stopping is called when the run is about to be stopped.
func (j *judge) stopping() {
	j.cancelled = true
	j.checkStore()
	j.checkHeld()
}

// stopped is called when the run was stopped.
func (j *judge) stopped() {
	j.orders(true)
	j.leaveFollowers()
	for _, h := range j.s.handlers {
		h.over = true
	}
	j.inStep, j.reported = 0, 0
}

// orders compares every handler's order of events with the reference order.
func (j *judge) orders(ended bool) {
	var witness *handler
	for _, h := range j.s.handlers {
		if h.witness {
			witness = h
		}
	}
	for _, h := range j.s.handlers {
		if h.witness || h.sub == nil || witness == nil {
			continue
		}
		coalesced := h.spec.Backlog >= 0 && h.spec.Backlog < neverReached
		for _, f := range h.log.follows(witness.log, coalesced, ended || h.removed) {
			j.s.fail(f.promise, "%s", f.what)
		}
	}
}

// quiet reports whether the subject is idle and has caught up.
func (j *judge) quiet() bool {
	s := j.s
	if s.running && s.unsettled || j.taint > 0 && j.mended == 0 {
		return false
	}
	if !s.subject.Synced() || j.differs() != "" {
		return false
	}
	if s.noWatch != 0 {
		return !j.steps() || s.subject.Health().State == "polling"
	}
	for _, ex := range s.exchanges {
		if !ex.over() && ex.answered && ex.verb == "watch" && ex.end == nil && !ex.held {
			return true
		}
	}
	return false
}

// differs returns how the store differs from the server's state, or "".
func (j *judge) differs() string {
	snap := j.s.subject.Snapshot()
	n := 0
	for _, k := range j.s.model.keys {
		want := j.s.model.current(k)
		p, ok := snap.Get(k)
		switch {
		case want == nil && ok:
			return fmt.Sprintf("%s is stored as %s, but does not exist", k, podOf(p))
		case want != nil && (!ok || j.s.model.state(p) != want):
			return fmt.Sprintf("%s is stored as %s, but is write %d at %d", k, podOf(p), want.write, want.version)
		case ok:
			n++
		}
	}
	if n != snap.Len() {
		return fmt.Sprintf("%d objects are stored, of which %d exist", snap.Len(), n)
	}
	return ""
}

// neverQuiet is called when the subject did not become quiet in time.
func (j *judge) neverQuiet() {
	h := j.s.subject.Health()
	why := j.differs()
	if why == "" {
		j.s.fail("P11", "half an hour after the last fault no watch is open: it is %s: %v", h.State, h.Err)
		return
	}
	j.s.fail("P1", "half an hour after the last fault %s; it is %s at %s: %v", why, h.State, h.Version, h.Err)
}

// final checks what can be checked when everything is quiet.
func (j *judge) final() {
	s := j.s
	if f := j.differs(); f != "" {
		return // reported already
	}
	j.checkStore()
	h := s.subject.Health()
	if j.steps() {
		if want := map[bool]string{true: "streaming", false: "polling"}[s.noWatch == 0]; h.State != want {
			s.fail("P14", "everything is quiet, but health says %q instead of %q", h.State, want)
		}
		for doing, n := range map[string]int{"index": j.expected["index"], "transform": j.expected["transform"],
			"handle": j.panicked,
			"report": j.problems["report"]} {
			if j.problems[doing] != n || h.Counts[doing] != uint64(n) {
				s.fail("P12", "%s failed %d times, was reported %d times and counted %d times", doing, n,
					j.problems[doing], h.Counts[doing])
			}
		}
		if h.LastEvent.Before(j.lastFrame) {
			s.fail("P14", "LastEvent is %s, but a frame was read at %s", h.LastEvent, j.lastFrame)
		}
		if j.unreadable > 0 && j.problems["decode"] == 0 {
			s.fail("P12", "%d objects could not be decoded, but none was reported", j.unreadable)
		}
		if resets := j.restores + j.staleReads + j.mixed; h.Epoch > uint64(resets) {
			s.fail("P2", "%d epochs began, but history was reset %d times", h.Epoch, resets)
		}
	}
	if !j.steps() && (j.bad > 0 && sum(j.problems) == 0) {
		s.fail("P12", "%d bad answers were met and nothing was reported", j.bad)
	}
	for _, h := range s.handlers {
		if h.removed || h.sub == nil || h.blocked {
			continue
		}
		if !h.sub.HasSynced() {
			s.fail("P5", "everything is quiet, but handler %s has not synced", h.spec.Name)
		}
		for _, f := range h.log.complete(s.subject.Snapshot(), s.model) {
			s.fail(f.promise, "%s", f.what)
		}
	}
	j.orders(false)
}

// complete compares the handler's last states with the store when everything is quiet.
func (l *handlerLog) complete(snap SimSnapshot, m *model) (out []failure) {
	for _, k := range m.keys {
		p, ok := snap.Get(k)
		knows, known := l.known[k]
		switch {
		case known && !ok:
			out = append(out,
				failure{"P6", fmt.Sprintf("handler %s never received the delete of %s (%s)", l.name, k, knows.uid)})
		case ok && !known:
			out = append(out, failure{"P7", fmt.Sprintf("handler %s never received %s", l.name, k)})
		case ok && m.state(p) != nil && m.state(p).write != knows.write:
			out = append(out,
				failure{"P7", fmt.Sprintf("handler %s last received write %d of %s, but the store has %d", l.name, knows.write,
					k, m.state(p).write)})
		}
	}
	return out
}

// atEnd is called when everything was stopped.
func (j *judge) atEnd() {
	s := j.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.server.OpenWatches(); n > 0 && j.steps() {
		s.fail("P9", "%d watches are open after the stop", n)
	}
	for _, t := range s.runs {
		if !t.done {
			s.fail("P9", "handler %s is left running", t.name)
		}
	}
}
