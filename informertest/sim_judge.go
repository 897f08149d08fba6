package informertest

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	kwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/object"
)

// judge checks the promises of a run, immediately where possible and at the end otherwise.
type judge struct {
	s *simulation

	storm      stormWatch
	problems   map[string]int // by what was attempted, as OnProblem reported them
	expected   map[string]int // the same, as the simulator counts them
	panicked   int
	panics     int // how many of the next reports of a problem panic
	bad        int // bad answers noticed
	inStep     int // bad answers noticed in the reflector's step that is under way
	reported   int // problems reported in that step
	staleReads int
	restores   int
	cancelled  bool
	watchEnds  int // watches that the server ended at their timeout
	mixed      int // starts from a state with objects that are newer than its version

	// Fields of the current run.
	taint       int // the request after which a list must follow; 0 for none
	mended      int // the request that shows that this list was read
	mendedAt    uint64
	listing     int // the last list
	aborted     int
	transforms  map[string]int // by write and version
	deleted     map[string]bool
	hidden      map[object.Key]int // how often a list omitted the key: it counts as deleted, and may return unchanged
	sentVersion uint64             // the highest version that was delivered
	heard       time.Time
	lastFrame   time.Time // when a whole frame was last read
	unreadable  int       // watch frames that were read and do not decode
	held        []heldSnapshot
	stays       staying
	stretch     heldSnapshot // the start of the stretch that checkLog checks next
	synced      bool
	firstKnown  bool
	firstState  map[object.Key]string // UIDs of the storable objects of the first list; nil if a frame was lost
	lastState   map[object.Key]string // the same of the last list
	lastStream  *exchange             // the watch that delivered it, if it was one
	maxBatch    int
	resumes     bool // the run began with a saved state, and nothing has happened that makes a list necessary
	inexact     bool // that state was saved after changes were coalesced
}

func newJudge(s *simulation) *judge {
	return &judge{s: s, problems: map[string]int{}, expected: map[string]int{}}
}

// begin is called at the start of a run.
func (j *judge) begin(from *SimState) {
	j.taint, j.mended, j.aborted, j.sentVersion, j.held, j.synced = 0, 0, 0, 0, nil, false
	j.transforms, j.deleted, j.hidden = map[string]int{}, map[string]bool{}, map[object.Key]int{}
	j.cancelled, j.firstState, j.lastState, j.lastStream, j.firstKnown = false, nil, nil, nil, from != nil
	j.storm, j.stretch, j.stays = stormWatch{}, heldSnapshot{}, staying{}
	j.resumes, j.inexact = false, false
	if from != nil {
		v, _ := versionOf(string(from.Version))
		j.sentVersion = v
		j.firstState = map[object.Key]string{}
		for _, p := range from.Pods {
			j.firstState[keyOfPod(p)] = string(p.UID)
		}
	}
}

// exact reports whether the store is exactly the state of its version: no change was coalesced with an earlier one.
func (j *judge) exact() bool { return j.s.subject.Health().Coalesced == 0 && !j.inexact }

// steps reports whether the subject is stepped: some things can be checked only between steps.
func (j *judge) steps() bool { return j.s.stepper != nil }

// indexes returns the index functions of the subject.
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

// expect counts a failure that the subject has to report.
func (j *judge) expect(doing string, k kind) {
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	j.expected[doing]++
	j.s.countFault(k)
}

// transform is the subject's transform function.
func (j *judge) transform(p *corev1.Pod) (*corev1.Pod, error) {
	switch p.Labels[labelTransform] {
	case "fail":
		j.expect("transform", failingTransform)
		return nil, errors.New("a simulated transform fails")
	case "panic":
		if !j.s.free { // a panic would end client-go's process
			j.expect("transform", panickingTransform)
			panic("a simulated transform panics")
		}
		j.expect("transform", panickingTransform)
		return nil, errors.New("a simulated transform fails")
	}
	j.checkWritable("a transform")
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	id := string(p.UID) + "@" + p.ResourceVersion
	j.transforms[id]++
	// A list that was aborted has transformed objects that the next list delivers again: its staged objects are
	// discarded.
	if n := j.transforms[id]; n > 1+j.aborted+j.staleReads+j.restores+j.hidden[keyOfPod(p)] {
		j.s.fail("P13", "%s of %s/%s was transformed %d times", p.ResourceVersion, p.Namespace, p.Name, n)
	}
	p.Generation++
	return p, nil
}

// problem is called for each problem that the subject reports.
func (j *judge) problem(doing string, key object.Key, err error, wait time.Duration) {
	j.checkWritable("OnProblem")
	j.checkCallsInOnProblem()
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	text := err.Error()
	if at := strings.IndexByte(text, '\n'); at >= 0 {
		text = text[:at] // a stack trace contains addresses
	}
	j.s.note("problem: %s %s: %s", doing, key, text)
	j.problems[doing]++
	j.reported++
	if doing == "list" || doing == "initial state" {
		j.aborted++
	}
	if j.panics > 0 && j.steps() { // a panic would end client-go's process
		j.panics--
		j.problems["report"]++ // the panic must be counted
		j.s.countFault(panickingReport)
		panic("a simulated OnProblem panics")
	}
}

// request is called when a request is made.
func (j *judge) request(ex *exchange) {
	if j.cancelled && j.steps() {
		j.s.fail("P9", "request %d is made after the stop", ex.id)
	}
	if j.resumes && (ex.verb == "list" || ex.initial) {
		j.s.fail("P11", "request %d lists, although the watch can go on from the saved state", ex.id)
	}
	switch {
	case ex.verb == "list":
		j.listing = ex.id
	case !ex.initial && j.taint > 0 && j.listing > j.taint:
		j.mended = ex.id // a watch follows only a list that was read whole
		j.mendedAt, _ = versionOf(ex.asked)
	}
	// A state that was read whole is the first one, however late it is consumed: a watch follows a list, and any request
	// follows an initial stream.
	if was := j.lastStream; !j.firstKnown && (ex.verb == "watch" && !ex.initial || was != nil && !was.unread) {
		j.firstState, j.firstKnown = j.lastState, true
	}
	j.lastStream = nil
	for _, f := range j.storm.request(ex.at, ex.more) {
		j.s.fail(f.promise, "%s", f.what)
	}
}

// noticed is called when the subject has seen a bad answer.
func (j *judge) noticed(ex *exchange) {
	j.inStep++
	j.bad++
	j.resumes = false
	if ex.more || ex.err != nil {
		j.aborted++
	}
	var wait time.Duration
	if ex.resp != nil && ex.code != http.StatusOK {
		seconds, _ := strconv.Atoi(ex.resp.Header.Get("Retry-After"))
		wait = time.Duration(seconds) * time.Second
		if ex.code == http.StatusGatewayTimeout {
			// This status says that the requested version does not exist yet. A request for another version is a new one and
			// need not wait.
			wait = 0
		}
	}
	j.storm.bad(time.Now(), wait, ex.verb == "watch" && ex.err == nil && ex.code == http.StatusOK &&
		time.Since(ex.answeredAt) >= backoffFirst)
}

// read is called when the subject has read bytes.
func (j *judge) read(ex *exchange, n int) {
	if ex.code == http.StatusOK {
		j.heard = time.Now()
	}
	if n > 0 && len(ex.inbox) == 0 && ex.whole {
		j.lastFrame = time.Now()
		if ex.undecodable {
			j.unreadable++
		}
		ex.whole, ex.undecodable = false, false
	}
	if ex.verb == "watch" && time.Since(ex.answeredAt) >= backoffFirst {
		j.storm.lived()
	}
}

// delivered is called when a frame was delivered.
func (j *judge) delivered(ex *exchange, f frame) {
	if f.what == kwatch.Deleted {
		j.deleted[f.uid] = true
	}
	if f.what != kwatch.Error {
		j.sentVersion = max(j.sentVersion, f.version)
	} else {
		j.resumes = false
	}
	if f.initialEnd {
		j.listed(ex)
	}
	if ex.whole = len(ex.inbox) == len(f.bytes); ex.whole { // no other bytes precede it
		ex.undecodable = f.corrupt && f.what != kwatch.Deleted && (!ex.initial || ex.stated && !f.initialEnd)
	}
}

// listed is called when a whole state was delivered.
func (j *judge) listed(ex *exchange) {
	if ex.initial && j.taint > 0 && ex.id > j.taint {
		j.mended, j.mendedAt = ex.id, ex.version
	}
	j.sentVersion = max(j.sentVersion, ex.version)
	if ex.initial {
		j.lastStream = ex
	}
	j.lastState = map[object.Key]string{}
	if ex.lossy {
		j.lastState = nil // what is missing is unknown
	}
	for _, k := range j.s.model.keys {
		if st := j.s.model.branches[ex.epoch].at(k, ex.version); st != nil && !st.bad && !ex.lossy {
			j.lastState[k] = st.uid
		}
	}
}

// lossy is called when a stream continues without one of its frames.
func (j *judge) lossy(ex *exchange, f frame) {
	j.taint, j.mended = ex.id, 0
	if ex.initial && !ex.stated {
		j.hidden[f.key]++
	}
}

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
	for _, f := range judgeHealth(&h, j.reading(), now, j.heard, j.sentVersion, j.s.wakeAt.After(now)) {
		j.s.fail(f.promise, "%s", f.what)
	}
	if total(h.Counts) != uint64(sum(j.problems)) {
		j.s.fail("P12", "%d problems were reported and %d counted", sum(j.problems), total(h.Counts))
	}
}

// reading returns what the reflector is waiting for.
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

// judgeHealth checks P14: it compares the health that a subject reports with what it is doing.
func judgeHealth(h *SimHealth, reading string, now, heard time.Time, sentVersion uint64, sleeps bool) (out []failure) {
	fail := func(format string, args ...any) { out = append(out, failure{"P14", fmt.Sprintf(format, args...)}) }
	switch {
	case reading == "list" && h.State != "listing", reading == "initial" && h.State != "listing":
		fail("a list is being read, but health says %q", h.State)
	case reading == "watch" && h.State != "streaming":
		fail("a watch is being read, but health says %q", h.State)
	case reading == "" && sleeps && h.State != "retrying" && h.State != "not served" && h.State != "polling" &&
		h.State != "stopped":
		fail("it waits after a failure, but health says %q", h.State)
	}
	if h.LastEvent.After(heard) {
		fail("LastEvent is %s, but the server last sent something at %s", h.LastEvent, heard)
	}
	if v, err := versionOf(string(h.Version)); err != nil || v > sentVersion {
		fail("health has version %q, but the server has only sent %d", h.Version, sentVersion)
	}
	if sleeps && h.Err == nil {
		out = append(out, failure{"P12", "it waits after a failure, but health has no error"})
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

// consumed is called when a batch was committed to the store.
func (j *judge) consumed() {
	s := j.s
	// Until the subject knows that history was reset, it has not read the list, though its store may equal the new
	// history by chance.
	if j.mended > 0 && !s.unsettled && s.stepper.Waiting() == 0 {
		snap := s.subject.Snapshot()
		v, _ := versionOf(string(snap.Version()))
		if v >= j.mendedAt && s.model.compare(snap, j.exact(), s.plan.transform) == "" {
			j.taint, j.mended = 0, 0 // the list that repairs it has arrived
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

func (j *judge) nowSynced() {
	j.synced = true
	if !j.firstKnown {
		j.firstState, j.firstKnown = j.lastState, true
	}
	for _, h := range j.s.handlers {
		if !h.log.late && h.log.base == nil && j.steps() { // the list that a free-running subject used is unknown
			h.log.base = j.firstState
		}
	}
}

// betweenActions is called between actions and checks store and handlers.
func (j *judge) betweenActions() {
	if !j.steps() {
		if !j.synced && j.s.subject.Synced() {
			j.nowSynced()
		}
		if j.mended > 0 {
			j.taint, j.mended = 0, 0
		}
	}
	j.checkSynced()
	j.checkHandlers()
}

// checkHandlers checks which handlers have synced and how long their backlogs are.
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
				// A restored history can bring back a deleted object with the same UID.
				return coalesced > 0 && (!ok || string(p.UID) != uid || j.restores > 0)
			}) {
				j.s.fail(f.promise, "%s", f.what)
			}
		}
		if waiting, _ := h.sub.Backlog(); h.spec.Backlog >= 0 &&
			waiting > h.spec.Backlog+2*len(j.s.model.keys)+2*j.maxBatch+8 {
			// The batch that a handler is handling, or is about to handle, does not count.
			j.s.fail("P7", "%d events wait for handler %s, which has a backlog of %d", waiting, h.spec.Name, h.spec.Backlog)
		}
	}
}

// track starts to follow a handler.
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
	if f := storedFirst(e, stored, ok, epoch, s.model); f != "" && !j.spared() && j.hidden[e.Key] == 0 {
		s.fail("P4", "handler %s: %s", h.spec.Name, f)
	}
	if e.Type == object.Deleted && !e.Missed && !j.deleted[string(e.Old.UID)] {
		s.fail("P6", "handler %s: the delete of %s was never sent by the server, but is not marked missed",
			h.spec.Name, e.Key)
	}
}

// spared reports whether the subject's versions are not checked: history was reset, and a subject without epochs
// cannot report that.
func (j *judge) spared() bool { return !j.steps() && j.restores+j.staleReads > 0 }

// storedFirst checks P4: the store has the event's state, or a later one.
func storedFirst(e Event, stored *corev1.Pod, ok bool, epoch uint64, m *model) string {
	if e.Epoch != epoch {
		return "" // from a history that has since been replaced
	}
	if e.Type == object.Deleted {
		if ok && stored.UID == e.Old.UID && versionIn(stored).Before(e.Version) {
			return fmt.Sprintf("a delete of %s was delivered, but the store has it at %s", e.Key, stored.ResourceVersion)
		}
		return ""
	}
	if ok {
		if versionIn(stored).Before(versionIn(e.New)) {
			return fmt.Sprintf("%s at %s was delivered, but the store has it at %s", e.Key, e.New.ResourceVersion,
				stored.ResourceVersion)
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
		return "" // the object may not exist in a restored history
	}
	return fmt.Sprintf("%s at %s was delivered, but the store does not have it", e.Key, e.New.ResourceVersion)
}

// write returns the number of the write that made a pod, and its UID.
func (j *judge) write(p *corev1.Pod) (int, string) {
	st := j.s.model.state(p)
	if st == nil {
		return -1, ""
	}
	return st.write, string(p.UID)
}
