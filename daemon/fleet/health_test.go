package fleet_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/informertest"
)

func TestClusterStates(t *testing.T) {
	inWorld(t, fleet.Options{}, func(w *world) {
		s, cfg := w.server()
		defer s.Inject(informertest.Fault{Resource: "pods", Delay: 20 * time.Second, Times: 1})()
		began := time.Now()
		c := w.join("eu", cfg)
		h := w.untilState(c, fleet.Syncing)
		if h.Synced >= h.Resources || h.Err != "" {
			t.Errorf("while syncing: %+v", h)
		}
		h = w.untilState(c, fleet.Ready)
		if took := h.Since.Sub(began); took < 20*time.Second || took > 30*time.Second {
			t.Errorf("ready after %v", took)
		}

		deny := s.Inject(informertest.Fault{Resource: "configmaps", Code: http.StatusForbidden})
		s.CutWatches()
		h = w.untilState(c, fleet.Degraded)
		w.until("only the one that is denied fails", func() bool { return strings.HasPrefix(c.Health().Err, "1 of ") })
		if h = c.Health(); !strings.Contains(h.Err, "configmaps") {
			t.Errorf("Err = %q", h.Err)
		}
		deny()
		w.untilState(c, fleet.Ready)

		refuse := s.Inject(informertest.Fault{Refuse: true})
		s.CutWatches()
		h = w.untilState(c, fleet.Unreachable)
		if h.Err == "" || h.Synced != h.Resources {
			t.Errorf("unreachable: %+v", h)
		}
		<-time.After(10 * time.Minute)
		if h = c.Health(); h.State != fleet.Unreachable || h.LastEventAge < 10*time.Minute ||
			time.Since(h.Since) < 10*time.Minute {
			t.Errorf("unreachable for ten minutes: %+v", h)
		}
		refuse()
		w.untilState(c, fleet.Ready)
		<-time.After(2 * time.Minute)
		if h = c.Health(); h.State != fleet.Ready || h.LastEventAge > 2*time.Minute || h.Err != "" {
			t.Errorf("back: %+v", h)
		}
	})
}

// The state is also updated without calls of Health.
func TestSinceIsTheBeginningOfTheStateAndNotTheFirstCall(t *testing.T) {
	inWorld(t, fleet.Options{Include: []string{"pods"}}, func(w *world) {
		s, c := w.joined("eu")
		for _, begin := range []struct {
			state fleet.State
			by    func() func()
		}{
			{fleet.Ready, func() func() { return func() {} }},
			{fleet.Unreachable, func() func() {
				end := s.Inject(informertest.Fault{Refuse: true})
				s.CutWatches()
				return end
			}},
		} {
			began := time.Now()
			end := begin.by()
			<-time.After(time.Hour)
			h := c.Health()
			if took := h.Since.Sub(began); h.State != begin.state || took > 10*time.Second {
				t.Errorf("%s since %v after it began", h.State, took)
			}
			end()
		}
		w.untilState(c, fleet.Ready)
		<-time.After(time.Minute)
		said := w.logs.String()
		if n := strings.Count(said, "cannot be reached"); n != 1 || strings.Count(said, "can be reached again") != 1 ||
			strings.Contains(said, "informer:") {
			t.Errorf("the log has %d warnings that the cluster cannot be reached: %s", n, said)
		}
	})
}

func TestErrorOfAResourceContainsNoCredentials(t *testing.T) {
	inWorld(t, fleet.Options{Include: []string{"pods"}}, func(w *world) {
		_, cfg := w.server()
		cfg = wrapped(cfg, func(r *http.Request) *http.Response {
			if strings.HasSuffix(r.URL.Path, "/pods") {
				return reply(401, "application/json", strings.NewReader(
					`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401,`+
						`"message":"who is `+r.Header.Get("Authorization")+`"}`))
			}
			return nil
		})
		cfg.BearerToken = "hunter2-token"
		c := w.join("eu", cfg)
		h := w.untilState(c, fleet.Degraded)
		r, _ := c.Resource(podsGVR)
		shown := h.Err + "|" + r.Health().Reflector.Err.Error() + "|" + w.logs.String()
		if strings.Contains(shown, "hunter2") || !strings.Contains(h.Err, "pods: the credentials were refused (401)") ||
			!strings.Contains(w.logs.String(), "hidden") {
			t.Errorf("shown: %s", shown)
		}
		<-time.After(time.Hour)
		if n := strings.Count(w.logs.String(), "informer: "); n != 1 {
			t.Errorf("the log has the failure %d times: %s", n, w.logs)
		}
	})
}
