package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/informertest"
)

// memoryDaemon is a daemon with clusters in memory.
type memoryDaemon struct{ *server.InMemory }

func newMemoryDaemon(t *testing.T, clusters map[string]http.Handler) memoryDaemon {
	t.Helper()
	return memoryDaemon{server.NewInMemory(t, clusters, fleet.Options{Include: []string{"pods"}},
		server.Options{StartGrace: -1})}
}

func (s memoryDaemon) open(t *testing.T, path, accept string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	resp, err := s.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func (s memoryDaemon) get(t *testing.T, path, accept string) (int, string) {
	t.Helper()
	resp := s.open(t, path, accept)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// ready waits until n pods are mirrored.
func (s memoryDaemon) ready(t *testing.T, pods int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	reports := s.open(t, "/clusters?watch=true", "application/json")
	defer reports.Body.Close()
	stop := context.AfterFunc(ctx, func() { reports.Body.Close() })
	defer stop()
	var report server.Report
	for in := json.NewDecoder(reports.Body); ; {
		var update server.ReportUpdate
		if err := in.Decode(&update); err != nil {
			t.Fatalf("the pods were not mirrored: %v", err)
		}
		report.Update(&update)
		have := 0
		for _, c := range report.Clusters {
			for _, r := range c.Resources {
				have += r.Objects
			}
		}
		if have == pods {
			return
		}
	}
}

func pod(namespace, name string, with map[string]any) *unstructured.Unstructured {
	obj := map[string]any{"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": map[string]any{}}
	for k, v := range with {
		obj[k] = v
	}
	return &unstructured.Unstructured{Object: obj}
}

func create(t *testing.T, c *informertest.Server, objs ...*unstructured.Unstructured) {
	t.Helper()
	for _, obj := range objs {
		if _, err := c.Create(obj); err != nil {
			t.Fatal(err)
		}
	}
}
