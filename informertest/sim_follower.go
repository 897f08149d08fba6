package informertest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/object"
)

// follower is a client that outlives the runs of the subject. It knows what it has seen, and asks for the changes after
// the version that it has reached, as a client with a watch does. If a run begins at an older version, it waits. If the
// changes are not known, it takes a snapshot.
type follower struct {
	name  string
	every int // how rarely it reads

	version object.Version
	known   map[object.Key]seen
	deleted map[string]bool // the UIDs that it saw disappear
	run     int             // in which it read last
	epoch   uint64          // the subject's, then
	branch  int             // the model's
	lost    bool            // what it knows is not what the store had at its version
}

func newFollowers() (all []*follower) {
	for _, every := range []int{1, 4, 15} {
		all = append(all, &follower{name: fmt.Sprintf("f%02d", every), every: every})
	}
	return all
}

// leaveFollowers is called at the end of a run. If versions did not say exactly what the store had, the next run cannot
// go on from them.
func (j *judge) leaveFollowers() {
	if !j.steps() || j.taint == 0 && j.exact() {
		return
	}
	for _, f := range j.s.followers {
		f.lost = true
	}
}

// read takes the changes since the last time. Nothing is judged while a frame is missing that nobody can miss, or while
// the subject has not noticed that history was reset.
func (f *follower) read(s *simulation) {
	if !s.running || s.unsettled || s.judge.taint > 0 || !s.subject.Synced() {
		return
	}
	snap, epoch, branch := s.subject.Snapshot(), s.subject.Health().Epoch, s.model.epoch()
	same := f.known != nil && !f.lost && f.branch == branch &&
		(f.run == s.run && f.epoch == epoch || f.run != s.run && epoch == 0)
	if !s.inHistory(savedState{snap: snap, inexact: !s.judge.exact()}) {
		return // the store has the history from before a reset
	}
	f.run, f.epoch, f.branch, f.lost = s.run, epoch, branch, false
	if !same {
		f.known, f.deleted, f.version = map[object.Key]seen{}, map[string]bool{}, ""
		f.take(s, snap)
		return
	}
	if snap.Version().Before(f.version) {
		return
	}
	s.note("follower %s reads from %s to %s", f.name, f.version, snap.Version())
	changes, ok := s.stepper.Since(f.version)
	if !ok {
		gone := map[object.Key]seen{}
		for k, was := range f.known {
			if _, ok := snap.Get(k); !ok {
				gone[k] = was
			}
		}
		for k := range gone {
			f.apply(s, k, nil, snap)
		}
		f.take(s, snap)
		return
	}
	for key, p := range changes {
		if was, knows := f.known[key]; p != nil && knows && was.write == s.judge.number(p) {
			s.fail("P6", "follower %s: write %d of %s is announced twice", f.name, was.write, key)
		}
		f.apply(s, key, p, snap)
	}
	f.version = snap.Version()
	f.compare(s, snap)
}

// take applies a whole state.
func (f *follower) take(s *simulation, snap SimSnapshot) {
	for k, p := range snap.All() {
		f.apply(s, k, p, snap)
	}
	f.version = snap.Version()
	f.compare(s, snap)
}

// unknownWrite stands for the state of an object that a follower may know in another run.
const unknownWrite = -1

// apply applies one state of an object, or its deletion.
func (f *follower) apply(s *simulation, key object.Key, p *corev1.Pod, snap SimSnapshot) {
	was, knows := f.known[key]
	if p == nil {
		if !knows && !s.unreadable(key, snap) {
			s.fail("P6", "follower %s: the deletion of %s, which it does not know", f.name, key)
		}
		f.deleted[was.uid] = knows && !s.unreadable(key, snap)
		delete(f.known, key)
		return
	}
	uid, version := string(p.UID), versionIn(p)
	if s.unreadable(key, snap) { // the store has an earlier state, of whatever run or history
		f.known[key] = seen{s.judge.number(p), uid, ""}
		return
	}
	switch {
	case s.judge.hidden[key] > 0: // it may look older than it is
	case f.deleted[uid]:
		s.fail("P6", "follower %s: %s comes back as %s", f.name, key, podOf(p))
	case knows && was.uid == uid && version.Before(was.version):
		s.fail("P2", "follower %s: %s goes back from %s to %s", f.name, key, was.version, version)
	}
	if knows && was.uid != uid {
		f.deleted[was.uid] = true
	}
	f.known[key] = seen{s.judge.number(p), uid, version}
}

// compare compares what the follower knows with the store. Objects that cannot be read differ between runs: each has the
// last state that it could read.
func (f *follower) compare(s *simulation, snap SimSnapshot) {
	for _, key := range s.model.keys {
		p, ok := snap.Get(key)
		was, knows := f.known[key]
		switch {
		case s.unreadable(key, snap):
			f.known[key] = seen{write: unknownWrite} // another run may have had an earlier state of it
			if ok {
				f.known[key] = seen{s.judge.number(p), string(p.UID), ""}
			}
		case !ok && was.write == unknownWrite:
			delete(f.known, key)
		case ok != knows:
			s.fail("P6", "follower %s knows of %s: %t; the store at %s has it: %t", f.name, key, knows, snap.Version(), ok)
		case ok && was.write != s.judge.number(p):
			s.fail("P1", "follower %s knows write %d of %s; the store at %s has %s", f.name, was.write, key, snap.Version(),
				podOf(p))
		}
	}
}

// unreadable reports whether the state of an object at a snapshot's version cannot be stored.
func (s *simulation) unreadable(key object.Key, snap SimSnapshot) bool {
	v, err := versionOf(string(snap.Version()))
	if err != nil {
		return false
	}
	st := s.model.now().at(key, v)
	return st != nil && st.bad
}

// number returns the number of the write that made a pod.
func (j *judge) number(p *corev1.Pod) int {
	n, _ := j.write(p)
	return n
}
