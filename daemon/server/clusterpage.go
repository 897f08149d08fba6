package server

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// clusterPage is the part of the report that a request for /clusters asks for.
type clusterPage struct {
	limit    int    // of clusters; 0 is no limit
	after    string // the name after which the page begins
	detailed bool   // with the report of each resource
}

var wholeReport = clusterPage{detailed: true}

// clusterPageOf reads the parameters limit, continue and resources.
func clusterPageOf(r *http.Request) (p clusterPage, err error) {
	query := r.URL.Query()
	p = wholeReport
	p.after = query.Get("continue")
	if text := query.Get("limit"); text != "" {
		if p.limit, err = strconv.Atoi(text); err != nil || p.limit < 0 {
			return p, badRequest("limit is a number of clusters, such as 100, not %q; leave it out for all clusters",
				clip(text))
		}
	}
	if text := query.Get("resources"); text != "" {
		if p.detailed, err = strconv.ParseBool(text); err != nil {
			return p, badRequest("resources is true or false, not %q; false leaves the report of each resource out",
				clip(text))
		}
	}
	return p, nil
}

// reportPage answers with one page of the report.
func (s *Server) reportPage(w http.ResponseWriter, r *http.Request) error {
	p, err := clusterPageOf(r)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, s.report(time.Now(), p))
	return nil
}

func (s *Server) report(now time.Time, p clusterPage) Report {
	out := Report{Now: now, Memory: memory(), Disk: s.disk(), Clusters: []ClusterReport{}}
	clusters, next := p.cut(s.fleet.Clusters())
	for _, c := range clusters {
		out.Clusters = append(out.Clusters, s.clusterReport(c, now, p.detailed))
	}
	out.Continue = next
	return out
}

// cut returns the clusters of the page, of all clusters in the order of their names, and the parameter continue of the
// next page. That is a name and not a number, so that a cluster that joins or leaves meanwhile moves no other one to
// another page.
func (p *clusterPage) cut(all []*fleet.Cluster) (page []*fleet.Cluster, next string) {
	first, found := slices.BinarySearchFunc(all, p.after,
		func(c *fleet.Cluster, name string) int { return strings.Compare(c.Name(), name) })
	if found {
		first++
	}
	page = all[first:]
	if p.limit == 0 || len(page) <= p.limit {
		return page, ""
	}
	page = page[:p.limit]
	return page, page[p.limit-1].Name()
}
