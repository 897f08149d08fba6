package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/informertest"
)

func TestWatchWithoutInitialEventsSendsOnlyChanges(t *testing.T) {
	t.Parallel()
	cluster := informertest.NewServer()
	create(t, cluster, pod("web", "before", nil))
	s := newMemoryDaemon(t, map[string]http.Handler{"eu": cluster})
	s.Start()
	s.ready(t, 1)
	names := strings.Split("abcd", "")
	for i, path := range []string{"/clusters/eu/api/v1/pods", "/fleet/api/v1/pods"} {
		for j, version := range []string{"", "0"} {
			watch := s.open(t, path+"?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion="+
				version, "application/json")
			if watch.StatusCode != http.StatusOK {
				t.Fatalf("%s from %q: %s", path, version, watch.Status)
			}
			name := names[2*i+j]
			create(t, cluster, pod("web", name, nil))
			lines := bufio.NewScanner(watch.Body)
			if !lines.Scan() || !strings.Contains(lines.Text(), `"name":"`+name+`"`) {
				t.Errorf("%s from %q: the first event is %s, %v", path, version, lines.Text(), lines.Err())
			}
			watch.Body.Close()
		}
	}
}

func TestResourceThatTheMirrorMayNotListIsForbidden(t *testing.T) {
	t.Parallel()
	eu, us := informertest.NewServer(), informertest.NewServer()
	create(t, us, pod("web", "a", nil))
	eu.Inject(informertest.Fault{Resource: "pods", Code: http.StatusForbidden})
	s := newMemoryDaemon(t, map[string]http.Handler{"eu": eu, "us": us})
	s.Start()
	s.ready(t, 1)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(30 * time.Second); ; <-tick.C {
		code, body := s.get(t, "/clusters/eu/api/v1/pods", "application/json")
		if code == http.StatusServiceUnavailable && time.Now().Before(late) {
			continue // the mirror has not been refused yet
		}
		var status metav1.Status
		if err := json.Unmarshal([]byte(body), &status); err != nil || code != http.StatusForbidden ||
			status.Reason != metav1.StatusReasonForbidden ||
			!strings.Contains(status.Message, `cluster "eu" does not let the mirror list them`) {
			t.Fatalf("status %d, %v: %s", code, err, body)
		}
		break
	}
	for path, want := range map[string]int{
		"/clusters/eu/api/v1/namespaces/web/pods/a": http.StatusForbidden,
		"/clusters/eu/api/v1/pods?watch=true":       http.StatusForbidden,
		"/fleet/api/v1/pods?clusters=eu":            http.StatusForbidden,
		"/fleet/api/v1/namespaces/eu.web/pods":      http.StatusForbidden,
		"/fleet/api/v1/pods":                        http.StatusOK, "/fleet/api/v1/namespaces/us.web/pods": http.StatusOK,
	} {
		if code, body := s.get(t, path, "application/json"); code != want {
			t.Errorf("%s: %d: %s", path, code, body)
		}
	}
	resp := s.open(t, "/fleet/api/v1/pods", "application/json")
	resp.Body.Close()
	if warning := resp.Header.Get("Warning"); !strings.Contains(warning,
		"cluster eu is left out: it does not let the mirror list pods") {
		t.Errorf("the warning of the fleet is %q", warning)
	}
}

// headerWriter is a client that does something as soon as it sees the header of an answer.
type headerWriter struct {
	http.ResponseWriter
	onHeader func()
	onWrite  func(line string)
}

func (w *headerWriter) WriteHeader(int) { w.onHeader() }

func (w *headerWriter) Write(b []byte) (int, error) {
	w.onWrite(string(b))
	return len(b), nil
}

// A change after the header of a watch is sent, also if the mirror has it before the watch goes on.
func TestWatchFromNowSendsChangesAfterItsHeader(t *testing.T) {
	t.Parallel()
	cluster := informertest.NewServer()
	create(t, cluster, pod("web", "before", nil))
	s := newMemoryDaemon(t, map[string]http.Handler{"eu": cluster})
	s.Start()
	s.ready(t, 1)
	for name, path := range map[string]string{"a": "/clusters/eu/api/v1/pods", "b": "/fleet/api/v1/pods"} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		sent := false
		w := &headerWriter{ResponseWriter: httptest.NewRecorder(), onHeader: func() {
			create(t, cluster, pod("web", name, nil))
			for ctx.Err() == nil {
				if code, _ := s.get(t, "/clusters/eu/api/v1/namespaces/web/pods/"+name,
					"application/json"); code == http.StatusOK {
					return
				}
				runtime.Gosched()
			}
		}, onWrite: func(line string) {
			sent = sent || strings.Contains(line, `"name":"`+name+`"`)
			cancel()
		}}
		r := httptest.NewRequest(http.MethodGet, s.URL+path+
			"?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&timeoutSeconds=10", nil)
		s.Server.ServeHTTP(w, r.WithContext(ctx))
		cancel()
		if !sent {
			t.Errorf("%s: the change after the header was not sent", path)
		}
	}
}
