package informertest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/object"
)

// handler is one simulated handler, with what it was told.
type handler struct {
	spec    SimHandler
	sub     SimSubscription
	log     *handlerLog
	witness bool // it is never disturbed and never coalesced: its order is the order

	slow    int  // for how many turns a callback rests
	blocked bool // callbacks do not return
	panics  int  // how many of the next callbacks panic
	removed bool
	over    bool // the run has ended: nothing may be told any more
	inside  bool // a callback is running
}

// neverReached is a backlog that is bounded and that no seed fills.
const neverReached = 1000

// join adds a handler.
func (s *simulation) join(witness bool) {
	s.joined++
	h := &handler{witness: witness, spec: SimHandler{Name: fmt.Sprintf("h%02d", s.joined), Backlog: -1}}
	if !witness {
		h.spec.Backlog = []int{-1, 3, 10, neverReached}[s.rng.IntN(4)]
		h.spec.Resync = []time.Duration{0, 0, 40 * time.Second}[s.rng.IntN(3)]
	}
	h.log = newHandlerLog(h.spec.Name, s.running && s.subject.Synced())
	s.note("handler %s joins, backlog %d, resync %s", h.spec.Name, h.spec.Backlog, h.spec.Resync)
	s.handlers = append(s.handlers, h)
	if h.log.late {
		h.log.base = s.judge.contents()
	}
	sub, err := s.subject.Handle(h.spec, func(e Event) { s.handle(h, e) })
	if err != nil {
		s.fail("P9", "adding a handler: %v", err)
		return
	}
	h.sub = sub
	s.judge.track(h)
}

// handle is called with each event.
func (s *simulation) handle(h *handler, e Event) {
	stored, ok := (*corev1.Pod)(nil), false
	epoch := uint64(0)
	if !h.over {
		stored, ok = s.subject.Snapshot().Get(e.Key)
		epoch = s.subject.Health().Epoch
	}
	s.mu.Lock()
	s.note("%s: %s %s old=%s new=%s initial=%t missed=%t epoch=%d", h.spec.Name, e.Type, e.Key, podOf(e.Old),
		podOf(e.New), e.Initial, e.Missed, e.Epoch)
	h.inside = true
	if h.over || h.removed && h.log.removedSeen {
		s.fail("P9", "handler %s is told of %s %s after its end", h.spec.Name, e.Type, e.Key)
	}
	s.judge.event(h, e, stored, ok, epoch)
	rest, panics := h.slow, h.panics > 0
	if panics {
		h.panics--
	}
	blocked := h.blocked
	if blocked {
		s.bite(blockedHandler)
	}
	s.mu.Unlock()
	for range rest {
		s.pause()
	}
	if blocked {
		s.wait(func() bool { return !h.blocked })
	}
	s.mu.Lock()
	h.inside = false
	h.log.removedSeen = h.removed
	crash := panics && !s.free // client-go's process would end
	if crash {
		s.bite(panickingHandler)
		s.judge.panicked++
	}
	s.mu.Unlock()
	if crash {
		panic("a simulated handler panics")
	}
}

// told is one event as the promises look at it.
type told struct {
	what  object.ChangeType
	key   object.Key
	write int // of the new state
	uid   string
	epoch uint64
}

// seen is what a handler knows of an object.
type seen struct {
	write   int
	uid     string
	version object.Version
}

// lastSeen is how far a handler has come with an object.
type lastSeen struct {
	epoch   uint64
	version object.Version
}

// handlerLog is what a handler was told, judged as it comes. It knows nothing of the
// simulation, so that it can be fed a history that was made up.
type handlerLog struct {
	name  string
	late  bool
	known map[object.Key]seen
	// base is what was there when the handler counts from: each of it must come,
	// marked initial, before the handler is synced.
	base     map[object.Key]string
	came     map[object.Key]bool
	synced   bool
	last     map[object.Key]lastSeen
	order    []told // without initial and resynced ones
	initials []told

	removedSeen bool
}

func newHandlerLog(name string, late bool) *handlerLog {
	return &handlerLog{name: name, late: late, known: map[object.Key]seen{}, came: map[object.Key]bool{},
		last: map[object.Key]lastSeen{}}
}

// add takes one event and gives what is wrong with it. of finds the number of the
// write that made a pod, epochs says whether the subject tells of epochs.
func (l *handlerLog) add(e Event, of func(*corev1.Pod) (write int, uid string), epochs bool) (out []failure) {
	fail := func(promise, format string, args ...any) {
		out = append(out, failure{promise, fmt.Sprintf("handler %s: %s %s: ", l.name, e.Type, e.Key) +
			fmt.Sprintf(format, args...)})
	}
	was, known := l.known[e.Key]
	newWrite, newUID := of(e.New)
	oldWrite, oldUID := of(e.Old)
	// Per object: what was coalesced keeps no order between objects.
	last := l.last[e.Key]
	if epochs && e.Epoch < last.epoch {
		fail("P2", "epoch %d after %d", e.Epoch, last.epoch)
	}
	if e.New != nil {
		v := versionIn(e.New)
		if e.Epoch == last.epoch && v.Before(last.version) {
			fail("P2", "version %s after %s within epoch %d", v, last.version, last.epoch)
		}
		l.last[e.Key] = lastSeen{e.Epoch, v}
		if e.New.Kind != "Pod" || e.New.APIVersion != "v1" {
			fail("P10", "the object carries apiVersion %q and kind %q", e.New.APIVersion, e.New.Kind)
		}
		if newWrite < 0 {
			fail("P1", "an object that nobody wrote: %s", podOf(e.New))
		}
	}
	if e.Initial {
		switch {
		case e.Type != object.Added:
			fail("P5", "marked initial")
		case l.synced:
			fail("P5", "marked initial, and the handler counts as synced already")
		case l.base != nil && l.base[e.Key] == "":
			fail("P5", "marked initial, and it was not there")
		}
		l.came[e.Key] = true
	}
	switch e.Type {
	case object.Added:
		if known {
			fail("P6", "write %d is added, and write %d was never announced deleted", newWrite, was.write)
		}
		l.known[e.Key] = seen{newWrite, newUID, versionIn(e.New)}
	case object.Updated:
		switch {
		case !known:
			fail("P6", "an update of what the handler does not know")
		case was.uid != newUID:
			fail("P6", "%s became %s by an update: it is another object", was.uid, newUID)
		case oldWrite != was.write:
			fail("P3", "old is write %d, and what the handler saw last is write %d", oldWrite, was.write)
		}
		l.known[e.Key] = seen{newWrite, newUID, versionIn(e.New)}
	case object.Deleted:
		switch {
		case !known:
			fail("P6", "a delete of what the handler does not know")
		case was.uid != oldUID:
			fail("P6", "%s is announced deleted, and the handler knows %s", oldUID, was.uid)
		}
		delete(l.known, e.Key)
	case object.Resynced:
		if !known || was.write != newWrite || oldWrite != newWrite {
			fail("P3", "write %d (old %d) is given again, and the handler saw last write %d", newWrite, oldWrite, was.write)
		}
		return out
	}
	t := told{e.Type, e.Key, newWrite, newUID, e.Epoch}
	if e.Type == object.Deleted {
		t.write, t.uid = 0, oldUID
	}
	if e.Initial {
		l.initials = append(l.initials, t)
	} else {
		l.order = append(l.order, t)
	}
	return out
}

// nowSynced is called when the handler counts as synced for the first time. merged
// tells of an object of the initial state whether it may have been merged with its
// own end, and so never have been mentioned.
func (l *handlerLog) nowSynced(merged func(key object.Key, uid string) bool) (out []failure) {
	l.synced = true
	for k, uid := range l.base {
		if !l.came[k] && len(out) == 0 && !merged(k, uid) {
			out = append(out,
				failure{"P5", fmt.Sprintf("handler %s counts as synced and was never told of %s, which is of the initial state",
					l.name, k)})
		}
	}
	return out
}

// follows compares the handler's order with the one order. coalesced says that
// events of the handler may have been merged: then it keeps the order of each object alone,
// since what is merged stays at the place of its first event, so that an object that
// always changes is delivered too. ended says that both may have been stopped in the
// middle.
func (l *handlerLog) follows(order *handlerLog, coalesced, ended bool) (out []failure) {
	if len(l.order) == 0 {
		return nil
	}
	if !coalesced {
		return l.sameOrder(order.order, ended)
	}
	perKey := map[object.Key][]told{}
	for _, t := range append(append([]told(nil), order.initials...), order.order...) {
		perKey[t.key] = append(perKey[t.key], t)
	}
	at := map[object.Key]int{}
	for _, t := range l.order {
		all := perKey[t.key]
		n := at[t.key]
		for n < len(all) && !(all[n].write == t.write && all[n].uid == t.uid &&
			(all[n].what == object.Deleted) == (t.what == object.Deleted)) {
			n++
		}
		if n == len(all) {
			if ended {
				return nil
			}
			return []failure{{"P3",
				fmt.Sprintf("handler %s was told %s %s write %d, which is not, or earlier, in the order of all", l.name,
					t.what, t.key, t.write)}}
		}
		at[t.key] = n + 1
	}
	return nil
}

// sameOrder looks for the place from which both orders are the same. There may be
// several places to try: what a restored history brings back can be told again.
func (l *handlerLog) sameOrder(order []told, ended bool) (out []failure) {
	for start, t := range order {
		if t != l.order[0] {
			continue
		}
		if out = l.sameFrom(order[start:], ended); out == nil {
			return nil
		}
	}
	if out == nil && !ended {
		first := l.order[0]
		out = []failure{{"P3", fmt.Sprintf("handler %s was told %s %s write %d, and the witness was not", l.name, first.what,
			first.key, first.write)}}
	}
	return out
}

func (l *handlerLog) sameFrom(order []told, ended bool) []failure {
	for i, t := range l.order {
		if i >= len(order) {
			if ended {
				return nil
			}
			return []failure{{"P3", fmt.Sprintf("handler %s was told %s %s write %d beyond what the witness was told", l.name,
				t.what, t.key, t.write)}}
		}
		if order[i] != t {
			return []failure{{"P3", fmt.Sprintf("handler %s was told %v where the witness was told %v", l.name, t, order[i])}}
		}
	}
	return nil
}
