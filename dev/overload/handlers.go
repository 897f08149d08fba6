package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// quick returns at once. It records how long each event took to reach it, and whether one was missing or out of order.
type quick struct {
	last   int // the version of the last event
	events int
	wrong  string          // the first event out of order
	delays []time.Duration // preallocated, because the heap is measured
}

func newQuick(p plan) *quick {
	return &quick{last: p.keys, delays: make([]time.Duration, 0, p.events())}
}

// Handle records one event.
func (q *quick) Handle(e object.Event[*thing]) {
	if e.Initial {
		return
	}
	t := e.New
	if t == nil {
		t = e.Old
	}
	if t.version != q.last+1 && q.wrong == "" {
		q.wrong = fmt.Sprintf("after version %d came %d", q.last, t.version)
	}
	q.last = t.version
	q.events++
	q.delays = append(q.delays, time.Since(t.at))
}

// delay returns the delay below which a share of the events lies.
func (q *quick) delay(share float64) time.Duration {
	if len(q.delays) == 0 {
		return 0
	}
	slices.Sort(q.delays)
	return q.delays[min(len(q.delays)-1, int(share*float64(len(q.delays))))]
}

// slow takes its time for each event, and keeps the last state of each object.
type slow struct {
	takes time.Duration

	mu   sync.Mutex
	view map[object.Key]int
	odd  string // the first event that does not fit the earlier ones
}

func newSlow(takes time.Duration) *slow { return &slow{takes: takes, view: map[object.Key]int{}} }

// Handle handles one event slowly.
func (s *slow) Handle(e object.Event[*thing]) {
	time.Sleep(s.takes) // simulates work
	s.mu.Lock()
	defer s.mu.Unlock()
	had, known := s.view[e.Key]
	switch {
	case e.Type == object.Added && known, e.Type != object.Added && !known:
		s.note("%s of %s, which it knew: %v", e.Type, e.Key, known)
	case e.Type == object.Updated && e.Old.version != had:
		s.note("%s of %s from version %d, but the last one was %d", e.Type, e.Key, e.Old.version, had)
	case e.New != nil && e.New.version < had:
		s.note("%s of %s went back from version %d to %d", e.Type, e.Key, had, e.New.version)
	}
	if e.Type == object.Deleted {
		delete(s.view, e.Key)
		return
	}
	s.view[e.Key] = e.New.version
}

func (s *slow) note(format string, args ...any) {
	if s.odd == "" {
		s.odd = fmt.Sprintf(format, args...)
	}
}
