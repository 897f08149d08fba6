package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// place is a resource in a cluster.
type place struct {
	cluster string
	res     *fleet.Resource
}

// members are the clusters that a request to the view of all clusters is about. named says that the request names them.
func (s *Server) members(t *target, p *params) (out []*fleet.Cluster, named bool, err error) {
	only := p.onlyClusters()
	if t.cluster != "" {
		if len(only) > 0 && !slices.Contains(only, t.cluster) {
			return nil, true, apierrors.NewBadRequest(fmt.Sprintf("the request names cluster %q, which clusters=%s leaves out", clip(t.cluster), clip(p.clusters)))
		}
		c, ok := s.fleet.Cluster(t.cluster)
		if !ok {
			return nil, true, errNoCluster(t.cluster)
		}
		return []*fleet.Cluster{c}, true, nil
	}
	if len(only) == 0 {
		return s.fleet.Clusters(), false, nil
	}
	slices.Sort(only)
	for _, name := range slices.Compact(only) {
		c, ok := s.fleet.Cluster(name)
		if !ok {
			return nil, true, apierrors.NewBadRequest(fmt.Sprintf("clusters= names %q, and there is no such cluster; /clusters tells which there are", clip(name)))
		}
		out = append(out, c)
	}
	return out, true, nil
}

// places finds where a resource is mirrored. A member that was never read is left out, and a warning names it, unless
// the request names members or wants a complete answer. At start all members of then are waited for. A member that
// was read and cannot be reached now is shown as it was.
func (s *Server) places(w http.ResponseWriter, t *target, members []*fleet.Cluster, all bool) ([]place, error) {
	now := time.Now()
	var (
		out              []place
		awaited, missing []absent
		others           []absent // have the resource in another version
		denied           error    // by the only members that have the resource, unless one of the others does
		undenied         bool
		message          string // of the deprecation of the kind, and since when it is
		since            release
	)
	for _, c := range members {
		res, ok := c.Resource(t.gvr())
		if ok && res.Synced() {
			warnStale(w, c, res)
			if len(out) == 0 {
				message, since = deprecation(res.GVK())
			}
			warnDeprecatedSince(w, c, message, since)
			out = append(out, place{c.Name(), res})
			continue
		}
		var why absent
		switch first, err := c.Discovered(); {
		case ok && apierrors.IsForbidden(res.Health().Reflector.Err):
			denied, why = errUnsynced(c, res, t), unsynced(c, res)
		case ok:
			undenied, why = true, unsynced(c, res)
		case first.IsZero():
			undenied, why = true, unknownMember(c, err)
		default:
			if version := s.served.of(c).otherVersion(t.gvr()); version != "" {
				others = append(others, absent{cluster: c.Name(), why: fmt.Sprintf("it has %s in version %s", t.groupResource(), version)})
			}
			continue
		}
		if s.start.awaits(c, res, now) {
			awaited = append(awaited, why)
		} else {
			missing = append(missing, why)
		}
	}
	switch {
	case denied != nil && !undenied && len(out) == 0:
		return nil, denied
	case len(awaited) > 0:
		return nil, starting(awaited)
	case len(missing) > 0 && (all || len(out) == 0):
		return nil, incomplete(slices.Concat(missing, others))
	case len(others) > 0 && all && len(out) > 0:
		return nil, incomplete(others)
	case len(out) == 0 && !s.start.hasBegun():
		return nil, starting(nil)
	case len(out) == 0:
		return nil, s.errNoVersion(t, members...)
	}
	for _, a := range slices.Concat(missing, others) {
		warnLeftOut(w, &a)
	}
	return out, nil
}

func warnLeftOut(w http.ResponseWriter, a *absent) {
	warn(w, fmt.Sprintf("cluster %s is left out: %s", a.cluster, a.why))
}

// discoverable says whether it can be told what all clusters serve, and warns of those whose part is not known.
func (s *Server) discoverable(w http.ResponseWriter, members []*fleet.Cluster) error {
	now := time.Now()
	var awaited, missing []absent
	for _, c := range members {
		first, err := c.Discovered()
		if !first.IsZero() {
			continue
		}
		why := unknownMember(c, err)
		if s.start.awaits(c, nil, now) {
			awaited = append(awaited, why)
		} else {
			missing = append(missing, why)
		}
	}
	switch {
	case len(awaited) > 0:
		return starting(awaited)
	case len(members) == 0 && !s.start.hasBegun():
		return starting(nil)
	case len(missing) == len(members) && len(missing) > 0:
		return incomplete(missing)
	}
	for i := range missing {
		warnLeftOut(w, &missing[i])
	}
	return nil
}

// undiscovered is the answer about a cluster that has not said what it serves.
func undiscovered(c *fleet.Cluster) error {
	first, err := c.Discovered()
	if !first.IsZero() {
		return nil
	}
	why := unknownMember(c, err)
	text := fmt.Errorf("what cluster %q serves is not known: %s", c.Name(), strings.TrimSuffix(why.why, "."))
	if why.passing {
		return unavailable(text)
	}
	return unavailableNow(text)
}
