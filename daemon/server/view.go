package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
)

// place is a mirrored resource of one cluster.
type place struct {
	cluster string
	res     *fleet.Resource
	visible *query.Visible // what the user may see; nil means everything
}

// shows reports whether the user may see something of a place: in a namespace, or at all if it is "".
func (p *place) shows(namespace string) bool {
	return p.visible == nil || !p.visible.EmptyIn(namespace)
}

// view is what a request is answered from: the places of its resource, and the rules for names and versions. The view
// of one cluster has one place and shows objects unchanged. The view of the fleet has a shape and a moment.
type view struct {
	places   []place // at least one
	model    place   // the answer has its kind and columns; the user may see something there
	shape    *fleetShape
	moment   fleetMoment
	past     bool // objects have the versions of their clusters, also at /fleet
	complete bool // nothing may be left out
	// changed says that a watch of one cluster would continue a list that showed something else.
	changed bool
	// unknownRights are clusters that are left out because the rights of the user are not known there.
	unknownRights []string
}

// versionOf returns the version under which an object is shown.
func (v *view) versionOf(cluster string, e *fleet.Entry) string {
	if v.shape == nil || v.past {
		return string(e.Version)
	}
	return v.moment.of(cluster, e.Key)
}

// version returns the version of a list of the view. snap is a snapshot of the only place of a cluster's view.
func (v *view) version(snap *fleet.Snapshot) string {
	if v.shape == nil {
		return string(snap.Version())
	}
	return strconv.FormatUint(v.moment.version, 10)
}

// view finds where the resource of a request is mirrored. cluster is nil at /fleet.
func (s *Server) view(w http.ResponseWriter, req *request, cluster *fleet.Cluster) (*view, error) {
	if cluster == nil {
		return s.fleetView(w, req)
	}
	at := place{cluster: cluster.Name()}
	if req.filtered {
		var err error
		at.visible, err = s.visibleInCluster(req, cluster)
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			return nil, err
		}
		if err != nil {
			return nil, req.refuse(err.Error())
		}
		if !at.shows(req.namespace) {
			if err := s.refuseUnknownThen(w, req, true); err != nil {
				return nil, err
			}
			return nil, req.refuse("")
		}
	}
	var err error
	if at.res, err = s.mirrored(cluster, &req.target); err != nil {
		return nil, err
	}
	warnDeprecated(w, cluster, at.res)
	if req.invalid != nil {
		return nil, req.invalid
	}
	v := &view{places: []place{at}, model: at, complete: true, past: req.isPast()}
	if !v.past {
		warnStale(w, cluster, at.res)
	}
	if req.filtered {
		markFiltered(w, req, v)
	}
	if req.filters && !v.past {
		v.changed = s.noteFiltered(req, at)
	}
	return v, nil
}

func (s *Server) fleetView(w http.ResponseWriter, req *request) (*view, error) {
	if req.invalid != nil {
		return nil, req.invalid
	}
	members, named, err := s.members(req)
	if err != nil {
		return nil, err
	}
	if req.verb == "get" {
		d := s.decide(req.http, members[0].Name(), req.attributes())
		if !d.Allowed {
			return nil, req.refuse(d.Reason)
		}
		recordOf(req.http).decide(d)
		then, err := s.decideThen(req, members[0].Name())
		switch {
		case err != nil:
			return nil, err
		case !then.Allowed:
			return nil, req.refuse(then.Reason)
		}
	}
	if req.verb != "get" && !s.seesAny(req, members) {
		if err := s.refuseUnknownThen(w, req, true); err != nil {
			return nil, err
		}
		if _, _, err := s.places(w, req, members, named || req.complete); err != nil {
			return nil, err // a request that is refused makes no hub
		}
	}
	// The hub comes first: it sends the objects of members that are synced after this moment as additions.
	moment := fleetMoment{hub: s.fleetHubs.get(req.gvr(), s.fleet)}
	if wanted, err := strconv.ParseUint(req.ResourceVersion, 10, 64); err == nil && req.verb != "watch" {
		if err := moment.hub.waitFor(req.context(), wanted); err != nil {
			return nil, unavailable(err)
		}
	}
	moment.version = moment.hub.now()
	places, unknownRights, err := s.places(w, req, members, named || req.complete)
	if err != nil {
		return nil, err
	}
	if err := s.refuseUnknownThen(w, req, named || req.complete); err != nil {
		return nil, err
	}
	v := &view{places: places, moment: moment, unknownRights: unknownRights, complete: named || req.complete,
		past: req.isPast()}
	v.model = places[slices.IndexFunc(places, func(p place) bool { return p.shows(req.namespace) })]
	v.shape = s.fleetShape(v.model.res)
	if req.verb != "get" && !v.past {
		if moment.hub.isRestoring() && (v.isRestricted() || moment.hub.wasRestricted(stableUser(req))) {
			// The version of such an answer may have to be advanced, which is not possible before the end.
			if err := moment.hub.wait(req.context()); err != nil {
				return nil, unavailable(err)
			}
			return s.fleetView(w, req)
		}
		s.noteShown(req, v)
	}
	markFiltered(w, req, v)
	return v, nil
}

// seesAny reports whether the user of a list or watch may see anything in one of the members.
func (s *Server) seesAny(req *request, members []*fleet.Cluster) bool {
	return slices.ContainsFunc(s.visibleInEach(req, members), func(m memberRights) bool {
		_, mirrored := m.cluster.Resource(req.gvr())
		return mirrored && m.shows(req.namespace)
	})
}

// memberRights is what the user of a list or watch may see in a member.
type memberRights struct {
	cluster *fleet.Cluster
	visible *query.Visible // nil means everything
	unknown error          // why the rights are not known; nil if they are
}

// shows reports whether something is visible: in a namespace, or at all if it is "".
func (m *memberRights) shows(namespace string) bool {
	return m.unknown == nil && (m.visible == nil || !m.visible.EmptyIn(namespace))
}

// visibleInEach returns what the user of a request may see in each of the members. A get is authorized before.
func (s *Server) visibleInEach(req *request, members []*fleet.Cluster) []memberRights {
	out := make([]memberRights, len(members))
	s.eachCluster(members, func(i int) {
		out[i].cluster = members[i]
		if req.verb != "get" {
			out[i].visible, out[i].unknown = s.visibleInCluster(req, members[i])
		}
	})
	return out
}

// mirrored returns a synced resource of a cluster, or the error to answer with.
func (s *Server) mirrored(c *fleet.Cluster, t *target) (*fleet.Resource, error) {
	res, ok := c.Resource(t.gvr())
	if !ok {
		if err := undiscovered(c); err != nil {
			return nil, err
		}
		return nil, s.errNoVersion(t, c)
	}
	if t.namespace != "" && !res.Info().Namespaced {
		return nil, errNoResource()
	}
	if !res.Synced() {
		return nil, errUnsynced(c, res, t)
	}
	return res, nil
}

// members returns the clusters that a request to /fleet is about. named reports whether the request names them.
func (s *Server) members(req *request) (out []*fleet.Cluster, named bool, err error) {
	only := req.onlyClusters()
	if req.cluster != "" {
		if len(only) > 0 && !slices.Contains(only, req.cluster) {
			return nil, true, badRequest("the request names cluster %q, which clusters=%s leaves out",
				clip(req.cluster), clip(req.clusters))
		}
		c, ok := s.fleet.Cluster(req.cluster)
		switch {
		case ok:
			return []*fleet.Cluster{c}, true, nil
		case s.mayKnow(req.http, req.cluster):
			return nil, true, errNoCluster(req.cluster)
		case req.verb == "get":
			return nil, true, req.refuse("")
		}
		return nil, true, errNothingVisible(req)
	}
	if len(only) == 0 {
		return s.fleet.Clusters(), false, nil
	}
	slices.Sort(only)
	for _, name := range slices.Compact(only) {
		c, ok := s.fleet.Cluster(name)
		switch {
		case ok:
			out = append(out, c)
		case s.mayKnow(req.http, name):
			return nil, true, badRequest("clusters= names %q, and there is no such cluster; /clusters lists the clusters",
				clip(name))
		default:
			req.omitted = true
		}
	}
	if len(out) == 0 {
		return nil, true, errNothingVisible(req)
	}
	return out, true, nil
}

// places finds where a resource is mirrored. A member that was never read is left out with a warning; if all is true,
// because the request names members or wants a complete answer, it is an error instead. So is a member that the start
// still waits for. A member that was read and cannot be reached now is included in its last known state.
//
// For a list or watch, each place says what the user may see of it. If that is nothing in any member, the request is
// forbidden. A member in which the user may see nothing is never missing, and neither errors nor warnings name it. A
// member whose rights are not known is like one that was never read.
func (s *Server) places(w http.ResponseWriter, req *request, members []*fleet.Cluster,
	all bool) (places []place, unknownRights []string, err error) {
	now, t := time.Now(), &req.target
	var (
		visible          []*fleet.Cluster // members in which the user may see something
		shown            bool             // the user may see something of a place
		out              []place
		awaited, missing []absent
		others           []absent // members that have the resource in another version
		denied           error    // of a member that does not let the mirror list the resource
		undenied         bool     // another member may have the resource
		message          string   // of the kind's deprecation
		since            release  // of the kind's deprecation
	)
	for _, m := range s.visibleInEach(req, members) {
		c := m.cluster
		res, ok := c.Resource(t.gvr())
		synced, shows := ok && res.Synced(), m.shows(req.namespace)
		if synced && m.unknown == nil {
			out = append(out, place{c.Name(), res, m.visible})
		}
		if m.unknown == nil && !shows {
			// The answer is the same if the request names a member that is not there.
			req.omitted = req.omitted || !synced && req.clusters != "" && !s.mayKnow(req.http, c.Name())
			continue
		}
		if shows {
			visible = append(visible, c)
		}
		if synced && shows {
			if !req.isPast() {
				warnStale(w, c, res)
			}
			if !shown {
				message, since = deprecation(res.GVK())
			}
			shown = true
			warnDeprecatedSince(w, c, message, since)
			continue
		}
		var why absent
		var refused error // by the member
		switch first, err := c.Discovered(); {
		case synced:
			unknownRights = append(unknownRights, c.Name())
			undenied, why = true, absent{cluster: c.Name(), why: clipReason(m.unknown.Error())}
			res = nil // its roles and bindings are what is waited for
		case ok && apierrors.IsForbidden(res.Health().Reflector.Err):
			refused, why = errUnsynced(c, res, t), unsynced(c, res)
		case ok:
			undenied, why = true, unsynced(c, res)
		case first.IsZero():
			undenied, why = true, undiscoveredMember(c, err)
		default:
			if version := s.served.of(c).otherVersion(t.gvr()); version != "" && shows {
				why := fmt.Sprintf("it has %s in version %s", t.groupResource(), version)
				others = append(others, absent{cluster: c.Name(), why: why})
			}
			continue
		}
		if !shows && !s.mayKnow(req.http, c.Name()) {
			refused, why = nil, hiddenMember(why)
		}
		if refused != nil {
			denied = refused
		}
		if s.start.awaits(c, res, now) {
			awaited = append(awaited, why)
		} else {
			missing = append(missing, why)
		}
	}
	switch {
	case denied != nil && !undenied && !shown:
		return nil, nil, denied
	case len(awaited) > 0:
		return nil, nil, s.start.starting(awaited)
	case len(missing) > 0 && (all || !shown):
		return nil, nil, incomplete(slices.Concat(missing, others))
	case len(others) > 0 && all && shown:
		return nil, nil, incomplete(others)
	case len(out) == 0 && !s.start.hasBegun():
		return nil, nil, s.start.starting(nil)
	case !shown && len(visible) == 0 && len(members) > 0:
		return nil, nil, errNothingVisible(req)
	case !shown:
		return nil, nil, s.errNoVersion(t, visible...)
	}
	for _, a := range slices.Concat(missing, others) {
		warnLeftOut(w, &a)
	}
	return out, unknownRights, nil
}

// discoverable returns an error if discovery cannot be answered for the members, and warns of those whose resources
// are not known, and of members in which the rights of the user are not known.
func (s *Server) discoverable(w http.ResponseWriter, r *http.Request, members, unknownRights []*fleet.Cluster) error {
	now := time.Now()
	var awaited, missing []absent
	for _, c := range unknownRights {
		why := absent{cluster: c.Name(), why: rightsUnknown}
		if !s.mayKnow(r, c.Name()) {
			why = hiddenMember(why)
		}
		if s.start.awaits(c, nil, now) {
			awaited = append(awaited, why)
		} else {
			missing = append(missing, why)
		}
	}
	for _, c := range members {
		first, err := c.Discovered()
		if !first.IsZero() {
			continue
		}
		why := undiscoveredMember(c, err)
		if s.start.awaits(c, nil, now) {
			awaited = append(awaited, why)
		} else {
			missing = append(missing, why)
		}
	}
	switch {
	case len(awaited) > 0:
		return s.start.starting(awaited)
	case len(members) == 0 && !s.start.hasBegun():
		return s.start.starting(nil)
	case len(missing) == len(members)+len(unknownRights) && len(missing) > 0:
		return incomplete(missing)
	}
	for i := range missing {
		warnLeftOut(w, &missing[i])
	}
	return nil
}

// undiscovered returns the error to answer with while the resources of a cluster are unknown, nil if they are known.
func undiscovered(c *fleet.Cluster) error {
	first, err := c.Discovered()
	if !first.IsZero() {
		return nil
	}
	why := undiscoveredMember(c, err)
	text := fmt.Errorf("the resources of cluster %q are not known: %s", c.Name(), strings.TrimSuffix(why.why, "."))
	if why.temporary {
		return unavailable(text)
	}
	return unavailableWithoutRetry(text)
}

// errNoVersion is the error for a resource that is not mirrored. It names the mirrored version if there is another: a
// mirror holds one version of each resource and does not convert, because most conversions lose data.
func (s *Server) errNoVersion(t *target, clusters ...*fleet.Cluster) error {
	for _, c := range clusters {
		if version := s.served.of(c).otherVersion(t.gvr()); version != "" {
			return &apierrors.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
				Message: fmt.Sprintf("%s of cluster %q are mirrored in version %s, and not in %s: ask for %s, or ask the "+
					"cluster itself", t.groupResource(), c.Name(), version, clip(t.version),
					schema.GroupVersion{Group: t.group, Version: version}),
				Details: &metav1.StatusDetails{Group: t.group, Kind: t.resource},
			}}
		}
	}
	if t.groupResource() == (schema.GroupResource{Resource: "secrets"}) {
		st := apierrors.NewNotFound(t.groupResource(), t.name).ErrStatus
		st.Message = "secrets are not mirrored: ask the cluster itself, or have the daemon started with --secrets"
		return &apierrors.StatusError{ErrStatus: st}
	}
	return errNoResource()
}

// errUnsynced is the error for a resource that was never read completely. If the cluster does not let the mirror list
// it, the answer is 403, because waiting does not help.
func errUnsynced(c *fleet.Cluster, res *fleet.Resource, t *target) error {
	if err := res.Health().Reflector.Err; apierrors.IsForbidden(err) {
		return apierrors.NewForbidden(t.groupResource(), t.name,
			fmt.Errorf("cluster %q does not let the mirror list them; allow it there, or exclude the resource: %w", c.Name(),
				err))
	}
	return unavailable(fmt.Errorf("%s of cluster %q are not mirrored completely yet: %s", t.resource,
		c.Name(), state(res)))
}

// state describes the state of a resource's reflector in a few words.
func state(res *fleet.Resource) string {
	h := res.Health()
	if err := h.Reflector.Err; err != nil {
		return fmt.Sprintf("%s, because: %v", h.Reflector.State, err)
	}
	return h.Reflector.State.String()
}
