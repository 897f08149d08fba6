package informertest

import (
	"iter"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/object"
)

// followed is a subject with one object and a log.
type followed struct {
	idleSubject
	snap *fakeSnapshot
	log  []*corev1.Pod // nil for a deletion
	key  object.Key
}

func (s *followed) Snapshot() SimSnapshot { return s.snap }

func (s *followed) Since(object.Version) (iter.Seq2[object.Key, *corev1.Pod], bool) {
	return func(yield func(object.Key, *corev1.Pod) bool) {
		for _, p := range s.log {
			if !yield(s.key, p) {
				return
			}
		}
	}, true
}

func TestAFollowerDetectsWhatARunAnnouncesWrongly(t *testing.T) {
	simulationOf(t, func(s *simulation, shown func(int) *corev1.Pod) {
		key := s.model.keys[0]
		at := func(v object.Version, p *corev1.Pod) *fakeSnapshot {
			snap := &fakeSnapshot{version: v, pods: map[object.Key]*corev1.Pod{}}
			if p != nil {
				snap.pods[key] = p
			}
			return snap
		}
		for _, c := range []struct {
			what          string
			before, after *fakeSnapshot
			log           []*corev1.Pod
			promise       string
		}{
			{"correct", at("2", shown(0)), at("5", shown(2)), []*corev1.Pod{shown(1), nil, shown(2)}, ""},
			{"nothing new", at("3", shown(1)), at("3", shown(1)), nil, ""},
			{"an older state is waited for", at("3", shown(1)), at("2", shown(0)), []*corev1.Pod{shown(0)}, ""},
			{"announced twice", at("2", shown(0)), at("3", shown(1)), []*corev1.Pod{shown(0), shown(1)}, "P6"},
			{"a change is missing", at("2", shown(0)), at("3", shown(1)), nil, "P1"},
			{"a deletion is missing", at("2", shown(0)), at("4", nil), nil, "P6"},
			{"a deletion of nothing", at("4", nil), at("5", shown(2)), []*corev1.Pod{nil, shown(2)}, "P6"},
			{"it goes back", at("3", shown(1)), at("5", shown(2)), []*corev1.Pod{shown(0), nil, shown(2)}, "P2"},
			{"it comes back", at("3", shown(1)), at("5", shown(2)), []*corev1.Pod{nil, shown(1), nil, shown(2)}, "P6"},
		} {
			sub := &followed{snap: c.before, key: key, idleSubject: idleSubject{synced: true}}
			s.subject, s.stepper, s.running, s.failed, s.run = sub, sub, true, nil, 1
			f := &follower{name: "f"}
			f.read(s)
			sub.snap, sub.log, s.run = c.after, c.log, 2
			f.read(s)
			expectPromise(t, c.what, s.failed, c.promise)
		}
	})
}
