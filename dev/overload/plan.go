package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// plan describes a run.
type plan struct {
	keys    int           // the number of objects
	rate    int           // events per second
	lasts   time.Duration // the duration
	quick   int           // handlers that return at once
	takes   time.Duration // how long the slow handler takes for an event; 0 for no slow handler
	payload int           // the size of an object in bytes
}

// tick is how often the stream sends: like a watch, it sends what has happened since.
const tick = time.Millisecond

func (p plan) check() error {
	switch {
	case p.keys < 1:
		return errors.New("there must be at least one object")
	case p.rate < 1:
		return errors.New("there must be at least one event per second")
	case p.lasts < tick:
		return fmt.Errorf("a run of %s is too short; give at least %s", p.lasts, tick)
	case p.quick < 1:
		return errors.New("there must be at least one quick handler, which must not be affected")
	}
	return nil
}

// events returns how many events the run has in addition to the initial state.
func (p plan) events() int { return int(int64(p.rate) * int64(p.lasts) / int64(time.Second)) }

// due returns how many events are due at a time after the start.
func (p plan) due(since time.Duration) int {
	return min(p.events(), int(int64(p.rate)*int64(since)/int64(time.Second)))
}

// dueAt returns when an event is due.
func (p plan) dueAt(event int) time.Duration {
	return time.Duration(int64(event+1) * int64(time.Second) / int64(p.rate))
}

// thing is an object of the run.
type thing struct {
	key     object.Key
	version int
	at      time.Time // when the stream sent it
	payload []byte
}
