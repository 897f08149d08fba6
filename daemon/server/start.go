package server

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

const (
	// defaultGrace is how long the view of all clusters waits at start for a member that cannot be reached.
	defaultGrace = 30 * time.Second
	// mostGraces bounds in grace times how long it waits for a member that answers and does not come to an end.
	mostGraces = 10
)

// startup knows which members the view of all clusters still waits for after the start. A client that lists after a
// restart would take the members that happen to be synced for all there are, and everything else for deleted.
type startup struct {
	fleet *fleet.Fleet
	grace time.Duration

	mu      sync.Mutex
	began   time.Time // zero until the server runs
	awaited map[*fleet.Cluster]*awaitedMember
	ready   bool
}

// awaitedMember is a member of the start that is not synced.
type awaitedMember struct {
	// missed are its resources that have been waited for long enough.
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

// begin has the start wait for the members that are known now.
func (s *startup) begin(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began = now
	for _, c := range s.fleet.Clusters() {
		s.awaited[c] = &awaitedMember{missed: map[*fleet.Resource]bool{}}
	}
	s.updateLocked(now)
}

// look drops members and resources that need not be waited for any more. It reports whether any are left.
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

// memberLocked says whether something of a member is awaited, and whether the daemon counts as not ready because of
// it: what a cluster denies may never come.
func (s *startup) memberLocked(c *fleet.Cluster, m *awaitedMember, now time.Time) (awaited, holds bool) {
	if now, ok := s.fleet.Cluster(c.Name()); !ok || now != c {
		return false, false // it has left
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

// isOver reports whether the daemon counts as ready: no member of the start is waited for any more, but for what its
// server denies.
func (s *startup) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// discovered says when a member first told what it serves, or when the start began if that is later. It is zero for a
// member that has not.
func (s *startup) discovered(c *fleet.Cluster) time.Time {
	since, _ := c.Discovered()
	if !since.IsZero() && since.Before(s.began) {
		return s.began
	}
	return since
}

// resourceLocked says whether a resource is awaited, of a member that said at some time what it serves.
func (s *startup) resourceLocked(m *awaitedMember, res *fleet.Resource, since, now time.Time) bool {
	if res.Synced() || m.missed[res] {
		return false
	}
	progress := since
	if last := res.Health().Reflector.LastWord; last.After(progress) {
		progress = last
	}
	if now.Sub(progress) >= s.grace || now.Sub(since) >= mostGraces*s.grace {
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

// awaits reports whether a request for a resource of a member has to wait. res is nil where the member has not said
// what it serves. Nothing but that resource is looked at: a request costs the same however many others there are.
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

// absent is a member that a request for all clusters cannot be answered for.
type absent struct {
	cluster string
	why     string
	// temporary says that it is being read, and nothing has gone wrong: it is worth trying again soon.
	temporary bool
}

func (a *absent) String() string { return fmt.Sprintf("cluster %s: %s", a.cluster, a.why) }

// undiscoveredMember tells of a member that has not said yet what it serves.
func undiscoveredMember(c *fleet.Cluster, err error) absent {
	if err != nil {
		return absent{cluster: c.Name(), why: "it was never reached: " + clipReason(err.Error())}
	}
	return absent{cluster: c.Name(), why: "it has not said yet what it serves", temporary: true}
}

// unsynced tells of a member that has a resource which was never read to its end.
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

// starting is the answer to who asks before the start is over.
func starting(missing []absent) error {
	text := "the daemon has not begun to read its clusters"
	if len(missing) > 0 {
		text = "the daemon is starting and still reads " + listed(missing)
	}
	return unavailable(fmt.Errorf("%s; all clusters are answered for when each of them is synced, or has been "+
		"unreachable for a while", text))
}

// incomplete is the answer to who asked for members that are not there.
func incomplete(missing []absent) error {
	err := fmt.Errorf("not every cluster that was asked for can be answered for: %s", listed(missing))
	if slices.ContainsFunc(missing, func(a absent) bool { return a.temporary }) {
		return unavailable(err)
	}
	return unavailableWithoutRetry(err)
}

// mostListed is how many members an error names.
const mostListed = 5

func listed(missing []absent) string {
	var parts []string
	for i := range missing[:min(len(missing), mostListed)] {
		parts = append(parts, missing[i].String())
	}
	if more := len(missing) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}
