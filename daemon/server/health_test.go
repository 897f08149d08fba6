package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/server"
)

// probe fails the test unless the answer to a health request has a code and contains all words.
func (s *fakeTimeDaemon) probe(path string, code int, words ...string) {
	s.Helper()
	w := httptest.NewRecorder()
	s.srv.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
	if w.Code != code {
		s.Errorf("%s: %d %s", path, w.Code, w.Body)
	}
	for _, word := range words {
		if !strings.Contains(w.Body.String(), word) {
			s.Errorf("%s does not contain %q:\n%s", path, word, w.Body)
		}
	}
}

// The daemon is ready as soon as its clusters are, and not only at the next look at them.
func TestDaemonIsReadyWhenItsClustersAre(t *testing.T) {
	inFakeTime(t, server.Options{}, []string{"eu"}, func(s *fakeTimeDaemon) {
		s.start()
		began := time.Now()
		pass(0)
		if passed := time.Since(began); passed > 0 {
			t.Fatalf("%s have passed", passed)
		}
		s.probe("/clusters/eu/readyz", http.StatusOK)
		s.probe("/readyz", http.StatusOK)
	})
}

func TestDaemonIsReadyAfterItsStartAndStaysReady(t *testing.T) {
	const ok, failed = http.StatusOK, http.StatusServiceUnavailable
	inFakeTime(t, server.Options{StartGrace: 10 * time.Second}, []string{"eu", "us"}, func(s *fakeTimeDaemon) {
		s.transports["us"].hold(anyPath)
		s.probe("/livez", ok)
		s.probe("/readyz", failed, "[-]start failed")
		s.start()
		pass(5 * time.Second)
		for _, path := range []string{"/livez", "/healthz", "/fleet/livez", "/clusters/eu/livez", "/clusters/eu/readyz"} {
			s.probe(path, ok, "ok")
		}
		s.probe("/readyz", failed, "[-]start failed", "readyz check failed")
		s.probe("/fleet/readyz", failed, "[-]start failed")
		s.probe("/readyz?verbose", failed, "[+]cluster-eu ok",
			"[-]cluster-us failed: its resources have not been discovered yet")
		s.probe("/clusters/us/livez", failed, "its resources have not been discovered yet")
		s.probe("/clusters/us/readyz", failed, "its resources have not been discovered yet")
		s.probe("/clusters/mars/livez", http.StatusNotFound)

		// The grace period of the unreachable cluster is over.
		pass(7 * time.Second)
		s.probe("/readyz", ok, "ok")
		s.probe("/readyz?verbose", ok, "[-]cluster-us", "readyz check passed")
		s.transports["us"].open()
		pass(2 * time.Minute)
		s.probe("/clusters/us/readyz", ok)

		// A cluster joins, one gets a new resource, and one dies.
		s.join("new").hold(anyPath)
		gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
		if err := s.transports["eu"].Register(gvr, "Widget", true); err != nil {
			t.Fatal(err)
		}
		s.transports["eu"].hold(func(path string) bool { return strings.HasSuffix(path, "/widgets") })
		s.transports["us"].kill()
		s.transports["us"].CutWatches()
		pass(10 * time.Minute)
		s.probe("/readyz", ok)
		s.probe("/clusters/eu/readyz", ok)
		s.probe("/clusters/us/livez", failed, "unreachable", errDead.Error())
		s.probe("/clusters/us/healthz", failed, "unreachable")
		s.probe("/clusters/us/readyz", failed, "unreachable")
		s.probe("/readyz?verbose", ok, "[+]cluster-eu ok", "[-]cluster-us failed: unreachable", "[-]cluster-new failed")

		s.srv.Stop()
		s.probe("/readyz", failed, "the daemon is stopping")
		s.probe("/livez", ok)
	})
}
