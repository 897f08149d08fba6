package fleet

import (
	"fmt"
	"time"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source"
)

// State says in a word how a cluster is doing.
type State string

// The states of a cluster.
const (
	// Joining: it has not said yet what it serves.
	Joining State = "joining"
	// Syncing: the initial state of some resources is still on its way.
	Syncing State = "syncing"
	// Ready: everything is mirrored and followed.
	Ready State = "ready"
	// Degraded: some of it is not, and Err says why.
	Degraded State = "degraded"
	// Unreachable: nothing of it can be followed. What was mirrored before can still be
	// read, and gets older.
	Unreachable State = "unreachable"
	// Left: it is no longer a member.
	Left State = "left"
)

// ClusterHealth is what can be said of a cluster at one moment.
type ClusterHealth struct {
	State State
	// Since is when the state was first seen, which is within seconds of when it began.
	Since time.Time
	// Err is what is wrong, in words that can be shown to anybody.
	Err string
	// ServerVersion is the version of its API server, such as "v1.36.3".
	ServerVersion string
	// Resources are mirrored, Synced of them have their initial state.
	Resources, Synced int
	// Complete says that there was a moment at which everything that the cluster serves had been read, or could not be
	// read because of an error. A resource that the cluster gets later does not change it.
	Complete bool
	// Objects is how many are mirrored.
	Objects int
	// LastHeard is how long ago the resource that has been silent for longest last heard from
	// the cluster, of those that are synced. An idle watch hears something every minute;
	// that of events does not, and counts only while it fails.
	LastHeard time.Duration
	// Joined is when the cluster joined.
	Joined time.Time
}

// Health tells how the cluster is doing.
func (c *Cluster) Health() ClusterHealth {
	h := ClusterHealth{Joined: c.joined}
	if v := c.version.Load(); v != nil {
		h.ServerVersion = v.name
	}
	now := time.Now()
	sum := tally{resources: c.shown.Load().sorted, hide: c.link.hide}
	for _, r := range sum.resources {
		ih := r.health()
		sum.add(&ih)
		h.Objects += ih.Objects
		if ih.Synced {
			h.Synced++
			if r.gvr.Resource != "events" || !follows(&ih) {
				h.LastHeard = max(h.LastHeard, ih.Age(now))
			}
		}
	}
	h.Resources = len(sum.resources)

	c.mu.Lock()
	defer c.mu.Unlock()
	state, err := sum.state(&c.book)
	if state != c.state {
		c.state, c.since = state, now
	}
	c.complete = c.complete || state == Ready || state == Degraded
	h.State, h.Since, h.Complete = state, c.since, c.complete
	if err != nil {
		h.Err = c.link.hide.text(err.Error())
	}
	return h
}

// judge notes the state, so that Since is right when somebody asks.
func (c *Cluster) judge() { c.Health() }

// tally counts how the resources of a cluster are doing.
type tally struct {
	resources []*Resource
	hide      *hider
	// failing have failed last; of those, cut got no useful answer at all.
	failing, cut int
	pending      int // not synced, and nothing has gone wrong
	first        error
	name         string
}

// follows reports whether changes are being followed. An error beside that is of before:
// it stays until the stream has said something, which may take a minute.
func follows(h *informer.Health) bool { return h.Reflector.State.String() == "streaming" }

func (t *tally) add(h *informer.Health) {
	err := h.Reflector.Err
	switch {
	case err != nil && !follows(h):
		t.failing++
		if t.first == nil {
			t.first, t.name = t.hide.fault("", err), h.Source.Resource
		}
		if source.ReasonOf(err) == source.Unavailable || source.ReasonOf(err) == source.Refused {
			t.cut++
		}
	case !h.Synced:
		t.pending++
	}
}

// state sums up.
func (t *tally) state(b *condition) (State, error) {
	n := len(t.resources)
	var failing error
	if t.failing > 0 {
		failing = fmt.Errorf("%d of %d resources fail; %s: %w", t.failing, n, t.name, t.first)
	}
	switch {
	case b.left:
		return Left, nil
	case !b.looked && b.lookErr == nil:
		return Joining, nil
	case n > 0 && t.cut == n:
		return Unreachable, failing
	case !b.looked, n == 0 && b.lookErr != nil:
		return Unreachable, b.lookErr
	case t.pending > 0:
		return Syncing, failing
	case failing != nil:
		return Degraded, failing
	case b.lookErr != nil:
		return Degraded, b.lookErr
	case b.partial != nil:
		return Degraded, b.partial
	}
	return Ready, nil
}
