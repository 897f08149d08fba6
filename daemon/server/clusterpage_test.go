package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/daemon/server"
)

// reported returns the answer of /clusters with a query.
func reported(t *testing.T, srv http.Handler, query string) (report server.Report, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	srv.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/clusters?"+query, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("/clusters?%s: %d %s", query, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	return report, w.Body.String()
}

func clusterNames(report *server.Report) (names []string) {
	for i := range report.Clusters {
		names = append(names, report.Clusters[i].Name)
	}
	return names
}

func TestPagesOfTheReportHaveEachClusterOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, fl := manyResources(t, 5, 3, false)
		time.Sleep(time.Minute)
		var names []string
		next := ""
		for range 3 {
			page, _ := reported(t, srv, "limit=2&continue="+url.QueryEscape(next))
			names = append(names, clusterNames(&page)...)
			next = page.Continue
		}
		if want := []string{"c00", "c01", "c02", "c03", "c04"}; !slices.Equal(names, want) || next != "" {
			t.Errorf("the pages have %v and then continue with %q", names, next)
		}

		first, _ := reported(t, srv, "limit=2")
		if err := fl.Leave(t.Context(), "c01"); err != nil {
			t.Fatal(err)
		}
		rest, _ := reported(t, srv, "limit=3&continue="+first.Continue)
		if got := clusterNames(&rest); !slices.Equal(got, []string{"c02", "c03", "c04"}) || rest.Continue != "" {
			t.Errorf("after the last cluster of the first page has left, the next page has %v", got)
		}
		if past, _ := reported(t, srv, "continue=zz"); len(past.Clusters) != 0 || past.Continue != "" {
			t.Errorf("behind the last cluster there is %+v", past)
		}
	})
}

func TestTotalsAreThoseOfTheResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := manyResources(t, 2, 3, false)
		time.Sleep(time.Minute)
		whole, _ := reported(t, srv, "")
		short, body := reported(t, srv, "resources=false")
		if strings.Contains(body, `"resources"`) {
			t.Errorf("the report of the resources is not left out: %s", body)
		}
		for i, c := range whole.Clusters {
			var want server.ClusterTotals
			for _, r := range c.Resources {
				want.Mirrored++
				want.Objects += r.Objects
				want.Queue += r.Queue
				want.Events += r.Events
				want.Bytes += r.Bytes
				if r.Synced {
					want.Synced++
				}
			}
			if c.Totals != want || want.Mirrored != 3 || want.Synced != 3 || want.Objects != 1 {
				t.Errorf("%s: the totals are %+v, want %+v", c.Name, c.Totals, want)
			}
			if short.Clusters[i].Totals != want {
				t.Errorf("%s without its resources: the totals are %+v, want %+v", c.Name, short.Clusters[i].Totals, want)
			}
		}
	})
}

func TestWrongPagesOfTheReportAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := manyResources(t, 1, 1, false)
		for query, want := range map[string]string{
			"limit=-1":         `limit is a number of clusters, such as 100, not \"-1\"; leave it out for all clusters`,
			"limit=many":       `limit is a number of clusters, such as 100, not \"many\"; leave it out for all clusters`,
			"resources=no":     `resources is true or false, not \"no\"; false leaves the report of each resource out`,
			"watch=1&limit=10": "leave limit, continue and resources out",
		} {
			w := httptest.NewRecorder()
			srv.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/clusters?"+query, nil))
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %d %s", query, w.Code, w.Body)
			}
		}
	})
}

// A page tells a user no more than the whole report: the right to list clusters is needed for both.
func TestAPageOfTheReportNeedsTheRightToListClusters(t *testing.T) {
	d, _, _ := newDaemonWithRights(t)
	for _, query := range []string{"limit=1", "limit=1&continue=eu", "resources=false", "limit=many"} {
		resp := d.openAs(t, "ann", "/clusters?"+query)
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("/clusters?%s: %s", query, resp.Status)
		}
	}
}
