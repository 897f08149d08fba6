package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
	"github.com/mirador-k8s/mirador/object"
)

// pastMemory is how many bytes the states of the past may have that requests read, together. They are held until the
// last page of their list is read.
const pastMemory = 256 << 20

// The causes in the Status of a request about a past that is not kept.
const (
	causeNoHistory    metav1.CauseType = "NoHistory"    // of this resource
	causeNoDataFolder metav1.CauseType = "NoDataFolder" // of any resource
)

// errPast converts an error of a read of the past to the error to answer with.
func errPast(err error) error {
	var past *fleet.PastError
	if !errors.As(err, &past) {
		return err
	}
	if past.Reason == fleet.BeforeHistory {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone,
			Reason: metav1.StatusReasonGone, Message: past.Error()}}
	}
	st := apierrors.NewBadRequest(past.Error()).ErrStatus
	cause := map[fleet.PastReason]metav1.CauseType{fleet.NoHistory: causeNoHistory, fleet.NoDisk: causeNoDataFolder}
	if why := cause[past.Reason]; why != "" {
		st.Details = &metav1.StatusDetails{Group: past.Resource.Group, Kind: past.Resource.Resource,
			Causes: []metav1.StatusCause{{Type: why, Message: past.Error()}}}
	}
	return &apierrors.StatusError{ErrStatus: st}
}

// awaitPast waits until all changes before the moment of a request are on disk.
func awaitPast(req *request, v *view) error {
	for _, at := range v.places {
		if at.shows(req.namespace) {
			if err := at.res.AwaitPast(req.context(), req.moment); err != nil {
				return err
			}
		}
	}
	return nil
}

// getPast returns the entry of the object of a request at its moment; nil if there was none.
func (s *Server) getPast(w http.ResponseWriter, req *request, v *view) (*fleet.Entry, error) {
	at := v.places[0]
	key := object.NewKey(req.namespace, req.name)
	if err := awaitPast(req, v); err != nil {
		return nil, err
	}
	m, err := at.res.At(req.moment, fleet.PastFilter{Key: key}, nil)
	if err != nil {
		return nil, errPast(err)
	}
	if err := s.stillAllowed(req, v); err != nil {
		return nil, err
	}
	s.describeMoment(w, req, &at, m)
	e, _ := m.Snapshot.Entry(key)
	return e, nil
}

// describeMoment sets the headers of an answer about the past.
func (s *Server) describeMoment(w http.ResponseWriter, req *request, at *place, m *fleet.Moment) {
	w.Header().Set(momentHeader, momentText(req.moment))
	if m == nil || m.Gap == nil {
		return
	}
	text := gapText(m.Gap)
	if req.fleet {
		text += ";cluster=" + at.cluster
	}
	w.Header().Add(gapHeader, text)
	warn(w, gapWarning(at.cluster, at.res.GVR().Resource, m.Gap))
}

// pastList is a list at a moment. Its memory is held by the request, and by the engine until the last page is read.
type pastList struct {
	memory *grant // of the snapshots
	work   *work
	marks  []fleet.Mark // of the snapshots
	users  atomic.Int32
}

func newPastList(memory *grant, w *work) *pastList {
	p := &pastList{memory: memory, work: w}
	p.users.Store(1)
	return p
}

// keep adds a user of the memory.
func (p *pastList) keep() { p.users.Add(1) }

// release removes a user of the memory.
func (p *pastList) release() {
	if p.users.Add(-1) == 0 {
		p.memory.close()
	}
}

// views returns the views of a list at the moment of its request. A cluster of the fleet whose past is not known is
// left out with a warning; if the request names clusters or wants a complete answer, that is an error instead.
func (p *pastList) views(s *Server, w http.ResponseWriter, req *request, v *view, ask *query.Request,
	shape *fleetShape) (views []query.View[*fleet.Object], err error) {
	var left []absent
	var first error
	held := int64(0)
	for _, at := range v.places {
		if !at.shows(req.namespace) {
			continue
		}
		read := int64(0)
		m, err := at.res.At(req.moment, pastFilter(req, &at, &ask.Selection), p.pace(s, ask.User, held, &read))
		var unknown *fleet.PastError
		if errors.As(err, &unknown) {
			left = append(left, absent{cluster: at.cluster, why: err.Error()})
			if first == nil {
				first = errPast(err)
			}
			continue
		} else if err != nil {
			return nil, err
		}
		held += read
		p.marks = append(p.marks, m.Mark)
		s.describeMoment(w, req, &at, m)
		views = append(views, query.View[*fleet.Object]{Cluster: at.cluster, Snapshot: m.Snapshot,
			Bytes: shape.bytes(at.cluster), Visible: at.visible})
	}
	if first != nil && (len(views) == 0 || v.complete) {
		return nil, first
	}
	for i := range left {
		warnLeftOut(w, &left[i])
	}
	return views, nil
}

// pace returns the function that a read of the past calls: it takes the memory for what is held and what is read.
func (p *pastList) pace(s *Server, user string, held int64, read *int64) func(int64) error {
	return func(n int64) error {
		*read = n
		if need := held + n; need > p.memory.held && p.memory.set(need+scanStep) != nil {
			s.engine.DropLists(user) // rather than that a list that nobody reads any more keeps the user from a new one
			if err := p.memory.set(need + scanStep); err != nil {
				return err
			}
		}
		return p.work.pace()
	}
}

// again returns the views of a list that another process has begun, read from disk, and prepares the request for them.
// If they are not all on disk, or the user may see something else now, the list has expired.
func (p *pastList) again(s *Server, req *request, v *view, ask *query.Request, shape *fleetShape,
	t *restartToken) (views []query.View[*fleet.Object], err error) {
	ask.Continue, ask.Resume = "", &t.next
	if err := s.engine.CheckResume(ask); err != nil {
		return nil, err
	}
	views, err = p.marked(s, req, v, ask, shape, t.marks)
	switch {
	case err != nil && !isAboutPast(req, err):
		return nil, err
	case err != nil || hashViews(views, req.namespace) != t.views:
		return nil, errNotOnDisk
	}
	return views, s.stillAllowed(req, v)
}

// isAboutPast reports whether an error of a read of the past is not about the work or the memory that it takes.
func isAboutPast(req *request, err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code == http.StatusGone || code == http.StatusBadRequest
	}
	return !errors.Is(err, query.ErrTooMuch) && req.context().Err() == nil
}

var errNotOnDisk = fmt.Errorf("the state of the list's first page is not on disk: %w", query.ErrExpired)

// marked returns the views of a list in the states of marks.
func (p *pastList) marked(s *Server, req *request, v *view, ask *query.Request, shape *fleetShape,
	marks []fleet.Mark) (views []query.View[*fleet.Object], err error) {
	shown := slices.DeleteFunc(slices.Clone(v.places), func(at place) bool { return !at.shows(req.namespace) })
	if len(shown) != len(marks) {
		return nil, errNotOnDisk
	}
	held := int64(0)
	for i, at := range shown {
		read := int64(0)
		snap, err := at.res.AtMark(marks[i], pastFilter(req, &at, &ask.Selection), p.pace(s, ask.User, held, &read))
		if err != nil {
			return nil, err
		}
		held += read
		views = append(views, query.View[*fleet.Object]{Cluster: at.cluster, Snapshot: snap,
			Bytes: shape.bytes(at.cluster), Visible: at.visible})
	}
	return views, nil
}

// pastFilter narrows the read of a place at a moment to what a request can select.
func pastFilter(req *request, at *place, sel *query.Selection) fleet.PastFilter {
	f := fleet.PastFilter{Namespace: req.namespace, Label: narrowestLabel(at.res.Snapshot(), sel.Labels)}
	own, err := fields.ParseSelector(req.fields)
	if err != nil {
		return f
	}
	name := ""
	for _, q := range own.Requirements() {
		switch {
		case q.Operator == selection.NotEquals:
		case q.Field == byNamespace && f.Namespace == "":
			f.Namespace = q.Value
		case q.Field == byName:
			name = q.Value
		}
	}
	if name != "" && (f.Namespace != "" || !at.res.Info().Namespaced) {
		f.Key = object.NewKey(f.Namespace, name)
	}
	return f
}

// narrowestLabel returns the label of a selector that the fewest objects have now, as name=value; "" if the selector
// requires none.
func narrowestLabel(now *fleet.Snapshot, sel labels.Selector) (best string) {
	if sel == nil {
		return ""
	}
	all, _ := sel.Requirements()
	index, err := now.Index("label")
	if err != nil {
		return ""
	}
	fewest := 0
	for i := range all {
		q := &all[i]
		values := q.ValuesUnsorted()
		switch q.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
		default:
			continue
		}
		if len(values) != 1 {
			continue
		}
		label := q.Key() + "=" + values[0]
		if n := index.Len(label); best == "" || n < fewest {
			best, fewest = label, n
		}
	}
	return best
}

// The continue token of a list at a moment ends with the moment, which at= may give relative to the present.

func pastToken(inner string, at time.Time) string {
	return inner + "." + strconv.FormatInt(at.UnixNano(), 10)
}

func splitPastToken(token string) (inner string, at time.Time, err error) {
	inner, text, _ := strings.Cut(token, ".")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return "", at, apierrors.NewBadRequest("continue key is not valid: it is not from a list at a moment")
	}
	return inner, time.Unix(0, n).UTC(), nil
}

// pastScope makes continue tokens of different moments and rights different.
func pastScope(req *request) string {
	return fmt.Sprintf(" at %q with the rights of then: %t", req.momentText, req.then != nil)
}

// pastVersion returns the version of a list at a moment: the newest one of an object in it.
func pastVersion(views []query.View[*fleet.Object]) string {
	var newest object.Version
	for i := range views {
		if v := views[i].Snapshot.Version(); newest == "" || newest.Before(v) {
			newest = v
		}
	}
	return string(newest)
}
