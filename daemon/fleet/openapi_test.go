package fleet_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/informertest"
)

const protobufV2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"

// openAPI answers requests for /openapi.
type openAPI struct {
	mu    sync.Mutex
	index string
	docs  map[string]string // by path, as content
	types map[string]string
	asked []string
}

func (o *openAPI) answer(r *http.Request) *http.Response {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !strings.HasPrefix(r.URL.Path, "/openapi") {
		return nil
	}
	if r.URL.Path == "/openapi/v3" {
		return replyJSON(o.index)
	}
	o.asked = append(o.asked, r.URL.Path)
	body, ok := o.docs[r.URL.Path]
	if !ok {
		return reply(404, "text/plain", strings.NewReader("none"))
	}
	if body == "endless" {
		return reply(200, "application/json", endless(" "))
	}
	etag := fmt.Sprintf("%q", fmt.Sprint(len(body)))
	if r.Header.Get("If-None-Match") == etag {
		return reply(http.StatusNotModified, "", strings.NewReader(""))
	}
	contentType := o.types[r.URL.Path]
	if contentType == "" {
		contentType = "application/json"
	}
	resp := reply(200, contentType, strings.NewReader(body))
	resp.Header.Set("Etag", etag)
	return resp
}

// set changes a document and returns the requests since the last call.
func (o *openAPI) set(index string, docs map[string]string) (asked string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.index = index
	maps.Copy(o.docs, docs)
	slices.Sort(o.asked)
	asked = strings.Join(o.asked, " ")
	o.asked = nil
	return asked
}

func link(name, hash string) string {
	return fmt.Sprintf(`%q:{"serverRelativeURL":"/openapi/v3/%s?hash=%s"}`, name, name, hash)
}

func indexOf(links ...string) string { return `{"paths":{` + strings.Join(links, ",") + `}}` }

func TestDocumentsAreFetchedWhenTheyChangeAndNotWhenTheyAreRead(t *testing.T) {
	inWorld(t, fleet.Options{Include: []string{"pods"}, Refresh: time.Minute}, func(w *world) {
		o := &openAPI{docs: map[string]string{}, types: map[string]string{"/openapi/v2": protobufV2}}
		first := indexOf(link("api/v1", "1"), link("apis/apps/v1", "1"))
		o.set(first, map[string]string{"/openapi/v3/api/v1": `{"core":1}`, "/openapi/v3/apis/apps/v1": `{"apps":1}`,
			"/openapi/v2": "\x0a\x03two"})
		_, cfg := w.server()
		c := w.join("eu", wrapped(cfg, o.answer))
		expect := func(path, contentType, want string) {
			t.Helper()
			body, got, ok := c.OpenAPI(path)
			if string(body) != want || got != contentType || ok != (want != "") {
				t.Errorf("%s: %q, %q, %v; want %q", path, body, got, ok, want)
			}
		}
		round := func() { <-time.After(61 * time.Second); synctest.Wait() }
		round()
		expect("/openapi/v3", "application/json", first)
		expect("/openapi/v3/api/v1", "application/json", `{"core":1}`)
		expect("/openapi/v3/apis/apps/v1", "application/json", `{"apps":1}`)
		expect("/openapi/v2", protobufV2, "\x0a\x03two")
		expect("/openapi/v3/apis/batch/v1", "", "")
		expect("/version", "", "")

		second := indexOf(link("api/v1", "1"), link("apis/batch/v1", "7"), link("apis/apps/v1", "2"))
		o.set(second, map[string]string{"/openapi/v3/apis/apps/v1": `{"apps":22}`,
			"/openapi/v3/apis/batch/v1": `{"batch":1}`})
		round()
		expect("/openapi/v3", "application/json", second)
		expect("/openapi/v3/apis/apps/v1", "application/json", `{"apps":22}`)
		expect("/openapi/v3/apis/batch/v1", "application/json", `{"batch":1}`)
		third := indexOf(link("api/v1", "1"))
		if asked := o.set(third, nil); !strings.Contains(asked, "apps") || strings.Contains(asked, "api/v1 ") {
			t.Errorf("asked for %s", asked)
		}
		round()
		expect("/openapi/v3/apis/batch/v1", "", "")
		expect("/openapi/v3/api/v1", "application/json", `{"core":1}`)
		if err := w.f.Leave(w.Context(), "eu"); err != nil {
			t.Fatal(err)
		}
		expect("/openapi/v3", "", "")
	})
}

func TestInvalidDocumentsDoNotAffectValidOnes(t *testing.T) {
	inWorld(t, fleet.Options{Include: []string{"pods"}}, func(w *world) {
		o := &openAPI{docs: map[string]string{},
			types: map[string]string{"/openapi/v2": "text/html", "/openapi/v3/good": "text/html"}}
		o.set(indexOf(link("endless", "1"), link("garbage", "1"), link("gone", "1"), link("good", "1"),
			link("../../api/v1/secrets", "1"), link("a//b", "1"), link("?x", "1"),
			`"pointer":{"serverRelativeURL":"http://169.254.169.254/?hash=1"}`),
			map[string]string{"/openapi/v3/endless": "endless", "/openapi/v3/garbage": "<html>",
				"/openapi/v3/good":    `{"good":1}`,
				"/openapi/v3/pointer": `{"pointer":1}`, "/openapi/v2": "<html>"})
		s, cfg := w.server()
		c := w.join("eu", wrapped(cfg, o.answer))
		w.untilState(c, fleet.Ready)
		w.until("the good document is there", func() bool { _, _, ok := c.OpenAPI("/openapi/v3/pointer"); return ok })
		if body, contentType, _ := c.OpenAPI("/openapi/v3/good"); string(body) != `{"good":1}` ||
			contentType != "application/json" {
			t.Errorf("good: %s, %s", body, contentType)
		}
		for _, path := range []string{"/openapi/v3/endless", "/openapi/v3/garbage", "/openapi/v3/gone", "/openapi/v2",
			"/openapi/v3/../../api/v1/secrets"} {
			if body, _, ok := c.OpenAPI(path); ok {
				t.Errorf("%s: %.40q", path, body)
			}
		}
		for _, r := range s.Requests() {
			if r.Resource == secretsGVR {
				t.Error("secrets were requested")
			}
		}
		if !strings.Contains(w.logs.String(), "OpenAPI documents failed") {
			t.Errorf("no failure was logged: %s", w.logs)
		}
	})
}

func TestInvalidDocumentsAreNotFetchedAgainBeforeTheNextRefresh(t *testing.T) {
	inWorld(t, fleet.Options{Include: []string{"pods"}, Refresh: time.Hour}, func(w *world) {
		o := &openAPI{docs: map[string]string{}, types: map[string]string{"/openapi/v2": "text/html"}}
		o.set(indexOf(link("garbage", "1"), link("a//b", "1")),
			map[string]string{"/openapi/v3/garbage": "<html>", "/openapi/v2": "<html>"})
		_, cfg := w.server()
		c := w.join("eu", wrapped(cfg, o.answer))
		w.until("the documents were requested", c.Described)
		o.set(o.index, nil)
		<-time.After(30 * time.Minute)
		if asked := o.set(o.index, nil); asked != "" {
			t.Errorf("requested again within half an hour: %s", asked)
		}
	})
}

func TestDescribedTellsMissingDocumentsFromUnknownOnes(t *testing.T) {
	inWorld(t, fleet.Options{Include: []string{"pods"}}, func(w *world) {
		o := &openAPI{index: indexOf(link("api/v1", "1")), docs: map[string]string{"/openapi/v3/api/v1": `{"core":1}`}}
		hold := make(chan struct{})
		var overloaded atomic.Bool
		overloaded.Store(true)
		_, cfg := w.server()
		c := w.join("eu", wrapped(cfg, func(r *http.Request) *http.Response {
			if strings.HasPrefix(r.URL.Path, "/openapi") {
				if overloaded.Load() {
					return reply(503, "text/plain", strings.NewReader("later"))
				}
				<-hold
			}
			return o.answer(r)
		}))
		synctest.Wait()
		if c.Described() {
			t.Error("Described is true after a temporary failure")
		}
		overloaded.Store(false)
		<-time.After(2 * time.Minute) // until the documents are requested again
		synctest.Wait()
		if _, _, ok := c.OpenAPI("/openapi/v3/api/v1"); ok || c.Described() {
			t.Errorf("without an answer: document %v, described %v", ok, c.Described())
		}
		close(hold)
		synctest.Wait()
		if _, _, ok := c.OpenAPI("/openapi/v3/api/v1"); !ok || !c.Described() {
			t.Errorf("after all answers: document %v, described %v", ok, c.Described())
		}
	})
	inWorld(t, fleet.Options{Include: []string{"pods"}, WithoutOpenAPI: true}, func(w *world) {
		_, cfg := w.server()
		if c := w.join("eu", cfg); !c.Described() {
			t.Error("Described is false although documents are not fetched")
		}
	})
}

// Clusters that serve the same have one copy of it, and what differs in one of them changes nothing for the others.
func TestClustersThatServeTheSameShareIt(t *testing.T) {
	const core, apps = "/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1"
	inWorld(t, fleet.Options{Include: []string{"pods", "widgets.example.com"}, Refresh: time.Minute}, func(w *world) {
		join := func(name, appsDocument string, change func(*informertest.Server)) *fleet.Cluster {
			o := &openAPI{docs: map[string]string{}, types: map[string]string{}}
			o.set(indexOf(link("api/v1", "1"), link("apis/apps/v1", "1")),
				map[string]string{core: `{"core":1}`, apps: appsDocument})
			s, cfg := w.server()
			change(s)
			return w.join(name, wrapped(cfg, o.answer))
		}
		as := func(*informertest.Server) {}
		a, b := join("a", `{"apps":1}`, as), join("b", `{"apps":1}`, as)
		c := join("c", `{"apps":2}`, func(s *informertest.Server) {
			widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
			register(t, s, widgets, "Widget", true)
		})
		for _, x := range []*fleet.Cluster{a, b, c} {
			w.until("the documents of "+x.Name()+" are there", func() bool {
				_, _, ok := x.OpenAPI("/openapi/v3")
				return ok
			})
		}
		if !a.SharesDocument(b, core) || !a.SharesDocument(b, apps) || !a.SharesDocument(c, core) || !a.SharesSelection(b) {
			t.Error("clusters that serve the same have copies of their own")
		}
		if a.SharesDocument(c, apps) || a.SharesSelection(c) {
			t.Error("a cluster that serves something else shares it")
		}
		for _, x := range []struct {
			*fleet.Cluster
			apps      string
			resources int
		}{{a, `{"apps":1}`, 1}, {b, `{"apps":1}`, 1}, {c, `{"apps":2}`, 2}} {
			if body, _, _ := x.OpenAPI(apps); string(body) != x.apps || len(x.Resources()) != x.resources {
				t.Errorf("%s: %s, %d resources", x.Name(), body, len(x.Resources()))
			}
		}
		if err := w.f.Leave(w.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if body, _, _ := b.OpenAPI(apps); string(body) != `{"apps":1}` {
			t.Errorf("after another cluster has left: %s", body)
		}
	})
}
