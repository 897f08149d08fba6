package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/informertest"
)

// Otherwise objects of the fleet would be mirrored into the fleet again, and so on.
func TestDaemonDoesNotMirrorItsOwnFleet(t *testing.T) {
	t.Parallel()
	cluster := informertest.NewServer()
	create(t, cluster, pod("web", "a", nil))
	s := newMemoryDaemon(t, map[string]http.Handler{"eu": cluster})
	s.Start()
	s.ready(t, 1)
	kubeconfig := `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
		"clusters": [{"name": "c", "cluster": {"server": "` + s.URL + `/fleet"}}]}`
	body, err := json.Marshal(map[string]string{"name": "self", "kubeconfig": kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client.Post(s.URL+"/clusters", "application/json", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatal(resp.Status)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	reports := s.open(t, "/clusters?watch=true", "application/json")
	defer reports.Body.Close()
	defer context.AfterFunc(ctx, func() { reports.Body.Close() })()
	var report server.Report
	for in := json.NewDecoder(reports.Body); ; {
		var update server.ReportUpdate
		if err := in.Decode(&update); err != nil {
			t.Fatalf("the report has no error: %v", err)
		}
		report.Update(&update)
		for _, c := range report.Clusters {
			if c.Name != "self" {
				continue
			}
			if len(c.Resources) > 0 {
				t.Fatalf("the daemon mirrors itself: %+v", c)
			}
			if strings.Contains(c.Error, "cannot mirror itself") && strings.Contains(c.Error, "have it leave") {
				return
			}
		}
	}
}
