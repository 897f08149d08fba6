package fleet_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/informertest"
)

func TestDeadClusterDelaysNoOtherAndReceivesFewRequests(t *testing.T) {
	inWorld(t, fleet.Options{}, func(w *world) {
		cfg, stop := informertest.Pipe(informertest.NewServer())
		stop()
		var asked atomic.Int32
		dead := w.join("dead", wrapped(cfg, func(*http.Request) *http.Response { asked.Add(1); return nil }))
		silent := w.join("silent", &rest.Config{Host: "http://silent.invalid",
			Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			})})
		began := time.Now()
		s, living := w.joined("living")
		create(t, s, pod("a", "one"))
		w.untilState(living, fleet.Ready)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("ready after %v; a dead cluster delayed it", took)
		}
		h := w.untilState(dead, fleet.Unreachable)
		if !strings.Contains(h.Err, "refused") {
			t.Errorf("Err = %q", h.Err)
		}
		if h := silent.Health(); h.State != fleet.Joining {
			t.Errorf("before the timeout: %+v", h)
		}
		<-time.After(discoveryTimeout + time.Second)
		if h := silent.Health(); h.State != fleet.Unreachable || !strings.Contains(h.Err, "it timed out") ||
			time.Since(h.Since) > 10*time.Second {
			t.Errorf("after the timeout: %+v", h)
		}
		asked.Store(0)
		<-time.After(time.Hour)
		if n := asked.Load(); n < 50 || n > 130 {
			t.Errorf("the dead cluster received %d requests in an hour", n)
		}
		if living.Health().State != fleet.Ready {
			t.Errorf("the other cluster: %+v", living.Health())
		}
	})
}

const discoveryTimeout = 30 * time.Second

func TestClusterIsMirroredSoonAfterItIsReachable(t *testing.T) {
	inWorld(t, fleet.Options{}, func(w *world) {
		_, cfg := w.server()
		var dead atomic.Bool
		dead.Store(true)
		c := w.join("eu", wrapped(cfg, func(*http.Request) *http.Response {
			if dead.Load() {
				return reply(http.StatusServiceUnavailable, "text/plain", strings.NewReader("not now"))
			}
			return nil
		}))
		w.untilState(c, fleet.Unreachable)
		<-time.After(10 * time.Minute)
		dead.Store(false)
		began := time.Now()
		w.untilState(c, fleet.Ready)
		if took := time.Since(began); took > 70*time.Second {
			t.Errorf("it took %v to notice", took)
		}
	})
}

func TestHostileServerAffectsOnlyItself(t *testing.T) {
	aggregated := func(body string) *http.Response {
		return reply(200, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", strings.NewReader(body))
	}
	const token = "hunter2-the-token"
	for name, answer := range map[string]func(*http.Request) *http.Response{
		"garbage":    func(*http.Request) *http.Response { return replyJSON("\x00\xff{{{") },
		"a web page": func(*http.Request) *http.Response { return reply(200, "text/html", strings.NewReader("<html>")) },
		"nothing":    func(*http.Request) *http.Response { return replyJSON("") },
		"null":       func(*http.Request) *http.Response { return replyJSON("null") },
		"no end":     func(*http.Request) *http.Response { return reply(200, "application/json", endless(" ")) },
		"no end, aggregated": func(*http.Request) *http.Response {
			r := aggregated("")
			r.Body = reply(200, "", endless("[")).Body
			return r
		},
		"deep":       func(*http.Request) *http.Response { return aggregated(strings.Repeat(`{"items":[`, 1_000_000)) },
		"other kind": func(*http.Request) *http.Response { return aggregated(`{"kind":"Secret","items":[]}`) },
		"too many groups": func(*http.Request) *http.Response {
			var b strings.Builder
			for i := range 5000 {
				fmt.Fprintf(&b, `,{"name":"g%d.com","versions":[{"version":"v1"}]}`, i)
			}
			return replyJSON(`{"kind":"APIGroupList","versions":["v1"],"groups":[` + b.String()[1:] + `]}`)
		},
		"a redirect": func(r *http.Request) *http.Response {
			resp := reply(302, "text/plain", strings.NewReader(""))
			resp.Header.Set("Location", "http://169.254.169.254/latest")
			return resp
		},
		"an echo": func(r *http.Request) *http.Response {
			return reply(401, "text/plain", strings.NewReader("you said "+r.Header.Get("Authorization")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fleet.Options{Include: []string{"pods"}}, func(w *world) {
				var elsewhere atomic.Bool
				hostile := w.join("hostile", &rest.Config{Host: "http://hostile.invalid", BearerToken: token,
					Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
						if r.URL.Host != "hostile.invalid" {
							elsewhere.Store(true)
						}
						resp := answer(r)
						resp.Request = r
						return resp, nil
					})})
				_, good := w.joined("good")
				w.untilState(good, fleet.Ready)
				h := w.untilState(hostile, fleet.Unreachable)
				if h.Err == "" || len(h.Err) > 1000 || len(hostile.Resources()) != 0 {
					t.Errorf("Health = %+v", h)
				}
				if strings.HasPrefix(name, "no end") && !strings.Contains(h.Err, "larger than") {
					t.Errorf("Err = %q", h.Err)
				}
				if strings.Contains(h.Err+w.logs.String(), token) {
					t.Errorf("the token is shown: %s\n%s", h.Err, w.logs)
				}
				if elsewhere.Load() {
					t.Error("a redirect was followed")
				}
				if err := w.f.Leave(w.Context(), "hostile"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestInvalidNamesAreLeftOutAndReported(t *testing.T) {
	inWorld(t, fleet.Options{Include: []string{"*"}}, func(w *world) {
		_, cfg := w.server()
		c := w.join("eu", edited(cfg, func(r *http.Request, body string) string {
			body = strings.ReplaceAll(body, `"resource":"configmaps"`, `"resource":"../../secrets"`)
			body = strings.ReplaceAll(body, `"kind":"Endpoints"`, `"kind":"<script>"`)
			return strings.ReplaceAll(body, `"name":"policy"`, `"name":"x/../../policy"`)
		}))
		h := w.untilState(c, fleet.Degraded)
		if !strings.Contains(h.Err, "left out") {
			t.Errorf("Err = %q", h.Err)
		}
		for _, r := range c.Resources() {
			if name := r.GVR().String() + r.GVK().Kind; strings.ContainsAny(name, "<") || strings.Contains(name, "..") {
				t.Errorf("%s is mirrored", name)
			}
		}
		if _, ok := c.Resource(podsGVR); !ok {
			t.Error("the valid resources are not mirrored")
		}
	})
}
