package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// plan is what a run does.
type plan struct {
	keys    int           // how many objects there are
	rate    int           // how many events a second
	lasts   time.Duration // for how long
	quick   int           // handlers that return at once
	takes   time.Duration // what the slow handler takes for an event; 0 leaves it out
	payload int           // bytes that an object carries
}

// tick is how often the stream speaks: as a watch, it gives what has come since.
const tick = time.Millisecond

func (p plan) check() error {
	switch {
	case p.keys < 1:
		return errors.New("there must be at least one object")
	case p.rate < 1:
		return errors.New("there must be at least one event a second")
	case p.lasts < tick:
		return fmt.Errorf("a run of %s is too short; give at least %s", p.lasts, tick)
	case p.quick < 1:
		return errors.New("there must be at least one quick handler: it is the one that must not be hurt")
	}
	return nil
}

// events is how many events the run has beside the initial state.
func (p plan) events() int { return int(int64(p.rate) * int64(p.lasts) / int64(time.Second)) }

// due is how many events there are so long after the start.
func (p plan) due(since time.Duration) int {
	return min(p.events(), int(int64(p.rate)*int64(since)/int64(time.Second)))
}

// dueAt is when an event is due.
func (p plan) dueAt(event int) time.Duration {
	return time.Duration(int64(event+1) * int64(time.Second) / int64(p.rate))
}

// thing is an object of the run.
type thing struct {
	key     object.Key
	version int
	at      time.Time // when the stream gave it
	payload []byte
}
