package informertest

import "testing/synctest"

// checkWritable checks P11 inside one of the subject's callbacks: a write from the callback must not block.
func (j *judge) checkWritable(callback string) {
	if j.steps() && !j.s.stepper.Writable() {
		j.s.fail("P11", "%s runs inside a write: a callback that adds an index would deadlock", callback)
	}
}

// checkCallsInOnProblem checks P11 inside OnProblem: the callback may take a snapshot, read the health and add a
// handler, and gets an answer before the subject continues. A separate goroutine makes the calls, so that one that
// blocks does not block the simulation.
func (j *judge) checkCallsInOnProblem() {
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
	j.s.fail("P11", "OnProblem calls %s and deadlocks: it runs inside the write that the call waits for", after)
}
