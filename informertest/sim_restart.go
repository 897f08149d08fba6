package informertest

import (
	"time"
)

// savedState is a state that the subject has saved.
type savedState struct {
	*SimState
	snap    SimSnapshot // the store at that time
	inexact bool        // changes were coalesced before: objects may be newer than the version
}

// maxSaves is how many saved states are kept. A killed subject starts from any of them.
const maxSaves = 6

// save lets the subject save its state, if the state is one that a version describes.
func (s *simulation) save() {
	if s.stepper == nil || !s.running || s.unsettled || s.judge.taint > 0 || !s.subject.Synced() {
		return
	}
	snap := s.subject.Snapshot()
	saved := savedState{snap: snap, inexact: !s.judge.exact()}
	if !s.inHistory(saved) {
		return // of a replaced history, which nobody can tell once the new history has passed it
	}
	var err error
	if saved.SimState, err = s.stepper.Save(); err != nil {
		s.fail("P14", "saving the state: %v", err)
		return
	}
	s.saves = append(s.saves, saved)
	s.saves = s.saves[max(0, len(s.saves)-maxSaves):]
}

// inHistory reports whether a saved state is one of the server's current history.
func (s *simulation) inHistory(saved savedState) bool {
	v, err := versionOf(string(saved.snap.Version()))
	return err == nil && v <= s.server.history.version &&
		s.model.now().compare(s.model, saved.snap, v, !saved.inexact, s.plan.transform) == ""
}

// mixed reports whether objects are newer than the version of the state: such a state is not resumed.
func (s savedState) mixed() bool {
	for _, p := range s.Pods {
		if s.Version.Before(versionIn(p)) {
			return true
		}
	}
	return false
}

// keepUp lets the subject save its state, and followers read, from time to time.
func (s *simulation) keepUp(a *action) {
	if !s.plan.saves || s.stepper == nil {
		return
	}
	if a.n%3 == 0 {
		s.save()
	}
	for _, f := range s.followers {
		if a.n%f.every == 0 {
			f.read(s)
		}
	}
}

// comeBack stops the subject and starts it from a saved state: the last one, or an earlier one if it was killed, so that
// the last changes were not saved. Meanwhile the server goes on, drops its history or is restored.
func (s *simulation) comeBack(a *action) {
	if !s.running {
		return
	}
	loses := a.kind == killed || a.kind != resumed && a.n%2 == 0
	if !loses {
		s.save()
	}
	s.stop(time.Duration(1+a.n%5) * time.Second)
	if s.stepper != nil {
		s.judgeKept()
	}
	from, v := s.savedFor(a, loses), uint64(0)
	if from != nil {
		v, _ = versionOf(string(from.Version))
	}
	s.mu.Lock()
	if a.n%3 > 0 {
		s.write(&action{kind: burst, n: a.n})
	}
	switch a.kind {
	case compactedMeanwhile:
		s.compact()
	case restoredMeanwhile:
		s.restore(a)
		for i := range a.n % 5 {
			if s.server.history.version+2 < v { // below what was saved, so that it is noticed
				s.write(&action{kind: update, n: a.n + i})
			}
		}
	}
	s.mu.Unlock()
	s.pass(a.d)
	if from == nil {
		s.start(nil)
		return
	}
	current := s.inHistory(*from)
	switch {
	case !current && v <= s.server.history.version:
		s.start(nil) // it cannot be told from a state of the current history
		return
	case !current:
		s.unsettled = true // the version is from the future
	}
	s.countFault(a.kind)
	s.start(from.SimState)
	mixed := from.mixed()
	if mixed {
		s.judge.mixed++
	}
	s.judge.inexact = from.inexact
	s.judge.resumes = current && !mixed && v >= s.server.history.compacted
}

// savedFor picks the saved state that the subject starts from.
func (s *simulation) savedFor(a *action, loses bool) *savedState {
	n := len(s.saves)
	if n == 0 {
		return nil
	}
	if loses {
		return &s.saves[a.n%n]
	}
	return &s.saves[n-1]
}
