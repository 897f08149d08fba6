package server

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
	"github.com/mirador-k8s/mirador/object"
)

// The limits of one answer about changes.
const (
	maxChanges = 500
	// maxChangeBytes is how many bytes of changes end an answer.
	maxChangeBytes = 8 << 20
	// changesMemory is what a request for changes holds: the states that it compares, and its answer.
	changesMemory = 3 * maxChangeBytes
	// defaultSpan is how far back the changes of several objects go, if from= is not given.
	defaultSpan = time.Hour
)

// A ChangeList is what changed in a resource, oldest first.
type ChangeList struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ListMeta `json:"metadata"`
	Items           []Change        `json:"items"`
	// Gaps are times in which changes were not seen.
	Gaps []ChangeGap `json:"gaps"`
	// Begin is when the history begins: what was before is not known. Of several clusters it is the latest.
	Begin string `json:"begin"`
}

// ChangeGap is a time in which changes of a cluster were not seen. Without To it has not ended.
type ChangeGap struct {
	Cluster string `json:"cluster"`
	From    string `json:"from"`
	To      string `json:"to,omitempty"`
}

// span is the time that a request for changes is about.
type span struct{ from, to time.Time }

// parseSpan parses from=, to= and continue=.
func (req *request) parseSpan(now time.Time) (s span, err error) {
	q := req.http.URL.Query()
	s = span{to: now}
	if req.verb == "list" {
		s.from = now.Add(-defaultSpan)
	}
	from, to := q.Get("from"), q.Get("to")
	if req.Continue != "" {
		var ok bool
		if from, to, ok = strings.Cut(req.Continue, "/"); !ok {
			return s, badRequest("continue key is not valid: it is not from a list of changes")
		}
	}
	if from != "" {
		if s.from, err = parseMoment("from=", from, now); err != nil {
			return s, err
		}
	}
	if to != "" {
		if s.to, err = parseMoment("to=", to, now); err != nil {
			return s, err
		}
	}
	switch {
	case s.to.After(now):
		return s, badRequest("to= is in the future; leave it out for changes until now")
	case s.from.After(s.to):
		return s, badRequest("from= is after to=; swap them")
	}
	return s, nil
}

// checkHistory returns the error for a request for changes that asks for something else, too.
func (req *request) checkHistory() error {
	switch {
	case req.verb == "watch":
		return badRequest("changes cannot be watched; list them with from=, or watch without history=true")
	case req.isPast():
		return badRequest("history and at= do not go together; give from= and to=")
	case req.where != "" || req.order != "":
		return badRequest("changes can be selected with labelSelector= and fieldSelector=, not with where= or orderBy=")
	case !req.fromNow():
		return badRequest("changes have no resourceVersion=; give from= and to=")
	}
	return nil
}

// history answers with the changes of an object, or of the objects that a list selects.
func (s *Server) history(w http.ResponseWriter, req *request, v *view) error {
	when, err := req.parseSpan(time.Now())
	if err != nil {
		return err
	}
	labels, err := query.ParseSelection(req.labels, "", "")
	if err != nil {
		return badRequest("%v", err)
	}
	names, err := keyMatch(req.fields)
	if err != nil {
		return err
	}
	client := clientOf(req.http)
	work, err := s.work.begin(req.context(), client)
	if err != nil {
		return err
	}
	defer work.end()
	memory := s.memory.open(client)
	defer memory.close()
	if err := memory.set(changesMemory); err != nil {
		return err
	}
	work.leave()
	for _, at := range v.places {
		if at.shows(req.namespace) {
			if err := at.res.AwaitPast(req.context(), when.to); err != nil {
				return err
			}
		}
	}
	if err := work.resume(); err != nil {
		return err
	}
	r := &changeReader{req: req, work: work, span: when, labels: labels, names: names, limit: maxChanges}
	if req.Limit > 0 {
		r.limit = min(r.limit, int(req.Limit))
	}
	if err := r.readAll(w, v); err != nil {
		return err
	}
	if err := s.stillAllowed(req, v); err != nil {
		return err
	}
	list, err := r.list()
	if err == nil && len(list.Items) == 0 && req.verb == "get" {
		err = r.checkExists(&v.places[0])
	}
	if err != nil {
		return err
	}
	work.leave()
	body, err := encodeChanges(list)
	if err != nil {
		return err
	}
	return writeObject(w, req.http, body)
}

// keyMatch returns a function for the keys that a field selector selects.
func keyMatch(selector string) (func(object.Key) bool, error) {
	parsed, err := fields.ParseSelector(selector)
	if err != nil {
		return nil, badRequest("%v", err)
	}
	terms := parsed.Requirements()
	for _, q := range terms {
		if q.Field != byName && q.Field != byNamespace {
			return nil, badRequest("changes can be selected by the fields metadata.name and metadata.namespace, not by %s",
				clip(q.Field))
		}
	}
	return func(k object.Key) bool {
		for _, q := range terms {
			value := k.Name()
			if q.Field == byNamespace {
				value = k.Namespace()
			}
			if (value == q.Value) == (q.Operator == selection.NotEquals) {
				return false
			}
		}
		return true
	}, nil
}

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

	steps []pastStep
	doc   query.Doc
	buf   []byte
	gaps  []ChangeGap
	begin time.Time
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
	if h.Begin.After(r.begin) {
		r.begin = h.Begin
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
		Gaps: r.gaps, Begin: momentText(r.begin)}
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
