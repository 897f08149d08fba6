package fakeapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// request is a read of one resource.
type request struct {
	fleet     bool
	clusters  []*cluster
	res       *resource
	namespace string // as in the path
	name      string
	match     func(Pod) bool
	filtered  bool
	history   bool  // the path ends with /history, or history= is given
	at        int64 // the version of the moment; 0 for now
}

// kubernetes answers GET, LIST and WATCH.
func (s *Server) kubernetes(w http.ResponseWriter, r *http.Request) {
	q, ok := s.parse(w, r)
	if !ok {
		return
	}
	if !s.past(w, r, &q) {
		return
	}
	if q.history {
		s.changesOf(w, r, q)
		return
	}
	if q.name != "" {
		s.get(w, q)
		return
	}
	if !strings.Contains(r.Header.Get("Accept"), "as=Table") {
		refuse(w, http.StatusNotAcceptable, "NotAcceptable", "the page lists only Tables")
		return
	}
	if r.URL.Query().Get("watch") == "true" {
		s.watch(w, r, q)
		return
	}
	s.list(w, r, q)
}

func (s *Server) parse(w http.ResponseWriter, r *http.Request) (q request, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if parts[0] == "fleet" {
		q.fleet = true
		for _, name := range slices.Sorted(maps.Keys(s.clusters)) {
			q.clusters = append(q.clusters, s.clusters[name])
		}
		parts = parts[1:]
	} else {
		if c := s.clusters[parts[1]]; c != nil {
			q.clusters = []*cluster{c}
		}
		parts = parts[2:]
	}
	group := ""
	if parts[0] == "apis" && len(parts) > 3 {
		group, parts = parts[1], parts[1:]
	}
	if len(parts) < 3 || len(q.clusters) == 0 {
		refuse(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
		return q, false
	}
	version, parts := parts[1], parts[2:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		q.namespace, parts = parts[1], parts[2:]
	}
	for _, res := range q.clusters[0].resources {
		if res.group == group && res.version == version && res.name == parts[0] {
			q.res = res
		}
	}
	if q.res == nil {
		refuse(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
		return q, false
	}
	if len(parts) > 1 {
		q.name = parts[1]
	}
	q.history = len(parts) > 2 && parts[2] == "history" || r.URL.Query().Get("history") != ""
	return q, q.selection(w, r)
}

var (
	phaseIs   = regexp.MustCompile(`^status\.phase (==|!=) "(\w+)"$`)
	nameBegin = regexp.MustCompile(`^metadata\.name\.startsWith\("([^"]*)"\)$`)
)

// selection supports label selectors, and the two CEL expressions that tests use.
func (q *request) selection(w http.ResponseWriter, r *http.Request) bool {
	v := r.URL.Query()
	selector, err := labels.Parse(v.Get("labelSelector"))
	if err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", "unable to parse requirement: "+err.Error())
		return false
	}
	where := func(Pod) bool { return true }
	if text := v.Get("where"); text != "" {
		if m := phaseIs.FindStringSubmatch(text); m != nil {
			where = func(p Pod) bool { return (p.phase() == m[2]) == (m[1] == "==") }
		} else if m := nameBegin.FindStringSubmatch(text); m != nil {
			where = func(p Pod) bool { return strings.HasPrefix(p.Name, m[1]) }
		} else {
			refuse(w, http.StatusBadRequest, "BadRequest", "where: ERROR: <input>:1:1: undeclared reference\n | "+text+"\n | ^")
			return false
		}
	}
	q.filtered = v.Get("labelSelector") != "" || v.Get("where") != "" || q.namespace != ""
	q.match = func(p Pod) bool { return q.within(p) && selector.Matches(labels.Set(p.labels())) && where(p) }
	return true
}

// within reports whether the pod is in the requested namespace, if any.
func (q *request) within(p Pod) bool {
	if q.fleet {
		return q.namespace == "" || q.namespace == p.Cluster+"."+p.Namespace
	}
	return q.namespace == "" || q.namespace == p.Namespace
}

func (s *Server) get(w http.ResponseWriter, q request) {
	at := q.at
	if at == 0 {
		at = s.now()
	}
	for p := range s.objects(q, cursor{}, at) {
		m := p.metadata(q.fleet)
		namespace, _ := m["namespace"].(string)
		if m["name"] == q.name && namespace == q.namespace {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(p.JSON(q.res.kind, apiVersion(q.res), q.fleet))
			return
		}
	}
	refuse(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", q.res.name, q.name))
}

func apiVersion(r *resource) string {
	if r.group == "" {
		return r.version
	}
	return r.group + "/" + r.version
}

// list answers one page. The token has the list's version and the position at which it continues.
func (s *Server) list(w http.ResponseWriter, r *http.Request, q request) {
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	at, from, served := s.now(), cursor{}, 0
	if q.at > 0 {
		at = q.at
	}
	if token := r.URL.Query().Get("continue"); token != "" {
		if _, err := fmt.Sscanf(token, "%d.%d.%d.%d.%d", &at, &from.cluster, &from.index, &from.later, &served); err != nil {
			refuse(w, http.StatusBadRequest, "BadRequest", "continue key is not valid: "+err.Error())
			return
		}
		if at < s.forgotten() {
			refuse(w, http.StatusGone, "Expired",
				"The provided continue parameter is too old to display a consistent list result.")
			return
		}
	}
	rows, next := []object{}, ""
	for p, here := range s.objects(q, from, at) {
		if !q.match(p) {
			continue
		}
		if limit > 0 && len(rows) == limit {
			next = fmt.Sprintf("%d.%d.%d.%d.%d", at, here.cluster, here.index, here.later, served+len(rows))
			break
		}
		rows = append(rows, p.row(q.res.kind, q.fleet))
	}
	t := table(q.res.kind, q.fleet, at, rows, true)
	if meta := t["metadata"].(object); next != "" {
		meta["continue"] = next
		if !q.filtered {
			meta["remainingItemCount"] = s.count(q, at) - served - len(rows)
		}
	}
	reply(w, http.StatusOK, t)
}

// watch sends what changed since a version, until the client disconnects.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, q request) {
	since := number(r.URL.Query().Get("resourceVersion"))
	_, cut := s.streams()
	if since < s.forgotten() {
		refuse(w, http.StatusGone, "Expired", fmt.Sprintf("too old resource version: %d", since))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	defer s.stream()()
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	enc, head := json.NewEncoder(w), true
	for {
		moved, _ := s.streams()
		for _, c := range s.since(since) {
			since = c.version
			kind, p := q.seen(c)
			if kind == "" {
				continue
			}
			event := object{"type": kind,
				"object": table(q.res.kind, q.fleet, c.version, []object{p.row(q.res.kind, q.fleet)}, head)}
			if enc.Encode(event) != nil {
				return
			}
			head = false
		}
		w.(http.Flusher).Flush()
		select {
		case <-moved:
		case <-cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// seen returns a change as a client with this selection sees it.
func (q request) seen(c change) (kind string, p Pod) {
	if q.res.name != "pods" || !slices.ContainsFunc(q.clusters,
		func(k *cluster) bool { return k.name == c.after.Cluster }) {
		return "", p
	}
	was := c.before != nil && q.match(*c.before)
	is := !c.deleted && q.match(c.after)
	switch {
	case is && was:
		return "MODIFIED", c.after
	case is:
		return "ADDED", c.after
	case was:
		return "DELETED", c.after
	}
	return "", p
}
