package informertest

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mirador-k8s/mirador/object"
)

// Each check is tested with a history that breaks its promise and with one that does not.

// state returns a pod as the simulator writes it.
func state(write int, version, uid string) *corev1.Pod {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "a",
			ResourceVersion: version, UID: types.UID(uid), Labels: map[string]string{labelWrite: strconv.Itoa(write),
				labelIndex: "a"}}}
}

func writeOf(p *corev1.Pod) (int, string) {
	if p == nil {
		return -1, ""
	}
	n, _ := strconv.Atoi(p.Labels[labelWrite])
	return n, string(p.UID)
}

const aKey = object.Key("blue/a")

func added(p *corev1.Pod) Event { return Event{Type: object.Added, Key: aKey, New: p} }
func updated(old, p *corev1.Pod) Event {
	return Event{Type: object.Updated, Key: aKey, Old: old, New: p}
}
func gone(old *corev1.Pod) Event { return Event{Type: object.Deleted, Key: aKey, Old: old} }

func initially(e Event) Event         { e.Initial = true; return e }
func inEpoch(n uint64, e Event) Event { e.Epoch = n; return e }

func TestHandlerLogDetectsBrokenPromises(t *testing.T) {
	one, two, three := state(1, "10", "u1"), state(2, "20", "u1"), state(3, "30", "u2")
	bare := state(2, "20", "u1")
	bare.TypeMeta = metav1.TypeMeta{}
	for _, c := range []struct {
		what    string
		events  []Event
		promise string // "" if none is broken
	}{
		{"correct", []Event{added(one), updated(one, two), gone(two), added(three)}, ""},
		{"a version goes back", []Event{added(two), updated(two, state(1, "10", "u1"))}, "P2"},
		{"a version goes back by a later write", []Event{added(two), updated(two, state(3, "10", "u1"))}, "P2"},
		{"a version goes back in a new epoch", []Event{added(two), inEpoch(1, updated(two, one))}, ""},
		{"an epoch goes back", []Event{inEpoch(2, added(one)), inEpoch(1, updated(one, two))}, "P2"},
		{"old is not what was seen last", []Event{added(one), updated(two, state(4, "40", "u1"))}, "P3"},
		{"a resync with another state", []Event{added(one), {Type: object.Resynced, Key: aKey, Old: two, New: two}}, "P3"},
		{"added twice", []Event{added(one), added(two)}, "P6"},
		{"another object by an update", []Event{added(one), updated(one, three)}, "P6"},
		{"updated without an add", []Event{updated(one, two)}, "P6"},
		{"deleted twice", []Event{added(one), gone(one), gone(one)}, "P6"},
		{"another is deleted", []Event{added(one), gone(three)}, "P6"},
		{"an initial update", []Event{added(one), initially(updated(one, two))}, "P5"},
		{"initial and was not there", []Event{initially(Event{Type: object.Added, Key: "blue/b", New: one})}, "P5"},
		{"without its kind", []Event{added(one), updated(one, bare)}, "P10"},
	} {
		l := newHandlerLog("h", false)
		l.base = map[object.Key]string{aKey: "u1"}
		var got []failure
		for _, e := range c.events {
			got = append(got, l.add(e, writeOf, true)...)
		}
		expectPromise(t, c.what, got, c.promise)
	}
}

func expectPromise(t *testing.T, what string, got []failure, promise string) {
	t.Helper()
	if promise == "" && len(got) > 0 || promise != "" &&
		!slices.ContainsFunc(got, func(f failure) bool { return f.promise == promise }) {
		t.Errorf("%s: judged %v, want %q", what, got, promise)
	}
}

func TestP3_DifferentOrdersAreDetected(t *testing.T) {
	order := func(writes ...int) *handlerLog {
		l := newHandlerLog("h", false)
		for _, w := range writes {
			l.order = append(l.order, orderedEvent{what: object.Updated, key: object.Key(strconv.Itoa(w % 10)), write: w})
		}
		return l
	}
	all := order(1, 2, 11, 3, 12)
	for _, c := range []struct {
		what      string
		l         *handlerLog
		coalesced bool
		promise   string
	}{
		{"the same", order(1, 2, 11, 3, 12), false, ""},
		{"from its middle", order(11, 3, 12), false, ""},
		{"one left out", order(1, 2, 3, 12), false, "P3"},
		{"swapped", order(2, 1, 11, 3, 12), false, "P3"},
		{"unknown", order(77), false, "P3"},
		{"merged, per object in order", order(11, 2, 3, 12), true, ""},
		{"merged, an object goes back", order(11, 1), true, "P3"},
	} {
		expectPromise(t, c.what, c.l.follows(all, c.coalesced, false), c.promise)
	}
}

func TestP5_SyncedWithoutAnInitialObjectIsDetected(t *testing.T) {
	l := newHandlerLog("h", false)
	l.base = map[object.Key]string{aKey: "u1", "blue/b": "u2"}
	l.add(initially(added(state(1, "10", "u1"))), writeOf, true)
	never := func(object.Key, string) bool { return false }
	expectPromise(t, "one is missing", l.nowSynced(never), "P5")
	expectPromise(t, "initial after synced",
		l.add(initially(Event{Type: object.Added, Key: "blue/b", New: state(2, "5", "u2")}), writeOf, true), "P5")
}

func TestP11_StormsAreDetected(t *testing.T) {
	at := time.Unix(1000, 0)
	var w stormWatch
	var got []failure
	for range 20 {
		w.bad(at, 0, false)
		got = append(got, w.request(at, false)...)
		at = at.Add(100 * time.Millisecond)
	}
	expectPromise(t, "ten a second", got, "P11")

	w, got = stormWatch{}, nil
	wait := backoffFirst
	for range 20 {
		w.bad(at, 0, false)
		at = at.Add(wait)
		wait = min(2*wait, backoffMost)
		got = append(got, w.request(at, false)...)
	}
	expectPromise(t, "with backoff", got, "")

	w = stormWatch{}
	w.bad(at, 5*time.Second, false)
	expectPromise(t, "a millisecond too early", w.request(at.Add(5*time.Second-time.Millisecond), false), "P11")
	w.bad(at, 5*time.Second, false)
	expectPromise(t, "in time", w.request(at.Add(5*time.Second), false), "")
}

func TestP14_WrongHealthIsDetected(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		what    string
		h       SimHealth
		reading string
		sleeps  bool
		promise string
	}{
		{"streaming", SimHealth{Health: Health{State: "streaming", Version: "7", LastEvent: now}}, "watch", false, ""},
		{"listing while it streams", SimHealth{Health: Health{State: "listing", Version: "7"}}, "watch", false, "P14"},
		{"streaming while it lists", SimHealth{Health: Health{State: "streaming", Version: "7"}}, "list", false, "P14"},
		{"a version from the future", SimHealth{Health: Health{State: "streaming", Version: "8"}}, "watch", false, "P14"},
		{"a LastEvent in the future", SimHealth{Health: Health{State: "streaming", Version: "7", LastEvent: now.Add(1)}},
			"watch", false, "P14"},
		{"streaming while it waits", SimHealth{Health: Health{State: "streaming", Version: "7"}}, "", true, "P14"},
		{"waiting without an error", SimHealth{Health: Health{State: "retrying", Version: "7"}}, "", true, "P12"},
	} {
		expectPromise(t, c.what, judgeHealth(&c.h, c.reading, now, now, 7, c.sleeps), c.promise)
	}
}

// fakeSnapshot is a snapshot whose content a test can change.
type fakeSnapshot struct {
	version object.Version
	pods    map[object.Key]*corev1.Pod
	index   map[string][]*corev1.Pod
}

func (s *fakeSnapshot) Version() object.Version { return s.version }
func (s *fakeSnapshot) Len() int                { return len(s.pods) }
func (s *fakeSnapshot) Get(k object.Key) (*corev1.Pod, bool) {
	p, ok := s.pods[k]
	return p, ok
}
func (s *fakeSnapshot) All() iter.Seq2[object.Key, *corev1.Pod] {
	return func(yield func(object.Key, *corev1.Pod) bool) {
		for k, p := range s.pods {
			if !yield(k, p) {
				return
			}
		}
	}
}
func (s *fakeSnapshot) ByIndex(index, value string) iter.Seq[*corev1.Pod] {
	return slices.Values(s.index[index+"="+value])
}

// simulationOf runs do with a simulation in which one object was written three times and deleted in between: write 0
// at version 2, write 1 at 3, deleted at 4, write 2 at 5 as a new object.
func simulationOf(t *testing.T, do func(s *simulation, shown func(write int) *corev1.Pod)) {
	synctest.Test(t, func(t *testing.T) {
		s := &simulation{plan: &plan{keys: 2}, server: NewServer(), model: newModel(2), out: discard{}, began: time.Now()}
		s.judge = newJudge(s)
		s.judge.begin(nil)
		s.res = s.server.resources[pods]
		k := s.model.keys[0]
		s.put(k, flaw{})
		s.put(k, flaw{})
		s.drop(k)
		s.put(k, flaw{})
		do(s, func(write int) *corev1.Pod {
			p := s.model.writes[write].pod.DeepCopy()
			p.ResourceVersion = strconv.FormatUint(s.model.writes[write].version, 10)
			p.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
			return p
		})
	})
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

func TestP8_SnapshotsThatDifferFromTheModelAreDetected(t *testing.T) {
	simulationOf(t, func(s *simulation, shown func(int) *corev1.Pod) {
		k, other := s.model.keys[0], s.model.keys[1]
		bare, twice := shown(1), shown(1)
		bare.TypeMeta, twice.Generation = metav1.TypeMeta{}, 1
		foreign := shown(1)
		foreign.Labels[labelWrite] = "99"
		for _, c := range []struct {
			what    string
			version object.Version
			pods    map[object.Key]*corev1.Pod
			exact   bool
			ok      bool
		}{
			{"the state at 3", "3", map[object.Key]*corev1.Pod{k: shown(1)}, true, true},
			{"a state too old", "3", map[object.Key]*corev1.Pod{k: shown(0)}, true, false},
			{"a state too new", "2", map[object.Key]*corev1.Pod{k: shown(1)}, true, false},
			{"a state too new, coalesced", "2", map[object.Key]*corev1.Pod{k: shown(1)}, false, true},
			{"a state too old, coalesced", "3", map[object.Key]*corev1.Pod{k: shown(0)}, false, false},
			{"gone", "4", nil, true, true},
			{"not gone", "4", map[object.Key]*corev1.Pod{k: shown(1)}, true, false},
			{"gone too early", "3", nil, true, false},
			{"recreated", "5", map[object.Key]*corev1.Pod{k: shown(2)}, true, true},
			{"in the wrong place", "3", map[object.Key]*corev1.Pod{k: shown(1), other: shown(1)}, true, false},
			{"one too many", "3", map[object.Key]*corev1.Pod{k: shown(1), "red/x": shown(1)}, true, false},
			{"without its kind", "3", map[object.Key]*corev1.Pod{k: bare}, true, false},
			{"transformed", "3", map[object.Key]*corev1.Pod{k: twice}, true, false},
			{"an object that was never written", "3", map[object.Key]*corev1.Pod{k: foreign}, true, false},
		} {
			if got := s.model.compare(&fakeSnapshot{version: c.version, pods: c.pods}, c.exact, false); (got == "") != c.ok {
				t.Errorf("%s: judged %q", c.what, got)
			}
		}
	})
}

func TestP8_WrongIndexesAreDetected(t *testing.T) {
	simulationOf(t, func(s *simulation, shown func(int) *corev1.Pod) {
		k := s.model.keys[0]
		index := func(pods ...*corev1.Pod) map[string][]*corev1.Pod {
			out := map[string][]*corev1.Pod{}
			for _, p := range pods {
				out["x="+p.Labels[labelIndex]] = append(out["x="+p.Labels[labelIndex]], p)
				out["node="+p.Spec.NodeName] = append(out["node="+p.Spec.NodeName], p)
			}
			return out
		}
		now := map[object.Key]*corev1.Pod{k: shown(1)}
		expectPromise(t, "right", s.judge.indexed(&fakeSnapshot{pods: now, index: index(shown(1))}), "")
		expectPromise(t, "an entry left behind",
			s.judge.indexed(&fakeSnapshot{pods: now, index: index(shown(0), shown(1))}), "P8")
		expectPromise(t, "an entry missing", s.judge.indexed(&fakeSnapshot{pods: now}), "P8")
	})
}

func TestP8_AChangedSnapshotIsDetected(t *testing.T) {
	sh := &fakeSnapshot{version: "3", pods: map[object.Key]*corev1.Pod{aKey: state(1, "3", "u1")}}
	h := heldSnapshot{snap: sh, shows: shown(sh)}
	expectPromise(t, "as it was", h.unchanged(), "")
	sh.pods[aKey] = state(2, "4", "u1")
	expectPromise(t, "changed", h.unchanged(), "P8")
}

// changeLog is a log that reaches back to every version.
type changeLog map[object.Key]*corev1.Pod

func (l changeLog) since(object.Version) (iter.Seq2[object.Key, *corev1.Pod], bool) {
	return maps.All(l), true
}

func TestP8_AnIncompleteLogIsDetected(t *testing.T) {
	sh := &fakeSnapshot{version: "3", pods: map[object.Key]*corev1.Pod{aKey: state(1, "3", "u1"),
		"gone/away": state(2, "2", "u2")}}
	h := heldSnapshot{snap: sh, shows: shown(sh)}
	now := map[object.Key]string{aKey: podOf(state(4, "5", "u1"))}
	expectPromise(t, "all of it", h.replays(changeLog{aKey: state(4, "5", "u1"), "gone/away": nil}.since, now), "")
	expectPromise(t, "without the delete", h.replays(changeLog{aKey: state(4, "5", "u1")}.since, now), "P8")
	expectPromise(t, "an older state", h.replays(changeLog{aKey: state(3, "4", "u1"), "gone/away": nil}.since, now), "P8")
}

func TestP12_ADroppedUndecodableObjectIsDetected(t *testing.T) {
	simulationOf(t, func(s *simulation, shown func(int) *corev1.Pod) {
		k := s.model.keys[0]
		b := s.model.branches[0]
		last := b.states[k][len(b.states[k])-1]
		corrupt := *last
		corrupt.bad, corrupt.version = true, last.version+1
		b.states[k] = append(b.states[k], &corrupt)
		v := object.Version(strconv.FormatUint(corrupt.version, 10))
		before := &fakeSnapshot{version: v,
			pods: map[object.Key]*corev1.Pod{k: {ObjectMeta: metav1.ObjectMeta{UID: types.UID(last.uid)}}}}
		var st staying
		expectPromise(t, "at first", st.check(s.model, before, 0, nil), "")
		expectPromise(t, "it stays", st.check(s.model, before, 0, nil), "")
		expectPromise(t, "it is gone", st.check(s.model, &fakeSnapshot{version: v}, 0, nil), "P12")
		expectPromise(t, "it was gone before", st.check(s.model, &fakeSnapshot{version: v}, 0, nil), "")
	})
}

func TestP4_AStoreBehindItsEventsIsDetected(t *testing.T) {
	simulationOf(t, func(s *simulation, shown func(int) *corev1.Pod) {
		k := s.model.keys[0]
		add := Event{Type: object.Added, Key: k, New: shown(1), Version: "3"}
		last := Event{Type: object.Added, Key: k, New: shown(2), Version: "5"}
		end := Event{Type: object.Deleted, Key: k, Old: shown(1), Version: "4"}
		for _, c := range []struct {
			what   string
			e      Event
			stored *corev1.Pod
			ok     bool
		}{
			{"there", add, shown(1), true}, {"further", add, shown(2), true}, {"behind", add, shown(0), false},
			{"deleted since", add, nil, true}, {"missing", last, nil, false}, {"gone", end, nil, true},
			{"not gone", end, shown(1), false},
		} {
			if got := storedFirst(c.e, c.stored, c.stored != nil, 0, s.model); (got == "") != c.ok {
				t.Errorf("%s: judged %q", c.what, got)
			}
		}
	})
}

func TestP6P7_MissingEventsAreDetected(t *testing.T) {
	simulationOf(t, func(s *simulation, shown func(int) *corev1.Pod) {
		k := s.model.keys[0]
		l := newHandlerLog("h", false)
		there := &fakeSnapshot{pods: map[object.Key]*corev1.Pod{k: shown(2)}}
		expectPromise(t, "nothing", l.complete(there, s.model), "P7")
		l.known[k] = seen{write: 1}
		expectPromise(t, "an old state", l.complete(there, s.model), "P7")
		expectPromise(t, "its end", l.complete(&fakeSnapshot{}, s.model), "P6")
		l.known[k] = seen{write: 2}
		expectPromise(t, "all", l.complete(there, s.model), "")
	})
}

func TestP13_ASecondTransformIsDetected(t *testing.T) {
	simulationOf(t, func(s *simulation, shown func(int) *corev1.Pod) {
		s.judge.transform(shown(0))
		expectPromise(t, "once", s.failed, "")
		s.judge.transform(shown(0))
		expectPromise(t, "twice", s.failed, "P13")
	})
}

func TestP12_AnUnreportedBadAnswerIsDetected(t *testing.T) {
	simulationOf(t, func(s *simulation, _ func(int) *corev1.Pod) {
		s.judge.noticed(&exchange{s: s})
		s.judge.problem("watch", "", errCut, 0)
		s.judge.stepped()
		expectPromise(t, "reported", s.failed, "")
		s.judge.noticed(&exchange{s: s})
		s.judge.stepped()
		expectPromise(t, "not reported", s.failed, "P12")
	})
}

func TestP9_AStopThatNamesNoRunningHandlerIsDetected(t *testing.T) {
	simulationOf(t, func(s *simulation, shown func(int) *corev1.Pod) {
		closed := make(chan struct{})
		close(closed)
		sub := &idleSubject{health: SimHealth{Health: Health{State: "stopped"}}}
		s.subject = sub
		s.judgeStop(closed, closed, nil, nil, time.Now())
		expectPromise(t, "stopped", s.failed, "")
		s.judgeStop(closed, closed, nil, []string{"h01"}, time.Now())
		expectPromise(t, "it names no handler", s.failed, "P9")
		s.failed = nil
		s.judgeStop(make(chan struct{}), closed, nil, nil, time.Now())
		expectPromise(t, "it does not return", s.failed, "P9")
		s.failed = nil
		sub.pods = map[object.Key]*corev1.Pod{aKey: shown(0)}
		s.kept = s.judge.keep()
		s.judgeStop(closed, closed, nil, nil, time.Now())
		expectPromise(t, "the state stays readable", s.failed, "")
		sub.pods = nil
		s.judgeStop(closed, closed, nil, nil, time.Now())
		expectPromise(t, "the state is gone", s.failed, "P9")
	})
}

func TestP9_ARunThatIsSyncedWithAnEmptyStoreIsDetected(t *testing.T) {
	simulationOf(t, func(s *simulation, shown func(int) *corev1.Pod) {
		sub := &idleSubject{synced: true}
		s.subject, s.stepper, s.running = sub, sub, true
		s.judge.checkSynced()
		expectPromise(t, "synced and empty", s.failed, "P9")
		s.failed = nil
		sub.synced = false
		s.judge.checkSynced()
		expectPromise(t, "not synced", s.failed, "")
	})
}

func TestP9_AReleaseThatDoesNothingOrTooMuchIsDetected(t *testing.T) {
	simulationOf(t, func(s *simulation, shown func(int) *corev1.Pod) {
		sub := &idleSubject{pods: map[object.Key]*corev1.Pod{aKey: shown(0)}}
		s.subject = sub
		s.releaseKept(func() error { return nil })
		expectPromise(t, "nothing is released", s.failed, "P9")
		s.failed = nil
		s.releaseEarly(func() error { return errCut })
		expectPromise(t, "refused", s.failed, "")
		s.releaseEarly(func() error { sub.pods = nil; return errCut })
		expectPromise(t, "refused, and emptied", s.failed, "P9")
	})
}

// idleSubject is a subject that does nothing.
type idleSubject struct {
	Simulated
	Stepper
	health SimHealth
	pods   map[object.Key]*corev1.Pod
	synced bool
}

func (s *idleSubject) Synced() bool { return s.synced }

func (s *idleSubject) Health() SimHealth     { return s.health }
func (s *idleSubject) Snapshot() SimSnapshot { return &fakeSnapshot{pods: s.pods} }

func TestP1_AStoreThatDiffersIsDetected(t *testing.T) {
	simulationOf(t, func(s *simulation, shown func(int) *corev1.Pod) {
		sub := &idleSubject{pods: map[object.Key]*corev1.Pod{s.model.keys[0]: shown(2)}}
		s.subject = sub
		if got := s.judge.differs(); got != "" {
			t.Errorf("the same: judged %q", got)
		}
		sub.pods = map[object.Key]*corev1.Pod{s.model.keys[0]: shown(1)}
		s.judge.neverQuiet()
		expectPromise(t, "an old state", s.failed, "P1")
	})
}

func TestShrinkKeepsTheActionsThatFail(t *testing.T) {
	p := drawPlan(7)
	p.actions[10].n, p.actions[60].n = -1, -2
	short := shrink(p, func(p *plan) bool {
		has := func(n int) bool { return slices.ContainsFunc(p.actions, func(a action) bool { return a.n == n }) }
		return has(-1) && has(-2)
	})
	if len(short.actions) != 2 {
		t.Errorf("%d actions are left of %d, want the two that matter", len(short.actions), len(p.actions))
	}
}

func TestEveryKindHasAName(t *testing.T) {
	for _, name := range FaultKinds() {
		if strings.TrimSpace(name) == "" {
			t.Error("a kind of fault has no name")
		}
	}
}
