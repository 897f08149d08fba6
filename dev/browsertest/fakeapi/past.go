package fakeapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Gap is a time in which a cluster was not watched. If To is zero, it has not ended.
type Gap struct {
	Cluster  string
	From, To time.Time
}

// AddGap adds a gap to the history.
func (s *Server) AddGap(g Gap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gaps = append(s.gaps, g)
}

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// past resolves at=, and answers requests about a past that is not known.
func (s *Server) past(w http.ResponseWriter, r *http.Request, q *request) bool {
	text := r.URL.Query().Get("at")
	if text == "" && !q.history {
		return true
	}
	if s.begin.IsZero() {
		s.refuseCause(w, "NoDataFolder", "the past is not known: the daemon keeps no history; start it with --data DIR")
		return false
	}
	if q.res.name == "events" {
		s.refuseCause(w, "NoHistory", `no history is kept of events of cluster "eu"; ask for another resource`)
		return false
	}
	if q.history {
		return true
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	switch {
	case err != nil || r.URL.Query().Get("watch") == "true":
		refuse(w, http.StatusBadRequest, "BadRequest", "at= is a time such as 2026-11-17T10:00:00Z, not "+text)
		return false
	case at.After(time.Now()):
		refuse(w, http.StatusBadRequest, "BadRequest", "the moment is in the future; ask for an earlier one")
		return false
	case at.Before(s.begin):
		refuse(w, http.StatusGone, "Gone", fmt.Sprintf("the history of %s begins at %s; ask for that moment or a later one",
			q.res.name, timeText(s.begin)))
		return false
	}
	q.at = s.versionAt(at)
	for _, g := range s.gapsOf(q) {
		if at.Before(g.From) || !g.To.IsZero() && !at.Before(g.To) {
			continue
		}
		until := "on"
		if !g.To.IsZero() {
			until = "to " + timeText(g.To)
		}
		w.Header().Add("Warning", fmt.Sprintf(`299 mirador "changes of %s of cluster %s were not seen from %s %s: `+
			`this may be out of date"`, q.res.name, g.Cluster, timeText(g.From), until))
	}
	w.Header().Set("Mirador-At", timeText(at))
	return true
}

// refuseCause answers 400 with a cause.
func (s *Server) refuseCause(w http.ResponseWriter, cause, message string) {
	st := status(http.StatusBadRequest, "BadRequest", message)
	st["details"] = object{"causes": []object{{"reason": cause, "message": message}}}
	reply(w, http.StatusBadRequest, st)
}

// versionAt returns the version at a time.
func (s *Server) versionAt(t time.Time) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := int64(1000) // of the initial pods
	for _, c := range s.log {
		if !c.time.After(t) {
			v = c.version
		}
	}
	return v
}

func (s *Server) gapsOf(q *request) (all []Gap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.gaps {
		named := strings.HasPrefix(q.namespace, g.Cluster+".") || !q.fleet || q.namespace == ""
		if named && slices.ContainsFunc(q.clusters, func(c *cluster) bool { return c.name == g.Cluster }) {
			all = append(all, g)
		}
	}
	return all
}

// changesOf answers what changed, or only the gaps.
func (s *Server) changesOf(w http.ResponseWriter, r *http.Request, q request) {
	list := object{"kind": "ChangeList", "apiVersion": "mirador.dev/v1", "metadata": object{}, "begin": timeText(s.begin)}
	begins, gaps, items := object{}, []object{}, []object{}
	for _, c := range q.clusters {
		begins[c.name] = timeText(s.begin)
	}
	from, _ := time.Parse(time.RFC3339Nano, r.URL.Query().Get("from"))
	to, err := time.Parse(time.RFC3339Nano, r.URL.Query().Get("to"))
	if err != nil {
		to = time.Now()
	}
	for _, g := range s.gapsOf(&q) {
		if g.From.After(to) || !g.To.IsZero() && g.To.Before(from) {
			continue
		}
		gap := object{"cluster": g.Cluster, "from": timeText(g.From)}
		if !g.To.IsZero() {
			gap["to"] = timeText(g.To)
		}
		gaps = append(gaps, gap)
	}
	if r.URL.Query().Get("history") != "gaps" {
		known := false
		items, known = s.changesBetween(&q, from, to)
		if q.name != "" && !known {
			refuse(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", q.res.name, q.name))
			return
		}
	}
	list["begins"], list["gaps"], list["items"] = begins, gaps, items
	reply(w, http.StatusOK, list)
}

// changesBetween returns what changed, and whether an object that the request names was ever there.
func (s *Server) changesBetween(q *request, from, to time.Time) (items []object, known bool) {
	items = []object{}
	for _, c := range s.since(0) {
		if kind, _ := q.seen(c); kind == "" || q.name != "" && c.after.Name != q.name {
			continue
		}
		known = true
		if !c.time.Before(from) && !c.time.After(to) {
			items = append(items, c.item())
		}
	}
	if q.name == "" {
		return items, known
	}
	q.at = 1000 // whether it was there when the history began
	for p := range s.objects(*q, cursor{}, q.at) {
		if p.Name != q.name || !q.within(p) {
			continue
		}
		if known = true; !s.begin.Before(from) {
			first := change{version: q.at, time: s.begin, after: p}
			items = slices.Insert(items, 0, first.item())
		}
	}
	return items, known
}

// item is a change as in the answer of the daemon.
func (c *change) item() object {
	p := c.after
	item := object{"time": timeText(c.time), "cluster": p.Cluster, "namespace": p.Namespace, "name": p.Name,
		"uid": p.metadata(false)["uid"], "resourceVersion": fmt.Sprint(c.version), "type": "Added"}
	if c.deleted {
		item["type"] = "Deleted"
		return item
	}
	item["by"] = []object{{"manager": "kubelet", "operation": "Update", "time": timeText(c.time)}}
	if c.before == nil {
		return item
	}
	item["type"] = "Updated"
	changes := []object{}
	if was, is := c.before.phase(), p.phase(); was != is {
		changes = append(changes, object{"op": "replace", "path": "/status/phase", "old": was, "new": is})
	}
	if was, is := c.before.Restarts, p.Restarts; was != is {
		changes = append(changes, object{"op": "replace", "path": "/status/containerStatuses/0/restartCount", "old": was,
			"new": is})
	}
	item["changes"] = changes
	return item
}
