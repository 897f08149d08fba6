package fleet_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

func TestCustomResourceIsMirroredAndEndsSoonAfterItsDefinition(t *testing.T) {
	for name, include := range map[string][]string{"definitions mirrored": nil,
		"definitions not mirrored": {"*.example.com"}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fleet.Options{Include: include}, func(w *world) {
				s, cfg := w.server()
				register(t, s, crdsGVR, "CustomResourceDefinition", false)
				c := w.join("eu", cfg)
				w.untilState(c, fleet.Ready)
				<-time.After(time.Minute) // no refresh is due for a while
				if _, mirrored := c.Resource(crdsGVR); mirrored != (include == nil) {
					t.Fatalf("definitions are mirrored: %v", mirrored)
				}
				definition := custom(crdsGVR, "CustomResourceDefinition", "", "widgets.example.com")
				for range 2 {
					began := time.Now()
					changed := w.f.Changed()
					register(t, s, widgetsGVR, "Widget", true)
					create(t, s, definition.DeepCopy(), custom(widgetsGVR, "Widget", "a", "gear"))
					<-changed
					widgets := w.resource(c, widgetsGVR)
					if took := time.Since(began); took > 6*time.Second {
						t.Errorf("it took %v to appear", took)
					}
					if n := widgets.Snapshot().Len(); n != 1 {
						t.Errorf("%d widgets", n)
					}
					if !hasGroup(c, "example.com") {
						t.Errorf("Groups = %+v", c.Groups())
					}
					changed, began = w.f.Changed(), time.Now()
					if err := s.Unregister(widgetsGVR); err != nil {
						t.Fatal(err)
					}
					if _, err := s.Delete(definition.DeepCopy()); err != nil {
						t.Fatal(err)
					}
					<-widgets.Done()
					<-changed
					if took := time.Since(began); took > 6*time.Second {
						t.Errorf("it took %v to disappear", took)
					}
					if _, there := c.Resource(widgetsGVR); there || hasGroup(c, "example.com") {
						t.Error("the resource still exists")
					}
				}
			})
		})
	}
}

func hasGroup(c *fleet.Cluster, name string) bool {
	for _, g := range c.Groups() {
		if g.Name == name {
			return true
		}
	}
	return false
}

// Without a change of a definition, the informer notices that the resource is not served.
func TestResourceThatIsNoLongerServedEndsSoon(t *testing.T) {
	inWorld(t, fleet.Options{}, func(w *world) {
		s, cfg := w.server()
		register(t, s, widgetsGVR, "Widget", true)
		c := w.join("eu", cfg)
		w.untilState(c, fleet.Ready)
		widgets := w.resource(c, widgetsGVR)
		began := time.Now()
		if err := s.Unregister(widgetsGVR); err != nil {
			t.Fatal(err)
		}
		<-widgets.Done()
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("it took %v", took)
		}
		w.untilState(c, fleet.Ready)
	})
}

func TestDiscoveryIsRepeatedPeriodically(t *testing.T) {
	inWorld(t, fleet.Options{Include: []string{"pods", "*.example.com"}, Refresh: 10 * time.Minute}, func(w *world) {
		s, cfg := w.server()
		var asked atomic.Int32
		c := w.join("eu", wrapped(cfg, func(r *http.Request) *http.Response {
			if r.URL.Path == "/apis" {
				asked.Add(1)
			}
			return nil
		}))
		w.untilState(c, fleet.Ready)
		<-time.After(2 * time.Hour)
		if n := asked.Load(); n < 12 || n > 15 {
			t.Errorf("%d discoveries in two hours", n)
		}
		register(t, s, widgetsGVR, "Widget", true)
		changed := w.f.Changed()
		select {
		case <-changed:
		case <-time.After(11 * time.Minute):
			t.Error("a new resource was not found")
		}
	})
}

func TestSecretsAndExcludedResourcesAreNeverRequested(t *testing.T) {
	for _, secrets := range []bool{false, true} {
		inWorld(t, fleet.Options{Include: []string{"*"}, Exclude: []string{"configmaps"}, Secrets: secrets}, func(w *world) {
			s, c := w.joined("eu")
			w.untilState(c, fleet.Ready)
			if _, ok := c.Resource(secretsGVR); ok != secrets {
				t.Errorf("Options.Secrets is %v, and secrets are mirrored: %v", secrets, ok)
			}
			asked := 0
			for _, r := range s.Requests() {
				if r.Resource == secretsGVR {
					asked++
				}
				if r.Resource.Resource == "configmaps" {
					t.Error("an excluded resource was requested")
				}
			}
			if asked > 0 != secrets {
				t.Errorf("Options.Secrets is %v, and secrets were requested %d times", secrets, asked)
			}
		})
	}
}

func TestGroupsAreThoseOfMirroredResources(t *testing.T) {
	inWorld(t, fleet.Options{Include: []string{"pods", "deployments.apps", "*.example.com"}}, func(w *world) {
		s, cfg := w.server()
		register(t, s, widgetsGVR, "Widget", true)
		register(t, s, schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "widgets"}, "Widget", true)
		register(t, s, schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "wheels"}, "Wheel", false)
		c := w.join("eu", cfg)
		w.untilState(c, fleet.Ready)
		var got []string
		for _, g := range c.Groups() {
			var versions []string
			for _, v := range g.Versions {
				versions = append(versions, v.GroupVersion)
			}
			got = append(got, g.Name+"="+strings.Join(versions, "+")+"/"+g.PreferredVersion.Version)
		}
		if want := "=v1/v1, apps=apps/v1/v1, example.com=example.com/v1+example.com/v2/v1"; strings.Join(got, ", ") != want {
			t.Errorf("Groups = %s, want %s", strings.Join(got, ", "), want)
		}
		got = nil
		for _, r := range c.Resources() {
			got = append(got, r.GVR().Version+" "+r.GVR().GroupResource().String())
		}
		if want := "v1 pods, v1 deployments.apps, v1 widgets.example.com, v2 wheels.example.com"; strings.Join(got,
			", ") != want {
			t.Errorf("Resources = %s", strings.Join(got, ", "))
		}
	})
}

func TestResourcesStayWhileTheirGroupVersionIsUnknown(t *testing.T) {
	inWorld(t, fleet.Options{Refresh: time.Minute}, func(w *world) {
		s, cfg := w.server()
		register(t, s, widgetsGVR, "Widget", true)
		var stale atomic.Bool
		c := w.join("eu", edited(cfg, func(r *http.Request, body string) string {
			if !stale.Load() || r.URL.Path != "/apis" {
				return body
			}
			var list apidiscovery.APIGroupDiscoveryList
			if err := json.Unmarshal([]byte(body), &list); err != nil {
				t.Error(err)
			}
			for i := range list.Items {
				if g := &list.Items[i]; g.Name == "example.com" {
					g.Versions = []apidiscovery.APIVersionDiscovery{{Version: "v1", Freshness: apidiscovery.DiscoveryFreshnessStale}}
				}
			}
			out, err := json.Marshal(list)
			if err != nil {
				t.Error(err)
			}
			return string(out)
		}))
		w.untilState(c, fleet.Ready)
		widgets := w.resource(c, widgetsGVR)
		stale.Store(true)
		h := w.untilState(c, fleet.Degraded)
		if now, _ := c.Resource(widgetsGVR); now != widgets || !widgets.Synced() {
			t.Error("a resource is gone because its group version could not be discovered")
		}
		if !strings.Contains(h.Err, "example.com/v1") {
			t.Errorf("Err = %q", h.Err)
		}
		stale.Store(false)
		w.untilState(c, fleet.Ready)
		if now, _ := c.Resource(widgetsGVR); now != widgets {
			t.Error("the resource has a new mirror")
		}
	})
}

func TestServerWithoutAggregatedDiscoveryIsMirrored(t *testing.T) {
	inWorld(t, fleet.Options{Refresh: time.Minute}, func(w *world) {
		s, cfg := w.server()
		register(t, s, widgetsGVR, "Widget", true)
		var down atomic.Bool
		c := w.join("eu", wrapped(cfg, func(r *http.Request) *http.Response {
			if strings.Contains(r.Header.Get("Accept"), "APIGroupDiscoveryList") {
				r.Header.Set("Accept", "application/json")
			}
			if down.Load() && r.URL.Path == "/apis/example.com/v1" {
				return reply(503, "text/plain", strings.NewReader("down"))
			}
			return nil
		}))
		h := w.untilState(c, fleet.Ready)
		if h.Resources < 30 {
			t.Errorf("Health = %+v", h)
		}
		widgets := w.resource(c, widgetsGVR)
		if info := widgets.Info(); info.Kind != "Widget" || info.Group != "example.com" || info.SingularName != "widget" {
			t.Errorf("Info = %+v", info)
		}
		down.Store(true)
		w.untilState(c, fleet.Degraded)
		if now, _ := c.Resource(widgetsGVR); now != widgets {
			t.Error("a resource is gone because its group version could not be discovered")
		}
		down.Store(false)
		w.untilState(c, fleet.Ready)
	})
}

// After an answer 304 the last answer is used.
func TestUnchangedDiscoveryIsNotReadAgain(t *testing.T) {
	inWorld(t, fleet.Options{Refresh: time.Minute, Include: []string{"pods"}}, func(w *world) {
		_, cfg := w.server()
		var whole, unchanged atomic.Int32
		c := w.join("eu", wrapped(cfg, func(r *http.Request) *http.Response {
			if r.URL.Path != "/apis" {
				return nil
			}
			if r.Header.Get("If-None-Match") == `"x"` {
				unchanged.Add(1)
				return reply(http.StatusNotModified, "", strings.NewReader(""))
			}
			whole.Add(1)
			resp := reply(200, "application/json;as=APIGroupDiscoveryList",
				strings.NewReader(`{"kind":"APIGroupDiscoveryList","items":[]}`))
			resp.Header.Set("Etag", `"x"`)
			return resp
		}))
		w.untilState(c, fleet.Ready)
		<-time.After(10 * time.Minute)
		if whole.Load() != 1 || unchanged.Load() < 9 || c.Health().State != fleet.Ready {
			t.Errorf("read %d times, unchanged %d times, %+v", whole.Load(), unchanged.Load(), c.Health())
		}
	})
}
