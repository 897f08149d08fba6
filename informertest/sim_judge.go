package informertest

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	kwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/object"
)

// judge holds a run to the promises, at once where that can be seen at once and at
// the end otherwise.
type judge struct {
	s *simulation

	storm      stormWatch
	problems   map[string]int // by what was attempted, told by OnProblem
	expected   map[string]int // the same, as the simulator knows it
	panicked   int
	bad        int // bad answers noticed
	inStep     int // bad answers noticed in the reflector's step that is under way
	reported   int // problems told in it
	staleReads int
	restores   int
	cancelled  bool

	// Of the run under way.
	taint      int // the request after which a list must have come; 0 for none
	mended     int // the request that shows that it was read
	mendedAt   uint64
	listing    int // the last list
	aborted    int
	transforms map[string]int // by write and version
	deleted    map[string]bool
	told       uint64 // the highest version that was let through
	heard      time.Time
	word       time.Time // when a whole frame was last read
	unreadable int       // frames of a watch that were read and do not decode
	held       []heldSnapshot
	stays      staying
	stretch    heldSnapshot // where the one begins that checkLog judges next
	synced     bool
	firstKnown bool
	firstState map[object.Key]string // UIDs of what the first list had, of what can be stored; nil where a frame was lost
	lastState  map[object.Key]string // of what the last one had
	lastStream *exchange             // what brought it, where that was a watch
	maxBatch   int
}

func newJudge(s *simulation) *judge {
	return &judge{s: s, problems: map[string]int{}, expected: map[string]int{}}
}

// begin is called at the start of a run.
func (j *judge) begin(from *SimState) {
	j.taint, j.mended, j.aborted, j.told, j.held, j.synced = 0, 0, 0, 0, nil, false
	j.transforms, j.deleted = map[string]int{}, map[string]bool{}
	j.cancelled, j.firstState, j.lastState, j.lastStream, j.firstKnown = false, nil, nil, nil, from != nil
	j.storm, j.stretch, j.stays = stormWatch{}, heldSnapshot{}, staying{}
	if from != nil {
		v, _ := versionOf(string(from.Version))
		j.told = v
		j.firstState = map[object.Key]string{}
		for _, p := range from.Pods {
			j.firstState[keyOfPod(p)] = string(p.UID)
		}
	}
}

// steps is false for what runs free: some things can only be seen between steps.
func (j *judge) steps() bool { return j.s.stepper != nil }

// indexes are the functions that the subject indexes by.
func (j *judge) indexes() map[string]func(*corev1.Pod) ([]string, error) {
	return map[string]func(*corev1.Pod) ([]string, error){
		"x": func(p *corev1.Pod) ([]string, error) {
			switch v := p.Labels[labelIndex]; v {
			case "fail":
				j.expect("index", failingIndex)
				return nil, errors.New("a simulated index function fails")
			case "panic":
				j.expect("index", panickingIndex)
				panic("a simulated index function panics")
			default:
				return []string{v}, nil
			}
		},
		"node": func(p *corev1.Pod) ([]string, error) { return []string{p.Spec.NodeName}, nil },
	}
}

// expect notes a failure that the subject has to report.
func (j *judge) expect(doing string, k kind) {
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	j.expected[doing]++
	j.s.bite(k)
}

// transform is what the subject transforms by.
func (j *judge) transform(p *corev1.Pod) (*corev1.Pod, error) {
	switch p.Labels[labelTransform] {
	case "fail":
		j.expect("transform", failingTransform)
		return nil, errors.New("a simulated transform fails")
	case "panic":
		if !j.s.free { // client-go's process would end
			j.expect("transform", panickingTransform)
			panic("a simulated transform panics")
		}
		j.expect("transform", panickingTransform)
		return nil, errors.New("a simulated transform fails")
	}
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	id := string(p.UID) + "@" + p.ResourceVersion
	j.transforms[id]++
	// A list that was given up has transformed what the next one brings again: what
	// was staged is thrown away with the list.
	if n := j.transforms[id]; n > 1+j.aborted+j.staleReads+j.restores {
		j.s.fail("P13", "%s of %s/%s was transformed %d times", p.ResourceVersion, p.Namespace, p.Name, n)
	}
	p.Generation++
	return p, nil
}

// problem is told of everything that the subject reports.
func (j *judge) problem(doing string, key object.Key, err error, wait time.Duration) {
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	text := err.Error()
	if at := strings.IndexByte(text, '\n'); at >= 0 {
		text = text[:at] // a stack has addresses in it
	}
	j.s.note("problem: %s %s: %s", doing, key, text)
	j.problems[doing]++
	j.reported++
	if doing == "list" || doing == "initial state" {
		j.aborted++
	}
}

// request is called when a request is made.
func (j *judge) request(ex *exchange) {
	if j.cancelled && j.steps() {
		j.s.fail("P9", "request %d is made after the stop", ex.id)
	}
	switch {
	case ex.verb == "list":
		j.listing = ex.id
	case !ex.initial && j.taint > 0 && j.listing > j.taint:
		j.mended = ex.id // no watch follows a list but one that was read whole
		j.mendedAt, _ = versionOf(ex.asked)
	}
	// A state that was read whole is the first, however late it is consumed: a watch
	// follows a list, and anything else the end of an initial stream.
	if was := j.lastStream; !j.firstKnown && (ex.verb == "watch" && !ex.initial || was != nil && !was.unread) {
		j.firstState, j.firstKnown = j.lastState, true
	}
	j.lastStream = nil
	for _, f := range j.storm.request(ex.at, ex.more) {
		j.s.fail(f.promise, "%s", f.what)
	}
}

// noticed is called when the subject has seen that an answer is bad.
func (j *judge) noticed(ex *exchange) {
	j.inStep++
	j.bad++
	if ex.more || ex.err != nil {
		j.aborted++
	}
	var wait time.Duration
	if ex.resp != nil && ex.code != http.StatusOK {
		seconds, _ := strconv.Atoi(ex.resp.Header.Get("Retry-After"))
		wait = time.Duration(seconds) * time.Second
		if ex.code == http.StatusGatewayTimeout {
			// The version asked for is not there yet, says this one. Asking for another
			// is a new question, which nobody has to wait for.
			wait = 0
		}
	}
	j.storm.bad(time.Now(), wait, ex.verb == "watch" && ex.err == nil && ex.code == http.StatusOK && time.Since(ex.answeredAt) >= backoffFirst)
}

// read is called when the subject has read bytes.
func (j *judge) read(ex *exchange, n int) {
	if ex.code == http.StatusOK {
		j.heard = time.Now()
	}
	if n > 0 && len(ex.inbox) == 0 && ex.whole {
		j.word = time.Now()
		if ex.undecodable {
			j.unreadable++
		}
		ex.whole, ex.undecodable = false, false
	}
	if ex.verb == "watch" && time.Since(ex.answeredAt) >= backoffFirst {
		j.storm.lived()
	}
}

// delivered is called when a frame was let through.
func (j *judge) delivered(ex *exchange, f frame) {
	if f.what == kwatch.Deleted {
		j.deleted[f.uid] = true
	}
	if f.what != kwatch.Error {
		j.told = max(j.told, f.version)
	}
	if f.initialEnd {
		j.listed(ex)
	}
	if ex.whole = len(ex.inbox) == len(f.bytes); ex.whole { // nothing before it can spoil it
		ex.undecodable = f.spoilt && f.what != kwatch.Deleted && (!ex.initial || ex.stated && !f.initialEnd)
	}
}

// listed is called when a whole state was let through.
func (j *judge) listed(ex *exchange) {
	if ex.initial && j.taint > 0 && ex.id > j.taint {
		j.mended, j.mendedAt = ex.id, ex.version
	}
	j.told = max(j.told, ex.version)
	if ex.initial {
		j.lastStream = ex
	}
	j.lastState = map[object.Key]string{}
	if ex.lossy {
		j.lastState = nil // nobody can know what is missing
	}
	for _, k := range j.s.model.keys {
		if st := j.s.model.branches[ex.epoch].at(k, ex.version); st != nil && !st.bad && !ex.lossy {
			j.lastState[k] = st.uid
		}
	}
}

// lossy is called when a stream goes on without a frame.
func (j *judge) lossy(ex *exchange) { j.taint, j.mended = ex.id, 0 }

// stepped is called when a step of the reflector has ended.
func (j *judge) stepped() {
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	if j.inStep > 0 && j.reported == 0 && !j.cancelled {
		j.s.fail("P12", "%d bad answers were met and nothing was reported", j.inStep)
	}
	j.inStep, j.reported = 0, 0
}

// reflected is called when the reflector waits.
func (j *judge) reflected() {
	h := j.s.subject.Health()
	now := time.Now()
	for _, f := range judgeHealth(&h, j.reading(), now, j.heard, j.told, j.s.wakeAt.After(now)) {
		j.s.fail(f.promise, "%s", f.what)
	}
	if total(h.Counts) != uint64(sum(j.problems)) {
		j.s.fail("P12", "%d problems were told and %d counted", sum(j.problems), total(h.Counts))
	}
}

// reading says what the reflector is waiting for.
func (j *judge) reading() string {
	for _, ex := range j.s.exchanges {
		switch {
		case ex.over():
		case ex.verb == "list":
			return "list"
		case ex.answered && ex.initial && !ex.stated:
			return "initial"
		case ex.answered && ex.end == nil && len(ex.inbox) == 0 && ex.bad == "":
			if ex.initial {
				return "either"
			}
			return "watch"
		}
	}
	return ""
}

// judgeHealth holds what a subject says of itself against what it is doing (P14).
func judgeHealth(h *SimHealth, reading string, now, heard time.Time, told uint64, sleeps bool) (out []failure) {
	fail := func(format string, args ...any) { out = append(out, failure{"P14", fmt.Sprintf(format, args...)}) }
	switch {
	case reading == "list" && h.State != "listing", reading == "initial" && h.State != "listing":
		fail("the state is being read, and health says %q", h.State)
	case reading == "watch" && h.State != "streaming":
		fail("a watch is being read, and health says %q", h.State)
	case reading == "" && sleeps && h.State != "retrying" && h.State != "not served" && h.State != "stopped":
		fail("it waits after a failure, and health says %q", h.State)
	}
	if h.LastWord.After(heard) {
		fail("the last word is said to be from %s, and was at %s", h.LastWord, heard)
	}
	if v, err := versionOf(string(h.Version)); err != nil || v > told {
		fail("health is at version %q, and the server has told %d", h.Version, told)
	}
	if sleeps && h.Err == nil {
		out = append(out, failure{"P12", "it waits after a failure, and health has no error"})
	}
	return out
}

func sum(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}

func total(m map[string]uint64) (n uint64) {
	for _, v := range m {
		n += v
	}
	return n
}

// consumed is called when a batch went into the store.
func (j *judge) consumed() {
	s := j.s
	if j.mended > 0 && s.stepper.Waiting() == 0 {
		snap := s.subject.Snapshot()
		v, _ := versionOf(string(snap.Version()))
		if v >= j.mendedAt && s.model.compare(snap, s.subject.Health().Coalesced == 0, s.plan.transform) == "" {
			j.taint, j.mended = 0, 0 // the list that mends it has arrived
		}
	}
	if !j.synced && s.subject.Synced() {
		j.nowSynced()
	}
	if s.rng.IntN(4) == 0 {
		j.checkStore()
		j.checkLog()
	}
	j.checkHandlers()
}

// checkLog judges what the log says of a stretch of a few batches.
func (j *judge) checkLog() {
	log, ok := j.s.subject.(Historian)
	if !ok {
		return
	}
	snap, epoch := j.s.subject.Snapshot(), j.s.subject.Health().Epoch
	now := shown(snap)
	if from := j.stretch; from.snap != nil && from.epoch == epoch {
		for _, f := range from.replays(log, now) {
			j.s.fail(f.promise, "%s", f.what)
		}
	}
	j.stretch = heldSnapshot{snap, now, epoch}
}

func (j *judge) nowSynced() {
	j.synced = true
	if !j.firstKnown {
		j.firstState, j.firstKnown = j.lastState, true
	}
	for _, h := range j.s.handlers {
		if !h.log.late && h.log.base == nil && j.steps() { // which list one took that runs free cannot be seen
			h.log.base = j.firstState
		}
	}
}

// contents gives the keys that the store has.
func (j *judge) contents() map[object.Key]string {
	out := map[object.Key]string{}
	for k, p := range j.s.subject.Snapshot().All() {
		out[k] = string(p.UID)
	}
	return out
}

// look is called between actions.
func (j *judge) look() {
	if !j.steps() {
		if !j.synced && j.s.subject.Synced() {
			j.nowSynced()
		}
		if j.mended > 0 {
			j.taint, j.mended = 0, 0
		}
	}
	j.checkHandlers()
}

// checkHandlers sees which handlers have synced, and how much waits for them.
func (j *judge) checkHandlers() {
	for _, h := range j.s.handlers {
		if h.removed || h.sub == nil {
			continue
		}
		if !h.log.synced && h.sub.HasSynced() {
			_, coalesced := h.sub.Backlog()
			snap := j.s.subject.Snapshot()
			for _, f := range h.log.nowSynced(func(k object.Key, uid string) bool {
				p, ok := snap.Get(k)
				return coalesced > 0 && (!ok || string(p.UID) != uid)
			}) {
				j.s.fail(f.promise, "%s", f.what)
			}
		}
		if waiting, _ := h.sub.Backlog(); h.spec.Backlog >= 0 && waiting > h.spec.Backlog+2*len(j.s.model.keys)+2*j.maxBatch+8 {
			// The batch that a handler is busy with, or is about to begin, does not count.
			j.s.fail("P7", "%d events wait for handler %s, which has a backlog of %d", waiting, h.spec.Name, h.spec.Backlog)
		}
	}
}

// track begins to follow a handler.
func (j *judge) track(h *handler) {
	if !h.log.late && j.synced && j.steps() {
		h.log.base = j.firstState
	}
}

// event is called with each event of each handler.
func (j *judge) event(h *handler, e Event, stored *corev1.Pod, ok bool, epoch uint64) {
	s := j.s
	for _, f := range h.log.add(e, j.write, j.steps()) {
		if f.promise == "P2" && j.spared() {
			continue
		}
		s.fail(f.promise, "%s", f.what)
	}
	if h.over {
		return
	}
	if f := storedFirst(e, stored, ok, epoch, s.model); f != "" && !j.spared() {
		s.fail("P4", "handler %s: %s", h.spec.Name, f)
	}
	if e.Type == object.Delete && !e.Missed && !j.deleted[string(e.Old.UID)] {
		s.fail("P6", "handler %s: the delete of %s was never seen, and is not marked missed", h.spec.Name, e.Key)
	}
}

// spared says that the subject is not judged by where versions go: history was set
// back, and who has no epochs cannot tell of that.
func (j *judge) spared() bool { return !j.steps() && j.restores+j.staleReads > 0 }

// storedFirst judges P4: the store has the event's state, or a later one.
func storedFirst(e Event, stored *corev1.Pod, ok bool, epoch uint64, m *model) string {
	if e.Epoch != epoch {
		return "" // of a history that was given up since
	}
	if e.Type == object.Delete {
		if ok && stored.UID == e.Old.UID && versionIn(stored).Before(e.Version) {
			return fmt.Sprintf("told that %s is gone, and the store has it at %s", e.Key, stored.ResourceVersion)
		}
		return ""
	}
	if ok {
		if versionIn(stored).Before(versionIn(e.New)) {
			return fmt.Sprintf("told of %s at %s, and the store has it at %s", e.Key, e.New.ResourceVersion, stored.ResourceVersion)
		}
		return ""
	}
	v, _ := versionOf(e.New.ResourceVersion)
	for _, b := range m.branches {
		for _, st := range b.states[e.Key] {
			if st.gone && st.version > v {
				return ""
			}
		}
	}
	if len(m.branches) > 1 {
		return "" // a restored history may never have had it
	}
	return fmt.Sprintf("told of %s at %s, and the store has nothing", e.Key, e.New.ResourceVersion)
}

// write finds the write that made a pod.
func (j *judge) write(p *corev1.Pod) (int, string) {
	st := j.s.model.state(p)
	if st == nil {
		return -1, ""
	}
	return st.write, string(p.UID)
}

// heldSnapshot is one that was taken, and what it showed then.
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

// checkHeld judges the snapshots that were kept.
func (j *judge) checkHeld() {
	log, _ := j.s.subject.(Historian)
	epoch := j.s.subject.Health().Epoch
	for _, h := range j.held {
		found := h.unchanged()
		if log != nil && h.epoch == epoch {
			found = append(found, h.replays(log, shown(j.s.subject.Snapshot()))...)
		}
		for _, f := range found {
			j.s.fail(f.promise, "%s", f.what)
		}
	}
}

// replays judges the log, by P8: what a snapshot showed and everything since is what
// the store has now, unless the log says that it does not reach back so far.
func (h heldSnapshot) replays(log Historian, now map[object.Key]string) []failure {
	changes, ok := log.Since(h.snap.Version())
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
		return []failure{{"P8", fmt.Sprintf("the %d changes since version %s do not lead from the state then, %d objects, to the state now, %d", n, h.snap.Version(), len(h.shows), len(now))}}
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

// unchanged judges P8: a snapshot shows later what it showed first.
func (h heldSnapshot) unchanged() []failure {
	if now := shown(h.snap); !maps.Equal(now, h.shows) {
		return []failure{{"P8", fmt.Sprintf("a snapshot of version %s has changed: it had %d objects and has %d", h.snap.Version(), len(h.shows), len(now))}}
	}
	return nil
}

// checkStore holds the store against the model.
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
	exact := s.subject.Health().Coalesced == 0
	if f := s.model.compare(snap, exact, s.plan.transform); f != "" {
		s.fail("P8", "the store at version %s: %s", snap.Version(), f)
	}
	if j.restores > 0 {
		return // a restore may bring back what was deleted, and as what cannot be read
	}
	for _, f := range j.stays.check(s.model, snap, s.subject.Health().Epoch) {
		s.fail(f.promise, "%s", f.what)
	}
}

// staying is what a store had, to judge P12 by: an object of which a later state cannot be
// read stays as it was.
type staying struct {
	uids  map[object.Key]string
	epoch uint64
}

func (st *staying) check(m *model, snap SimSnapshot, epoch uint64) (out []failure) {
	now := map[object.Key]string{}
	for k, p := range snap.All() {
		now[k] = string(p.UID)
	}
	v, err := versionOf(string(snap.Version()))
	if err == nil && st.epoch == epoch {
		b := m.branches[len(m.branches)-1]
		for _, k := range m.keys {
			want := b.at(k, v)
			if uid, had := st.uids[k]; had && now[k] == "" && want != nil && want.bad && want.uid == uid {
				out = append(out, failure{"P12", fmt.Sprintf("%s cannot be read at version %d, and what the store had of it is gone", k, v)})
			}
		}
	}
	st.uids, st.epoch = now, epoch
	return out
}

// compare holds a snapshot against the state at its version, in the newest history or
// in one that was given up. Where changes were coalesced on their way, an object may
// be further than the snapshot's version says: that says how far all of them are.
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
		case want != nil && want.bad: // it keeps what it had, or stays out
		case want == nil && !ok, want != nil && have == want:
		case !exact && b.later(k, want, have, v):
		case want == nil:
			return fmt.Sprintf("%s is there as %s and should not", k, podOf(p))
		default:
			return fmt.Sprintf("%s is %s and should be write %d at %d", k, podOf(p), want.write, want.version)
		}
	}
	if n != snap.Len() {
		return fmt.Sprintf("it has %d objects, of which %d are known", snap.Len(), n)
	}
	return ""
}

// later reports whether a key may show this state when everything up to v is there.
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

// intact says whether a stored pod is what was written.
func intact(p *corev1.Pod, st *podState, transformed bool) string {
	switch {
	case st == nil:
		return "an object that nobody wrote: " + podOf(p)
	case string(p.UID) != st.uid, p.Spec.NodeName != st.pod.Spec.NodeName, p.ResourceVersion != strconv.FormatUint(st.version, 10):
		return fmt.Sprintf("%s has changed: uid %s node %s version %s", st.key, p.UID, p.Spec.NodeName, p.ResourceVersion)
	case p.Kind != "Pod" || p.APIVersion != "v1":
		return fmt.Sprintf("%s carries apiVersion %q and kind %q", st.key, p.APIVersion, p.Kind)
	case transformed && p.Generation != 1, !transformed && p.Generation != 0:
		return fmt.Sprintf("%s was transformed %d times", st.key, p.Generation)
	}
	return ""
}

// indexed judges P8: the indexes of a snapshot are of its objects.
func (j *judge) indexed(snap SimSnapshot) (out []failure) {
	want := map[string]int{}
	for _, p := range snap.All() {
		if x := p.Labels[labelIndex]; x != "fail" && x != "panic" {
			want["x="+x]++
		}
		want["node="+p.Spec.NodeName]++
	}
	for _, v := range []struct{ index, value string }{{"x", "a"}, {"x", "b"}, {"x", "c"}, {"x", "fail"}, {"x", "panic"}, {"node", "node-0"}, {"node", "node-1"}} {
		n := 0
		for p := range snap.ByIndex(v.index, v.value) {
			n++
			now, ok := snap.Get(keyOfPod(p))
			if !ok || podOf(now) != podOf(p) {
				out = append(out, failure{"P8", fmt.Sprintf("index %s=%s has %s of %s, and the objects have %s", v.index, v.value, podOf(p), keyOfPod(p), podOf(now))})
			}
		}
		if n != want[v.index+"="+v.value] {
			out = append(out, failure{"P8", fmt.Sprintf("index %s=%s has %d objects of %d", v.index, v.value, n, want[v.index+"="+v.value])})
		}
	}
	return out
}

func keyOfPod(p *corev1.Pod) object.Key { return object.NewKey(p.Namespace, p.Name) }

// dump takes what the store has, to start from it later.
func (j *judge) dump() *SimState {
	if !j.synced || j.taint > 0 || j.s.unsettled || j.s.subject.Health().Coalesced > 0 {
		return nil
	}
	snap := j.s.subject.Snapshot()
	v, err := versionOf(string(snap.Version()))
	if m := j.s.model; err != nil || m.now().compare(m, snap, v, true, j.s.plan.transform) != "" {
		return nil // of a history that was given up: nobody could notice once the new one is past it
	}
	d := &SimState{Version: snap.Version()}
	for _, p := range snap.All() {
		d.Pods = append(d.Pods, p)
	}
	return d
}

// stopping is called when the run is about to be stopped.
func (j *judge) stopping() {
	j.cancelled = true
	j.checkStore()
	j.checkHeld()
}

// stopped is called when it is.
func (j *judge) stopped() {
	j.orders(true)
	for _, h := range j.s.handlers {
		h.over = true
	}
	j.inStep, j.reported = 0, 0
}

// orders holds every handler against the one order.
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

// quiet reports whether the subject has come to rest and knows everything.
func (j *judge) quiet() bool {
	s := j.s
	if s.running && s.unsettled || j.taint > 0 && j.mended == 0 {
		return false
	}
	if !s.subject.Synced() || j.differs() != "" {
		return false
	}
	for _, ex := range s.exchanges {
		if !ex.over() && ex.answered && ex.verb == "watch" && ex.end == nil && !ex.held {
			return true
		}
	}
	return false
}

// differs says in what the store is not the server's state.
func (j *judge) differs() string {
	snap := j.s.subject.Snapshot()
	n := 0
	for _, k := range j.s.model.keys {
		want := j.s.model.current(k)
		p, ok := snap.Get(k)
		switch {
		case want == nil && ok:
			return fmt.Sprintf("%s is stored as %s and does not exist", k, podOf(p))
		case want != nil && (!ok || j.s.model.state(p) != want):
			return fmt.Sprintf("%s is stored as %s and is write %d at %d", k, podOf(p), want.write, want.version)
		case ok:
			n++
		}
	}
	if n != snap.Len() {
		return fmt.Sprintf("%d objects are stored of which %d exist", snap.Len(), n)
	}
	return ""
}

// neverQuiet is called when the subject did not come to rest in time.
func (j *judge) neverQuiet() {
	h := j.s.subject.Health()
	why := j.differs()
	if why == "" {
		j.s.fail("P11", "half an hour after the last fault no watch is open: it is %s: %v", h.State, h.Err)
		return
	}
	j.s.fail("P1", "half an hour after the last fault %s; it is %s at %s: %v", why, h.State, h.Version, h.Err)
}

// final judges what can be judged when all is quiet.
func (j *judge) final() {
	s := j.s
	if f := j.differs(); f != "" {
		return // said already
	}
	j.checkStore()
	h := s.subject.Health()
	if j.steps() {
		if h.State != "streaming" {
			s.fail("P14", "all is quiet, and health says %q", h.State)
		}
		for doing, n := range map[string]int{"index": j.expected["index"], "transform": j.expected["transform"], "handle": j.panicked} {
			if j.problems[doing] != n || h.Counts[doing] != uint64(n) {
				s.fail("P12", "%s failed %d times, was reported %d times and counted %d times", doing, n, j.problems[doing], h.Counts[doing])
			}
		}
		if h.LastWord.Before(j.word) {
			s.fail("P14", "the last word is said to be from %s, and a frame was read at %s", h.LastWord, j.word)
		}
		if j.unreadable > 0 && j.problems["decode"] == 0 {
			s.fail("P12", "%d objects could not be read, and none was reported", j.unreadable)
		}
		if h.Epoch > uint64(j.restores+j.staleReads) {
			s.fail("P2", "%d epochs began, and history was set back %d times", h.Epoch, j.restores+j.staleReads)
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
			s.fail("P5", "all is quiet, and handler %s has not synced", h.spec.Name)
		}
		for _, f := range h.log.complete(s.subject.Snapshot(), s.model) {
			s.fail(f.promise, "%s", f.what)
		}
	}
	j.orders(false)
}

// complete compares what a handler knows with the store when all is quiet.
func (l *handlerLog) complete(snap SimSnapshot, m *model) (out []failure) {
	for _, k := range m.keys {
		p, ok := snap.Get(k)
		knows, known := l.known[k]
		switch {
		case known && !ok:
			out = append(out, failure{"P6", fmt.Sprintf("handler %s was never told that %s (%s) is gone", l.name, k, knows.uid)})
		case ok && !known:
			out = append(out, failure{"P7", fmt.Sprintf("handler %s was never told of %s", l.name, k)})
		case ok && m.state(p) != nil && m.state(p).write != knows.write:
			out = append(out, failure{"P7", fmt.Sprintf("handler %s was last told of write %d of %s, and the store has %d", l.name, knows.write, k, m.state(p).write)})
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
