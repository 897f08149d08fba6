package server_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/informertest"
)

// malformedWriter replaces the node name of a pod by a list.
type malformedWriter struct{ http.ResponseWriter }

func (s *malformedWriter) Write(b []byte) (int, error) {
	return s.ResponseWriter.Write(bytes.ReplaceAll(b, []byte(`"nodeName":"odd"`), []byte(`"nodeName":[5,6]`)))
}

func (s *malformedWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *malformedWriter) Flush() { s.ResponseWriter.(http.Flusher).Flush() }

// Objects that no API server would send must not hide those of other clusters.
func TestMalformedObjectDoesNotBreakAnswersAboutAllClusters(t *testing.T) {
	t.Parallel()
	good, odd := informertest.NewServer(), informertest.NewServer()
	create(t, good, pod("web", "good", nil))
	create(t, odd, pod("web", "odd", map[string]any{"spec": map[string]any{"nodeName": "odd"}}))
	s := newMemoryDaemon(t, map[string]http.Handler{"eu": good,
		"us": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			odd.ServeHTTP(&malformedWriter{w}, r)
		})})
	s.Start()
	s.ready(t, 2)
	for _, accept := range []string{"application/json", "application/json;as=Table;g=meta.k8s.io;v=v1",
		"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"} {
		code, body := s.get(t, "/fleet/api/v1/pods", accept)
		if code != http.StatusOK || !strings.Contains(body, `"good"`) || !strings.Contains(body, `"odd"`) ||
			!json.Valid([]byte(body)) {
			t.Errorf("%s: %d %s", accept, code, body)
		}
	}
	var table metav1.Table
	if _, body := s.get(t, "/fleet/api/v1/pods",
		"application/json;as=Table;g=meta.k8s.io;v=v1"); json.Unmarshal([]byte(body), &table) != nil ||
		len(table.Rows) != 2 ||
		len(table.Rows[1].Cells) != len(table.ColumnDefinitions) || table.Rows[1].Cells[1] != "odd" {
		t.Errorf("the row of the malformed object: %+v", table.Rows)
	}
}

// A namespace without a cluster matches every cluster; one with a cluster means the same as in a path.
func TestFieldSelectorAtFleetAcceptsNamespacesWithAndWithoutCluster(t *testing.T) {
	t.Parallel()
	eu, us := informertest.NewServer(), informertest.NewServer()
	create(t, eu, pod("web", "a", nil), pod("db", "b", nil))
	create(t, us, pod("web", "c", nil))
	s := newMemoryDaemon(t, map[string]http.Handler{"eu": eu, "us": us})
	s.Start()
	s.ready(t, 3)
	for selector, want := range map[string]int{"metadata.namespace=web": 2, "metadata.namespace=eu.web": 1,
		"metadata.namespace!=web": 1, "metadata.namespace=none": 0} {
		code, body := s.get(t, "/fleet/api/v1/pods?fieldSelector="+strings.ReplaceAll(selector, "=", "%3D"),
			"application/json")
		var list metav1.PartialObjectMetadataList
		if err := json.Unmarshal([]byte(body), &list); err != nil || code != http.StatusOK || len(list.Items) != want {
			t.Errorf("%s: %d, %d items, want %d: %v", selector, code, len(list.Items), want, err)
		}
	}
	watch := s.open(t, "/fleet/api/v1/pods?watch=true&fieldSelector=metadata.namespace%3Deu.web", "application/json")
	defer watch.Body.Close()
	lines := bufio.NewScanner(watch.Body)
	next := func() string {
		if !lines.Scan() {
			t.Fatalf("the watch ended: %v", lines.Err())
		}
		return lines.Text()
	}
	if line := next(); !strings.HasPrefix(line, `{"type":"ADDED"`) || !strings.Contains(line, `"name":"a"`) {
		t.Errorf("the first event is %s", line)
	}
	create(t, us, pod("web", "d", nil))
	create(t, eu, pod("db", "e", nil), pod("web", "f", nil))
	if line := next(); !strings.HasPrefix(line, `{"type":"ADDED"`) || !strings.Contains(line, `"name":"f"`) {
		t.Errorf("the second event is %s", line)
	}
}

// An empty list would make informers believe that everything was deleted.
func TestResourceThatIsNotSyncedIsUnavailableAndNotEmpty(t *testing.T) {
	s := newMemoryDaemon(t, map[string]http.Handler{"eu": informertest.NewServer()})
	for _, path := range []string{"/fleet/api/v1/pods", "/fleet/api/v1/pods?watch=true", "/clusters/eu/api/v1/pods",
		"/clusters/eu/openapi/v3", "/clusters/eu/openapi/v2", "/fleet/openapi/v3"} {
		resp := s.open(t, path, "application/json")
		resp.Body.Close()
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %s, Retry-After %q", path, resp.Status, resp.Header.Get("Retry-After"))
		}
	}
	s.Start()
	s.ready(t, 0)
}
