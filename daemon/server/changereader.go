package server

import (
	"errors"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
	"github.com/mirador-k8s/mirador/object"
)

// pastStep is a change as it is on disk, and the one before it.
type pastStep struct {
	at     *place
	change fleet.PastChange
	before *fleet.PastChange // nil if it was not read
}

// changeReader finds the first changes in a time.
type changeReader struct {
	req    *request
	work   *work
	span   span
	labels query.Selection
	names  func(object.Key) bool
	limit  int

	steps  []pastStep
	doc    query.Doc
	buf    []byte
	gaps   []ChangeGap
	begin  time.Time
	begins map[string]string
}

// readAll reads the changes of all places. As at a moment, a cluster of the fleet without history is left out.
func (r *changeReader) readAll(w http.ResponseWriter, v *view) error {
	var left []absent
	var first error
	read := 0
	for i := range v.places {
		at := &v.places[i]
		if !at.shows(r.req.namespace) {
			continue
		}
		err := r.read(at)
		var unknown *fleet.PastError
		if errors.As(err, &unknown) {
			left = append(left, absent{cluster: at.cluster, why: err.Error()})
			if first == nil {
				first = errPast(err)
			}
			continue
		} else if err != nil {
			return err
		}
		read++
	}
	if first != nil && (read == 0 || v.complete) {
		return first
	}
	for i := range left {
		warnLeftOut(w, &left[i])
	}
	return nil
}

// read reads the changes of a place.
func (r *changeReader) read(at *place) error {
	f := pastFilter(r.req, at, &r.labels)
	if r.req.verb == "get" {
		f = fleet.PastFilter{Key: object.NewKey(r.req.namespace, r.req.name)}
		if at.res.Info().Namespaced != (r.req.namespace != "") {
			return errNotFound(r.req.groupResource(), r.req.askedName)
		}
	}
	f.Pace = r.work.pace
	h, err := at.res.History(f, r.span.from, r.span.to)
	if err != nil {
		return err
	}
	for i := range h.Gaps {
		g := ChangeGap{Cluster: at.cluster, From: momentText(h.Gaps[i].From)}
		if !h.Gaps[i].To.IsZero() {
			g.To = momentText(h.Gaps[i].To)
		}
		r.gaps = append(r.gaps, g)
	}
	r.begins[at.cluster] = momentText(h.Begin)
	if h.Begin.After(r.begin) {
		r.begin = h.Begin
	}
	if r.req.onlyGaps {
		return nil
	}
	var last *fleet.PastChange
	for c, err := range h.Changes {
		if err != nil {
			return err
		}
		step := pastStep{at: at, change: c}
		if last != nil && last.Key == c.Key {
			step.before = last
		}
		last = &c
		// What was there when the history began has changed before that, as far as a list of changes goes.
		if r.req.verb == "list" && !c.Time.After(h.Begin) {
			continue
		}
		if err := r.consider(step); err != nil {
			return err
		}
	}
	return nil
}

// consider keeps a step if it is visible and selected, and one of the first ones.
func (r *changeReader) consider(step pastStep) error {
	key := step.change.Key
	if see := step.at.visible; see != nil && !see.All && !see.Contains(key) {
		return nil
	}
	if !r.names(key) || len(r.steps) > r.limit && !step.change.Time.Before(r.steps[r.limit].change.Time) {
		return nil
	}
	if r.labels.NeedsObject() {
		if ok, err := r.selects(&step); err != nil || !ok {
			return err
		}
	}
	r.steps = append(r.steps, step)
	if len(r.steps) > 2*r.limit+1 {
		r.sort()
		r.steps = slices.Delete(r.steps, r.limit+1, len(r.steps))
	}
	return nil
}

func (r *changeReader) sort() {
	slices.SortStableFunc(r.steps, func(a, b pastStep) int { return a.change.Time.Compare(b.change.Time) })
}

// selects reports whether the labels of an object match, before or after a change.
func (r *changeReader) selects(step *pastStep) (bool, error) {
	if !step.change.Deleted {
		var err error
		if r.buf, err = step.change.AppendJSON(r.buf[:0]); err != nil {
			return false, err
		}
		r.doc.Reset(r.buf)
		if ok, err := r.labels.Matches(r.req.context(), step.at.cluster, step.change.Key, &r.doc); err != nil || ok {
			return ok, err
		}
	}
	was, err := stateBefore(step)
	if err != nil || was == nil {
		return false, err
	}
	r.doc.Reset(was.json)
	return r.labels.Matches(r.req.context(), step.at.cluster, step.change.Key, &r.doc)
}

// list makes the answer. If there are more changes, its token begins where it ends.
func (r *changeReader) list() (*ChangeList, error) {
	r.sort()
	list := &ChangeList{TypeMeta: metav1.TypeMeta{Kind: "ChangeList", APIVersion: "mirador.dev/v1"}, Items: []Change{},
		Gaps: r.gaps, Begin: momentText(r.begin), Begins: r.begins}
	if list.Gaps == nil {
		list.Gaps = []ChangeGap{}
	}
	steps, size := r.steps, 0
	if len(steps) > r.limit {
		next := steps[r.limit].change.Time
		steps = steps[:r.limit]
		for len(steps) > 1 && !steps[len(steps)-1].change.Time.Before(next) {
			steps = steps[:len(steps)-1] // changes of one time, in several clusters, are on one page
		}
		list.Metadata.Continue = r.token(next)
	}
	for i := range steps {
		if err := r.work.pace(); err != nil {
			return nil, err
		}
		items, n, err := describeChange(&steps[i])
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, items...)
		if size += n; size > maxChangeBytes && i+1 < len(steps) {
			list.Metadata.Continue = r.token(steps[i+1].change.Time)
			break
		}
	}
	return list, nil
}

func (r *changeReader) token(from time.Time) string {
	return momentText(from) + "/" + momentText(r.span.to)
}

// checkExists returns an error if an object without changes is not known at all.
func (r *changeReader) checkExists(at *place) error {
	h, err := at.res.History(fleet.PastFilter{Key: object.NewKey(r.req.namespace, r.req.name)}, time.Time{}, time.Time{})
	if err != nil {
		return errPast(err)
	}
	for _, err := range h.Changes {
		return err
	}
	return errNotFound(r.req.groupResource(), r.req.askedName)
}
