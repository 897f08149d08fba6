package fleet

import (
	"fmt"
	"time"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source"
)

// State is the state of a cluster.
type State string

// The states of a cluster.
const (
	// Joining: the first discovery is not complete.
	Joining State = "joining"
	// Restored: what the disk has is served, and the cluster has not confirmed it yet.
	Restored State = "restored"
	// Syncing: the initial state of some resources has not been read yet.
	Syncing State = "syncing"
	// Ready: all resources are mirrored.
	Ready State = "ready"
	// Degraded: some resources are not mirrored, and Err has the reason.
	Degraded State = "degraded"
	// Unreachable: no resource can be watched. What was mirrored before can still be read,
	// and becomes stale.
	Unreachable State = "unreachable"
	// Left: it is no longer a member.
	Left State = "left"
)

// ClusterHealth is the health of a cluster at one moment.
type ClusterHealth struct {
	State State
	// Since is when the state was first observed, which is within seconds of when it began.
	Since time.Time
	// Err describes what is wrong. It contains no secrets.
	Err string
	// ServerVersion is the version of its API server, such as "v1.36.3".
	ServerVersion string
	// Resources is the number of mirrored resources, and Synced of those whose initial state has been read.
	Resources, Synced int
	// Complete reports that at some moment all resources of the cluster had been read, or had failed with an error. A
	// resource that the cluster adds later does not change it.
	Complete bool
	// Restored is the number of resources whose state is from disk and not confirmed yet.
	Restored int
	// Objects is the number of mirrored objects.
	Objects int
	// LastEventAge is the largest last-event age of the synced resources. An idle watch receives
	// a bookmark every minute. The watch of events does not, so it counts only while it fails.
	LastEventAge time.Duration
}

// Health returns the health of the cluster.
func (c *Cluster) Health() ClusterHealth {
	h, _ := c.health(nil)
	return h
}

// health returns the health of the cluster and its error. It calls working, unless that is nil, with the name of each
// informer that does not fail.
func (c *Cluster) health(working func(name string)) (h ClusterHealth, err error) {
	if v := c.version.Load(); v != nil {
		h.ServerVersion = v.name
	}
	now := time.Now()
	sum := healthSummary{resources: c.resources.Load().sorted, redact: c.client.redact}
	for _, r := range sum.resources {
		ih := r.health()
		sum.add(&ih)
		if working != nil && (ih.Reflector.Err == nil || follows(&ih)) {
			working(ih.Name)
		}
		h.Objects += ih.Objects
		if ih.Synced {
			h.Synced++
			if r.gvr.Resource != "events" || !follows(&ih) {
				h.LastEventAge = max(h.LastEventAge, ih.Reflector.Age(now))
			}
		}
	}
	h.Resources, h.Restored = len(sum.resources), sum.restored

	c.mu.Lock()
	defer c.mu.Unlock()
	state, err := sum.state(&c.discovered)
	if state != c.state {
		c.state, c.since = state, now
	}
	c.complete = c.complete || state == Ready || state == Degraded
	h.State, h.Since, h.Complete = state, c.since, c.complete
	if err != nil {
		h.Err = c.client.redact.text(err.Error())
	}
	return h, err
}

// updateState records the current state, so that Since is right at the next call of Health, and logs its changes.
func (c *Cluster) updateState() {
	h, err := c.health(c.problemLog.working)
	c.problemLog.state(c.client.log, c.name, &h, err)
}

// mayHaveChanged reports whether the state may be another one than when it was last recorded. A cluster that is ready
// remains so until a resource reports a problem, which its health shows a moment later.
func (c *Cluster) mayHaveChanged() bool {
	if n := c.problems.Load(); n != c.problemsSeen {
		c.problemsSeen, c.quiet = n, 0
		return true
	}
	c.quiet++
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state != Ready || c.quiet == 1 || c.problemLog.saysUnreachable()
}

// healthSummary summarizes the health of a cluster's resources.
type healthSummary struct {
	resources []*Resource
	redact    *redactor
	// failing resources had an error last; unreachable are those of them without any answer.
	failing, unreachable int
	pending              int // not synced, and without an error
	restored             int // see ClusterHealth
	first                error
	name                 string
}

// follows reports whether a watch is open. An error in the health then is older than the
// watch: it stays until the watch has received something, which may take a minute.
func follows(h *informer.Health) bool { return h.Reflector.State.String() == "streaming" }

func (t *healthSummary) add(h *informer.Health) {
	if h.Reflector.Restored {
		t.restored++
	}
	err := h.Reflector.Err
	switch {
	case err != nil && !follows(h):
		t.failing++
		if t.first == nil {
			t.first, t.name = t.redact.requestError("", err), h.Source.Resource
		}
		if source.ReasonOf(err) == source.Unavailable || source.ReasonOf(err) == source.Refused {
			t.unreachable++
		}
	case !h.Synced:
		t.pending++
	}
}

// state returns the state of the cluster and its error.
func (t *healthSummary) state(b *discoveryStatus) (State, error) {
	n := len(t.resources)
	var failing error
	if t.failing > 0 {
		failing = fmt.Errorf("%d of %d resources fail; %s: %w", t.failing, n, t.name, t.first)
	}
	switch {
	case b.left:
		return Left, nil
	case !b.done && b.err == nil:
		return Joining, nil
	case n > 0 && t.unreachable == n:
		return Unreachable, failing
	case !b.done, n == 0 && b.err != nil:
		return Unreachable, b.err
	case t.restored > 0:
		return Restored, failing
	case t.pending > 0:
		return Syncing, failing
	case failing != nil:
		return Degraded, failing
	case b.err != nil:
		return Degraded, b.err
	case b.partial != nil:
		return Degraded, b.partial
	}
	return Ready, nil
}
