package informertest

import "testing/synctest"

// mayWrite judges P11 inside one of the subject's callbacks: whoever writes from there waits for nobody.
func (j *judge) mayWrite(callback string) {
	if s, ok := j.s.subject.(Lockable); ok && !s.Writable() {
		j.s.fail("P11", "%s runs inside a write: it would wait for itself for ever if it added an index", callback)
	}
}

// mayAsk judges P11 inside OnProblem: whoever hears of a problem may take a snapshot, ask for the health and add a
// handler, and is answered before the subject goes on. The questions are asked by a goroutine of their own, so that
// one that has no answer does not hold up the simulation too.
func (j *judge) mayAsk() {
	if !j.steps() {
		return
	}
	answered := ""
	done := make(chan struct{})
	go func() {
		defer close(done)
		j.s.subject.Health()
		answered = "Health"
		j.s.subject.Snapshot()
		answered = "Snapshot"
		spec := SimHandler{Name: "of a report", Backlog: neverReached}
		if sub, err := j.s.subject.Handle(spec, func(Event) {}); err == nil { // it fails during a stop
			sub.Remove()
		}
	}()
	synctest.Wait()
	if isDone(done) {
		return
	}
	after := map[string]string{"": "Health", "Health": "Snapshot", "Snapshot": "a new handler"}[answered]
	j.s.fail("P11", "OnProblem asks for %s and waits for ever: it runs inside the write that it waits for", after)
}
