package informertest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/object"
)

// handler is one simulated handler, with the events it received.
type handler struct {
	spec    SimHandler
	sub     SimSubscription
	log     *handlerLog
	witness bool // never disturbed, never coalesced: the reference for the order of events

	slow    int  // for how many turns a callback pauses
	blocked bool // callbacks do not return
	panics  int  // how many of the next callbacks panic
	removed bool
	over    bool // the run has ended: no event may follow
	inside  bool // a callback is running
}

// neverReached is a backlog bound that no seed reaches.
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
		s.fail("P9", "handler %s received %s %s after its end", h.spec.Name, e.Type, e.Key)
	}
	s.judge.event(h, e, stored, ok, epoch)
	rest, panics := h.slow, h.panics > 0
	if panics {
		h.panics--
	}
	blocked := h.blocked
	if blocked {
		s.countFault(blockedHandler)
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
	crash := panics && !s.free // a panic would end client-go's process
	if crash {
		s.countFault(panickingHandler)
		s.judge.panicked++
	}
	s.mu.Unlock()
	if crash {
		panic("a simulated handler panics")
	}
}

// orderedEvent is the part of an event that the promises compare.
type orderedEvent struct {
	what  object.ChangeType
	key   object.Key
	write int // the number of the write that made the new state
	uid   string
	epoch uint64
}

// seen is the last state of an object that a handler received.
type seen struct {
	write   int
	uid     string
	version object.Version
}

// lastSeen is the last epoch and version of an object that a handler received.
type lastSeen struct {
	epoch   uint64
	version object.Version
}

// handlerLog records and checks the events of a handler. It does not depend on the simulation, so that tests can feed
// it made-up histories.
type handlerLog struct {
	name  string
	late  bool
	known map[object.Key]seen
	// base is the state at the time from which the handler counts: each object must arrive, marked initial, before the
	// handler is synced.
	base     map[object.Key]string
	came     map[object.Key]bool
	synced   bool
	last     map[object.Key]lastSeen
	order    []orderedEvent // without initial and resync events
	initials []orderedEvent

	removedSeen bool
}

func newHandlerLog(name string, late bool) *handlerLog {
	return &handlerLog{name: name, late: late, known: map[object.Key]seen{}, came: map[object.Key]bool{},
		last: map[object.Key]lastSeen{}}
}

// add records one event and returns what is wrong with it. of returns the number of the write that made a pod; epochs
// says whether the subject reports epochs.
func (l *handlerLog) add(e Event, of func(*corev1.Pod) (write int, uid string), epochs bool) (out []failure) {
	fail := func(promise, format string, args ...any) {
		out = append(out, failure{promise, fmt.Sprintf("handler %s: %s %s: ", l.name, e.Type, e.Key) +
			fmt.Sprintf(format, args...)})
	}
	was, known := l.known[e.Key]
	newWrite, newUID := of(e.New)
	oldWrite, oldUID := of(e.Old)
	// Versions are compared per object: coalesced events keep no order between objects.
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
			fail("P1", "an object that was never written: %s", podOf(e.New))
		}
	}
	if e.Initial {
		switch {
		case e.Type != object.Added:
			fail("P5", "marked initial")
		case l.synced:
			fail("P5", "marked initial after the handler has synced")
		case l.base != nil && l.base[e.Key] == "":
			fail("P5", "marked initial, but the object did not exist")
		}
		l.came[e.Key] = true
	}
	switch e.Type {
	case object.Added:
		if known {
			fail("P6", "write %d is added, but write %d was never deleted", newWrite, was.write)
		}
		l.known[e.Key] = seen{newWrite, newUID, versionIn(e.New)}
	case object.Updated:
		switch {
		case !known:
			fail("P6", "an update of an object that the handler does not know")
		case was.uid != newUID:
			fail("P6", "%s became %s by an update: it is another object", was.uid, newUID)
		case oldWrite != was.write:
			fail("P3", "old is write %d, but the handler last saw write %d", oldWrite, was.write)
		}
		l.known[e.Key] = seen{newWrite, newUID, versionIn(e.New)}
	case object.Deleted:
		switch {
		case !known:
			fail("P6", "a delete of an object that the handler does not know")
		case was.uid != oldUID:
			fail("P6", "%s is deleted, but the handler knows %s", oldUID, was.uid)
		}
		delete(l.known, e.Key)
	case object.Resynced:
		if !known || was.write != newWrite || oldWrite != newWrite {
			fail("P3", "write %d (old %d) is resynced, but the handler last saw write %d", newWrite, oldWrite, was.write)
		}
		return out
	}
	t := orderedEvent{e.Type, e.Key, newWrite, newUID, e.Epoch}
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

// nowSynced is called when the handler reports synced for the first time. merged reports whether an object of the
// initial state may have been coalesced with its deletion, and so may never have been delivered.
func (l *handlerLog) nowSynced(merged func(key object.Key, uid string) bool) (out []failure) {
	l.synced = true
	for k, uid := range l.base {
		if !l.came[k] && len(out) == 0 && !merged(k, uid) {
			out = append(out,
				failure{"P5", fmt.Sprintf("handler %s is synced but never received %s, which is in the initial state",
					l.name, k)})
		}
	}
	return out
}

// follows compares the handler's order with the reference order. coalesced says that events of the handler may have
// been merged: then only the order per object is kept, since a merged event stays at the position of the first one, so
// that an object that always changes is delivered too. ended says that both may have been stopped before the end.
func (l *handlerLog) follows(order *handlerLog, coalesced, ended bool) (out []failure) {
	if len(l.order) == 0 {
		return nil
	}
	if !coalesced {
		return l.sameOrder(order.order, ended)
	}
	perKey := map[object.Key][]orderedEvent{}
	for _, t := range append(append([]orderedEvent(nil), order.initials...), order.order...) {
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
				fmt.Sprintf("handler %s received %s %s write %d, which is missing or earlier in the reference order", l.name,
					t.what, t.key, t.write)}}
		}
		at[t.key] = n + 1
	}
	return nil
}

// sameOrder looks for a position from which both orders are the same. Several positions may match: a restored history
// can repeat events.
func (l *handlerLog) sameOrder(order []orderedEvent, ended bool) (out []failure) {
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
		out = []failure{{"P3", fmt.Sprintf("handler %s received %s %s write %d, but the witness did not", l.name, first.what,
			first.key, first.write)}}
	}
	return out
}

func (l *handlerLog) sameFrom(order []orderedEvent, ended bool) []failure {
	for i, t := range l.order {
		if i >= len(order) {
			if ended {
				return nil
			}
			return []failure{{"P3", fmt.Sprintf("handler %s received %s %s write %d after the witness's last event", l.name,
				t.what, t.key, t.write)}}
		}
		if order[i] != t {
			return []failure{{"P3", fmt.Sprintf("handler %s received %v where the witness received %v", l.name, t, order[i])}}
		}
	}
	return nil
}
