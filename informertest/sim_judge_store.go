package informertest

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/object"
)

// checkLog checks the store's log over a stretch of a few batches.
func (j *judge) checkLog() {
	if !j.steps() {
		return
	}
	snap, epoch := j.s.subject.Snapshot(), j.s.subject.Health().Epoch
	now := shown(snap)
	if from := j.stretch; from.snap != nil && from.epoch == epoch {
		for _, f := range from.replays(j.s.stepper.Since, now) {
			j.s.fail(f.promise, "%s", f.what)
		}
	}
	j.stretch = heldSnapshot{snap, now, epoch}
}

// keptState is the content of the store, to be compared with its content later.
type keptState struct {
	version object.Version
	shows   map[object.Key]string
}

// keep records the content of the store.
func (j *judge) keep() keptState {
	snap := j.s.subject.Snapshot()
	return keptState{snap.Version(), shown(snap)}
}

// checkSynced checks what a reader relies on when the subject reports synced: the store holds a whole state, and what
// is missing there does not exist.
func (j *judge) checkSynced() {
	s := j.s
	if !j.steps() || !s.running || !s.subject.Synced() {
		return
	}
	if snap := s.subject.Snapshot(); snap.Version() == "" {
		s.fail("P9", "run %d is synced, but its store is empty", s.run)
	}
}

// contents returns the keys and UIDs in the store.
func (j *judge) contents() map[object.Key]string {
	out := map[object.Key]string{}
	for k, p := range j.s.subject.Snapshot().All() {
		out[k] = string(p.UID)
	}
	return out
}

// heldSnapshot is a snapshot and the content it had when it was taken.
type heldSnapshot struct {
	snap  SimSnapshot
	shows map[object.Key]string
	epoch uint64
}

// hold takes a snapshot and keeps it.
func (j *judge) hold() {
	j.checkStore()
	j.checkHeld()
	if len(j.held) < 5 {
		snap := j.s.subject.Snapshot()
		j.held = append(j.held, heldSnapshot{snap, shown(snap), j.s.subject.Health().Epoch})
	}
}

// checkHeld checks the snapshots that were kept.
func (j *judge) checkHeld() {
	epoch := j.s.subject.Health().Epoch
	for _, h := range j.held {
		found := h.unchanged()
		if j.steps() && h.epoch == epoch {
			found = append(found, h.replays(j.s.stepper.Since, shown(j.s.subject.Snapshot()))...)
		}
		for _, f := range found {
			j.s.fail(f.promise, "%s", f.what)
		}
	}
}

// logReader has the signature of Stepper.Since.
type logReader = func(object.Version) (changes iter.Seq2[object.Key, *corev1.Pod], ok bool)

// replays checks the log, for P8: the content of the snapshot plus all changes since must be the content now, unless
// the log does not reach back that far.
func (h heldSnapshot) replays(since logReader, now map[object.Key]string) []failure {
	changes, ok := since(h.snap.Version())
	if !ok {
		return nil
	}
	was := maps.Clone(h.shows)
	n := 0
	for k, p := range changes {
		n++
		if p == nil {
			delete(was, k)
		} else {
			was[k] = podOf(p)
		}
	}
	if !maps.Equal(was, now) {
		return []failure{{"P8",
			fmt.Sprintf("the %d changes since version %s do not lead from the state then, %d objects, to the state now, %d", n,
				h.snap.Version(), len(h.shows), len(now))}}
	}
	return nil
}

func shown(snap SimSnapshot) map[object.Key]string {
	out := map[object.Key]string{}
	for k, p := range snap.All() {
		out[k] = podOf(p)
	}
	return out
}

// unchanged checks P8: a snapshot's content never changes.
func (h heldSnapshot) unchanged() []failure {
	if now := shown(h.snap); !maps.Equal(now, h.shows) {
		return []failure{{"P8", fmt.Sprintf("a snapshot of version %s has changed: it had %d objects and has %d",
			h.snap.Version(), len(h.shows), len(now))}}
	}
	return nil
}

// checkStore compares the store with the model.
func (j *judge) checkStore() {
	s := j.s
	defer func() {
		if p := recover(); p != nil {
			s.fail("P8", "a snapshot cannot be read: %v", p)
		}
	}()
	snap := s.subject.Snapshot()
	if !s.running || snap.Version() == "" {
		return
	}
	for _, f := range j.indexed(snap) {
		s.fail(f.promise, "%s", f.what)
	}
	if j.taint > 0 || !j.steps() {
		return
	}
	if f := s.model.compare(snap, j.exact(), s.plan.transform); f != "" {
		s.fail("P8", "the store at version %s: %s", snap.Version(), f)
	}
	if j.restores > 0 {
		return // a restore may bring back a deleted object in a state that does not decode
	}
	for _, f := range j.stays.check(s.model, snap, s.subject.Health().Epoch, j.hidden) {
		s.fail(f.promise, "%s", f.what)
	}
}

// staying is an earlier content of the store, to check P12: an object with a later state that does not decode stays as
// it was.
type staying struct {
	uids  map[object.Key]string
	epoch uint64
}

func (st *staying) check(m *model, snap SimSnapshot, epoch uint64, hidden map[object.Key]int) (out []failure) {
	now := map[object.Key]string{}
	for k, p := range snap.All() {
		now[k] = string(p.UID)
	}
	v, err := versionOf(string(snap.Version()))
	if err == nil && st.epoch == epoch {
		b := m.branches[len(m.branches)-1]
		for _, k := range m.keys {
			want := b.at(k, v)
			if uid, had := st.uids[k]; had && hidden[k] == 0 && now[k] == "" && want != nil && want.bad && want.uid == uid {
				out = append(out,
					failure{"P12", fmt.Sprintf("%s does not decode at version %d, and its earlier state is gone", k, v)})
			}
		}
	}
	st.uids, st.epoch = now, epoch
	return out
}

// compare compares a snapshot with the state at its version, in the newest history or in a replaced one. If changes
// were coalesced in the queue, an object may be newer than the snapshot's version, which holds for all objects.
func (m *model) compare(snap SimSnapshot, exact, transformed bool) (complaint string) {
	v, err := versionOf(string(snap.Version()))
	if err != nil {
		return err.Error()
	}
	for i := len(m.branches) - 1; i >= 0; i-- {
		f := m.branches[i].compare(m, snap, v, exact, transformed)
		if f == "" {
			return ""
		}
		if complaint == "" {
			complaint = f
		}
	}
	return complaint
}

func (b *branch) compare(m *model, snap SimSnapshot, v uint64, exact, transformed bool) string {
	n := 0
	for _, k := range m.keys {
		p, ok := snap.Get(k)
		want := b.at(k, v)
		if ok {
			n++
			if f := intact(p, m.state(p), transformed); f != "" {
				return f
			}
		}
		switch have := m.state(p); {
		case want != nil && want.bad: // it keeps its earlier state, or is not stored
		case want == nil && !ok, want != nil && have == want:
		case !exact && b.later(k, want, have, v):
		case want == nil:
			return fmt.Sprintf("%s is stored as %s, but should not exist", k, podOf(p))
		default:
			return fmt.Sprintf("%s is %s, but should be write %d at %d", k, podOf(p), want.write, want.version)
		}
	}
	if n != snap.Len() {
		return fmt.Sprintf("it has %d objects, of which %d are known", snap.Len(), n)
	}
	return ""
}

// later reports whether a key may have this state when everything up to v has been applied.
func (b *branch) later(key object.Key, want, have *podState, v uint64) bool {
	if have != nil {
		return have.version > v && slices.Contains(b.states[key], have)
	}
	for _, st := range b.states[key] {
		if st.gone && st.version > v {
			return true
		}
	}
	return want == nil
}

// intact returns how a stored pod differs from what was written, or "".
func intact(p *corev1.Pod, st *podState, transformed bool) string {
	switch {
	case st == nil:
		return "an object that was never written: " + podOf(p)
	case string(p.UID) != st.uid, p.Spec.NodeName != st.pod.Spec.NodeName,
		p.ResourceVersion != strconv.FormatUint(st.version, 10):
		return fmt.Sprintf("%s has changed: uid %s node %s version %s", st.key, p.UID, p.Spec.NodeName, p.ResourceVersion)
	case p.Kind != "Pod" || p.APIVersion != "v1":
		return fmt.Sprintf("%s carries apiVersion %q and kind %q", st.key, p.APIVersion, p.Kind)
	case transformed && p.Generation != 1, !transformed && p.Generation != 0:
		return fmt.Sprintf("%s was transformed %d times", st.key, p.Generation)
	}
	return ""
}

// indexed checks P8: the indexes of a snapshot match its objects.
func (j *judge) indexed(snap SimSnapshot) (out []failure) {
	want := map[string]int{}
	for _, p := range snap.All() {
		if x := p.Labels[labelIndex]; x != "fail" && x != "panic" {
			want["x="+x]++
		}
		want["node="+p.Spec.NodeName]++
	}
	for _, v := range []struct{ index, value string }{{"x", "a"}, {"x", "b"}, {"x", "c"}, {"x", "fail"}, {"x", "panic"},
		{"node", "node-0"}, {"node", "node-1"}} {
		n := 0
		for p := range snap.ByIndex(v.index, v.value) {
			n++
			now, ok := snap.Get(keyOfPod(p))
			if !ok || podOf(now) != podOf(p) {
				out = append(out,
					failure{"P8", fmt.Sprintf("index %s=%s has %s of %s, but the objects have %s", v.index, v.value, podOf(p),
						keyOfPod(p), podOf(now))})
			}
		}
		if n != want[v.index+"="+v.value] {
			out = append(out,
				failure{"P8", fmt.Sprintf("index %s=%s has %d objects of %d", v.index, v.value, n, want[v.index+"="+v.value])})
		}
	}
	return out
}

func keyOfPod(p *corev1.Pod) object.Key { return object.NewKey(p.Namespace, p.Name) }

// dump returns the content of the store, to start from it later.
func (j *judge) dump() *SimState {
	if !j.synced || j.taint > 0 || j.s.unsettled || j.s.subject.Health().Coalesced > 0 {
		return nil
	}
	snap := j.s.subject.Snapshot()
	v, err := versionOf(string(snap.Version()))
	if m := j.s.model; err != nil || m.now().compare(m, snap, v, true, j.s.plan.transform) != "" {
		return nil // from a replaced history: undetectable once the new history has passed it
	}
	d := &SimState{Version: snap.Version()}
	for _, p := range snap.All() {
		d.Pods = append(d.Pods, p)
	}
	return d
}
