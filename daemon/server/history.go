package server

import (
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

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
	// Begins has when the history of each cluster begins.
	Begins map[string]string `json:"begins"`
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
	if req.verb == "list" && !req.onlyGaps {
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

// history answers with the changes of an object, or of the objects that a list selects. With history=gaps it reads no
// objects.
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
	if !req.onlyGaps {
		if err := memory.set(changesMemory); err != nil {
			return err
		}
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
	r := &changeReader{req: req, work: work, span: when, labels: labels, names: names, limit: maxChanges,
		begins: map[string]string{}}
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
