package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

const (
	// defaultGrace is how long /fleet waits after the start for a member that cannot be reached.
	defaultGrace = 30 * time.Second
	// maxGraces is for how many grace periods /fleet waits for a member that answers but does not finish its lists.
	maxGraces = 10
)

// startup tracks which members /fleet still waits for after the start. Otherwise a client that lists after a restart
// would see only the members that happen to be synced, and take the objects of all others for deleted.
type startup struct {
	fleet *fleet.Fleet
	grace time.Duration

	mu      sync.Mutex
	began   time.Time // zero until the server runs
	awaited map[*fleet.Cluster]*awaitedMember
	ready   bool
}

// awaitedMember is a cluster that was a member at the start and is not synced.
type awaitedMember struct {
	// missed are its resources that are not waited for any more.
	missed map[*fleet.Resource]bool
}

func newStartup(f *fleet.Fleet, grace time.Duration) *startup {
	switch {
	case grace == 0:
		grace = defaultGrace
	case grace < 0:
		grace = 0
	}
	return &startup{fleet: f, grace: grace, awaited: map[*fleet.Cluster]*awaitedMember{}}
}

// begin starts to wait for the current members.
func (s *startup) begin(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began = now
	for _, c := range s.fleet.Clusters() {
		s.awaited[c] = &awaitedMember{missed: map[*fleet.Resource]bool{}}
	}
	s.updateLocked(now)
}

// update drops members and resources that need not be waited for any more. It reports whether any are left.
func (s *startup) update(now time.Time) (waiting bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updateLocked(now)
	return s.began.IsZero() || len(s.awaited) > 0
}

func (s *startup) updateLocked(now time.Time) {
	if s.began.IsZero() {
		return
	}
	holding := false
	for c, m := range s.awaited {
		awaited, holds := s.memberLocked(c, m, now)
		holding = holding || holds
		if !awaited {
			delete(s.awaited, c)
		}
	}
	s.ready = s.ready || !holding
}

// memberLocked reports whether a resource of a member is awaited, and whether the daemon counts as not ready because
// of it. A resource that the cluster denies is awaited, but may never come, so it does not keep the daemon from ready.
func (s *startup) memberLocked(c *fleet.Cluster, m *awaitedMember, now time.Time) (awaited, holds bool) {
	if now, ok := s.fleet.Cluster(c.Name()); !ok || now != c {
		return false, false // the cluster has left
	}
	since := s.discovered(c)
	if since.IsZero() {
		awaited = now.Sub(s.began) < s.grace
		return awaited, awaited
	}
	for _, res := range c.Resources() {
		if s.resourceLocked(m, res, since, now) {
			awaited = true
			holds = holds || !res.Refused()
		}
	}
	return awaited, holds
}

// isOver reports whether the daemon counts as ready: it waits for nothing, except for resources that their cluster
// denies. It looks for itself, so that it is never behind what the report says of the clusters.
func (s *startup) isOver(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ready {
		s.updateLocked(now)
	}
	return s.ready
}

// discovered returns when the resources of a member were first discovered, or when the start began if that is later.
// It is zero if they were not.
func (s *startup) discovered(c *fleet.Cluster) time.Time {
	since, _ := c.Discovered()
	if !since.IsZero() && since.Before(s.began) {
		return s.began
	}
	return since
}

// resourceLocked reports whether a resource of a discovered member is awaited.
func (s *startup) resourceLocked(m *awaitedMember, res *fleet.Resource, since, now time.Time) bool {
	if res.Synced() || m.missed[res] {
		return false
	}
	progress := since
	if last := res.Health().Reflector.LastEvent; last.After(progress) {
		progress = last
	}
	if now.Sub(progress) >= s.grace || now.Sub(since) >= maxGraces*s.grace {
		m.missed[res] = true
	}
	return !m.missed[res]
}

// hasBegun reports whether the server runs.
func (s *startup) hasBegun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.began.IsZero()
}

// awaits reports whether a request for a resource of a member has to wait. res is nil if the member is not discovered.
// Only that resource is checked, so the cost does not depend on how many others there are.
func (s *startup) awaits(c *fleet.Cluster, res *fleet.Resource, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began.IsZero() {
		return true
	}
	m := s.awaited[c]
	if m == nil {
		return false
	}
	since := s.discovered(c)
	if res == nil || since.IsZero() {
		return now.Sub(s.began) < s.grace
	}
	return s.resourceLocked(m, res, since, now)
}

// awaitDisk waits, after the start, until what the disk has for a request is served. If clients were refused until
// then, all those that a restart has cut off would come again and again, and delay it.
func (s *Server) awaitDisk(ctx context.Context, t *target) {
	left := time.Until(s.started.Add(stateTimeout))
	if left <= 0 || t.resource == "" && isHealthPath(t.rest) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	defer context.AfterFunc(s.fleetHubs.ctx, cancel)() // the daemon stops
	clusters := s.fleet.Clusters()
	if c, ok := s.fleet.Cluster(t.cluster); ok {
		clusters = []*fleet.Cluster{c}
	}
	for _, c := range clusters {
		c.WaitRestored(ctx, t.gvr())
		s.opts.Authorizer.WaitRestored(ctx, c)
	}
}

// absent is a member that a request to /fleet cannot be answered for.
type absent struct {
	cluster string // "" if the user may not know it
	why     string
	// temporary says that the member is being read without an error, so a client should retry soon.
	temporary bool
}

func (a *absent) String() string {
	if a.cluster == "" {
		return "a cluster: " + a.why
	}
	return fmt.Sprintf("cluster %s: %s", a.cluster, a.why)
}

// hiddenMember describes a member to a user that may not know its name.
func hiddenMember(a absent) absent { return absent{why: "it cannot be read", temporary: a.temporary} }

// undiscoveredMember describes a member whose resources are not discovered.
func undiscoveredMember(c *fleet.Cluster, err error) absent {
	if err != nil {
		return absent{cluster: c.Name(), why: "it was never reached: " + clipReason(err.Error())}
	}
	return absent{cluster: c.Name(), why: "its resources have not been discovered yet", temporary: true}
}

// unsynced describes a member with a resource that was never read completely.
func unsynced(c *fleet.Cluster, res *fleet.Resource) absent {
	h := res.Health().Reflector
	what := res.GVR().GroupResource()
	if apierrors.IsForbidden(h.Err) {
		return absent{cluster: c.Name(), why: fmt.Sprintf("it does not let the mirror list %s", what)}
	}
	if h.Err != nil {
		return absent{cluster: c.Name(), why: fmt.Sprintf("%s were never read: %s", what, clipReason(h.Err.Error()))}
	}
	return absent{cluster: c.Name(), why: fmt.Sprintf("%s are still being read", what), temporary: true}
}

// starting is the error for requests to /fleet before the start is over.
func (s *startup) starting(missing []absent) error {
	text := "the daemon has not started to read its clusters"
	if len(missing) > 0 {
		text = "the daemon is starting and still reads " + listed(missing)
	}
	return unavailable(fmt.Errorf("%s; /fleet is answered when each cluster is synced, or has been unreachable for the "+
		"%s of --start-grace", text, s.grace))
}

// incomplete is the error for a request that needs members which are absent.
func incomplete(missing []absent) error {
	err := fmt.Errorf("some of the requested clusters cannot be read: %s", listed(missing))
	if slices.ContainsFunc(missing, func(a absent) bool { return a.temporary }) {
		return unavailable(err)
	}
	return unavailableWithoutRetry(err)
}

// maxListed is how many members an error names.
const maxListed = 5

func listed(missing []absent) string {
	var parts []string
	for i := range missing[:min(len(missing), maxListed)] {
		parts = append(parts, missing[i].String())
	}
	if more := len(missing) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}
