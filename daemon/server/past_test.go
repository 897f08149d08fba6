package server_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mirador-k8s/mirador/daemon/disk"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/informertest"
)

// pastDaemon is a daemon with a data folder and the clusters eu and us, each with namespaces and pods.
type pastDaemon struct {
	memoryDaemon
	eu, us *informertest.Server
}

func newPastDaemon(t *testing.T, objs ...*unstructured.Unstructured) pastDaemon {
	t.Helper()
	d, err := disk.Open(t.TempDir(), disk.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	read := []any{"get", "list", "watch"}
	eu, us := informertest.NewServer(), informertest.NewServer()
	for _, c := range []*informertest.Server{eu, us} {
		create(t, c, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
			"metadata": map[string]any{"name": "kube-system"}}})
		create(t, c, clusterRole("pods", rule(read, []any{"pods"})), clusterRole("one-pod", rule(read, []any{"pods"}, "c")))
	}
	create(t, eu, objs...)
	create(t, eu, binding("web", "ann", "pods", "ann"), binding("", "all", "pods", "all"))
	create(t, us, pod("web", "u", nil), binding("", "all", "pods", "all"))
	p := pastDaemon{eu: eu, us: us}
	p.memoryDaemon = memoryDaemon{server.NewInMemoryWithRights(t, map[string]http.Handler{"eu": eu, "us": us},
		fleet.Options{Include: []string{"pods", "events", "namespaces", "*.rbac.authorization.k8s.io"}, WithoutOpenAPI: true,
			Disk: d},
		server.Options{StartGrace: -1, Access: server.Access{Token: "administrator"}}, byHeader{})}
	p.Start()
	for _, path := range []string{"/clusters/eu", "/clusters/us", "/fleet"} {
		until(t, func() string {
			_, text, _ := p.read(t, "all", path+"/api/v1/pods?complete=true&at=-0s", "")
			if strings.Contains(text, `"kind":"Status"`) {
				return text
			}
			return ""
		})
	}
	return p
}

// read sends a GET as a user.
func (p pastDaemon) read(t *testing.T, user, path, accept string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Header.Set("Test-User", user); user == "administrator" {
		r.Header.Set("Authorization", "Bearer administrator")
	}
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	resp, err := p.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

// mirrors waits until the pods of eu are these.
func (p pastDaemon) mirrors(t *testing.T, want ...string) {
	t.Helper()
	until(t, func() string {
		got, _, text := p.podsAs(t, "all", "/clusters/eu/api/v1/pods")
		if slices.Equal(got, want) {
			return ""
		}
		return fmt.Sprintf("the pods are %v %s", got, text) // the text is empty without an error
	})
}

func at(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// withLabels returns a pod with labels and a phase.
func withLabels(namespace, name, phase string, labels map[string]any) *unstructured.Unstructured {
	p := pod(namespace, name, map[string]any{"status": map[string]any{"phase": phase},
		"spec": map[string]any{"nodeName": "n-" + name}})
	p.Object["metadata"].(map[string]any)["labels"] = labels
	return p
}

var (
	ageCells    = regexp.MustCompile(`"[0-9]+s"`)
	listVersion = regexp.MustCompile(`"metadata":{("resourceVersion":"[0-9]*",?)?("continue":"[^"]*",?)?`)
	versions    = regexp.MustCompile(`"resourceVersion":"[0-9]*"`)
)

// comparable removes what differs between an answer of the present and one of the past: tokens and list versions, ages
// by a second, and at /fleet the versions of the fleet.
func comparable(text, path string) string {
	text = listVersion.ReplaceAllString(ageCells.ReplaceAllString(text, `"AGE"`), `"metadata":{`)
	if strings.HasPrefix(path, "/fleet") {
		text = versions.ReplaceAllString(text, `"resourceVersion":"V"`)
	}
	return text
}

func TestAnAnswerAtAMomentIsWhatTheAnswerWasThen(t *testing.T) {
	web := map[string]any{"app": "web"}
	p := newPastDaemon(t, withLabels("web", "a", "Running", web), withLabels("web", "b", "Pending", web),
		withLabels("shop", "c", "Running", map[string]any{"app": "shop", "tier": "1"}))
	create(t, p.eu, withLabels("web", "d", "Running", web))
	p.mirrors(t, "shop/c", "web/a", "web/b", "web/d")

	type answer struct{ path, accept, text string }
	var then []answer
	moment := time.Now()
	for _, view := range []string{"/clusters/eu", "/fleet"} {
		for _, q := range []string{"", "labelSelector=app%3Dweb", "labelSelector=app!%3Dweb",
			"labelSelector=app+in+(web,shop)",
			"labelSelector=app%3Dweb,tier", "labelSelector=app%3Dweb,!tier", "labelSelector=app%3Dnone",
			"fieldSelector=status.phase%3DRunning", "fieldSelector=metadata.name%3Da", "fieldSelector=metadata.namespace%3Dweb",
			"fieldSelector=metadata.name%3Da,metadata.namespace%3Dweb", "fieldSelector=spec.nodeName%3Dn-a&labelSelector=app",
			"where=" + url.QueryEscape(`status.phase == "Running" && cluster == "eu"`), "orderBy=-metadata.name",
			"orderBy=status.phase,-spec.nodeName&labelSelector=app%3Dweb", "limit=1", "limit=2&labelSelector=app%3Dweb",
			"filtered=true"} {
			for _, of := range []string{"/api/v1/pods?", "/api/v1/namespaces/web/pods?"} {
				for _, accept := range []string{"application/json", tables, lists} {
					then = append(then, answer{path: view + of + q, accept: accept})
				}
			}
		}
	}
	then = append(then, answer{path: "/clusters/eu/api/v1/namespaces/web/pods/a?"},
		answer{path: "/clusters/eu/api/v1/namespaces/web/pods/a?", accept: tables},
		answer{path: "/fleet/api/v1/namespaces/eu.web/pods/a?"}, answer{path: "/fleet/api/v1/namespaces/eu.web/pods?"})
	for i := range then {
		code, text, _ := p.read(t, "all", then[i].path, then[i].accept)
		if code != http.StatusOK {
			t.Fatalf("%s: %s", then[i].path, text)
		}
		then[i].text = comparable(text, then[i].path)
	}

	// Everything changes.
	for _, obj := range []*unstructured.Unstructured{withLabels("web", "a", "Failed", map[string]any{"app": "shop"}),
		withLabels("shop", "c", "Failed", web)} {
		if _, err := p.eu.Update(obj); err != nil {
			t.Fatal(err)
		}
	}
	create(t, p.eu, withLabels("web", "e", "Running", web))
	create(t, p.us, withLabels("web", "e", "Running", web))
	for _, name := range []string{"b", "d"} {
		if _, err := p.eu.Delete(pod("web", name, nil)); err != nil {
			t.Fatal(err)
		}
	}
	p.mirrors(t, "shop/c", "web/a", "web/e")
	for _, a := range then {
		path := a.path + "&at=" + at(moment)
		code, text, header := p.read(t, "all", path, a.accept)
		if got := comparable(text, path); len(got) > 1000 && got != a.text {
			t.Errorf("%s as %s differs", path, a.accept)
		} else if code != http.StatusOK || got != a.text {
			t.Errorf("%s as %s\nthen: %s\n at=: %d %s", path, a.accept, a.text, code, got)
		}
		if header.Get("Mirador-At") != at(moment) || header.Get("Mirador-Gap") != "" || len(header["Warning"]) > 0 {
			t.Errorf("%s: %v", path, header)
		}
		view, rest, _ := strings.Cut(a.path[1:], "/api/")
		inPath := "/" + view + "@" + at(moment) + "/api/" + rest
		if _, again, _ := p.read(t, "all", inPath, a.accept); comparable(again, path) != a.text {
			t.Errorf("%s: %s", inPath, again)
		}
	}
	for path, want := range map[string]int{
		"/clusters/eu/api/v1/namespaces/web/pods/e?at=" + at(moment):   http.StatusNotFound,
		"/clusters/eu/api/v1/namespaces/web/pods/b?at=" + at(moment):   http.StatusOK,
		"/clusters/eu/api/v1/namespaces/web/pods/b":                    http.StatusNotFound,
		"/clusters/eu/api/v1/pods?at=yesterday":                        http.StatusBadRequest,
		"/clusters/eu/api/v1/pods?at=-1":                               http.StatusBadRequest,
		"/clusters/eu/api/v1/pods?at=--1h":                             http.StatusBadRequest,
		"/clusters/eu/api/v1/pods?at=2026-11-17":                       http.StatusBadRequest,
		"/clusters/eu@noon/api/v1/pods":                                http.StatusBadRequest,
		"/clusters/eu@noon/api/v1":                                     http.StatusBadRequest,
		"/clusters/eu@-0s/api/v1/pods?at=-1s":                          http.StatusBadRequest,
		"/clusters/eu/api/v1/pods?at=-0s&resourceVersion=7":            http.StatusBadRequest,
		"/clusters/eu/api/v1/pods?at=-0s&watch=true":                   http.StatusBadRequest,
		"/fleet/api/v1/pods?at=-0s&watch=true":                         http.StatusBadRequest,
		"/clusters/eu/api/v1/pods?at=" + at(time.Now().Add(time.Hour)): http.StatusBadRequest,
		"/clusters/eu/api/v1/pods?at=-1000h":                           http.StatusGone,
		"/clusters/eu/api/v1/pods?at=-40d1h":                           http.StatusGone,
		"/fleet/api/v1/pods?at=-1000h":                                 http.StatusGone,
		"/clusters/eu@" + at(moment) + "/api/v1":                       http.StatusOK,
		"/fleet@" + at(moment) + "/apis":                               http.StatusOK,
	} {
		if code, text, _ := p.read(t, "administrator", path, ""); code != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if code, text, _ := p.read(t, "all", "/clusters/eu/api/v1/pods?at=-1000h", ""); !strings.Contains(text,
		"begins at ") || code != http.StatusGone {
		t.Errorf("%d %s", code, text)
	}
}

func TestPagesAtAMomentAreOfThatMoment(t *testing.T) {
	p := newPastDaemon(t)
	var want []string
	for i := range 7 {
		create(t, p.eu, pod("web", fmt.Sprint("p", i), nil))
		want = append(want, fmt.Sprint("web/p", i))
	}
	p.mirrors(t, want...)
	for _, query := range []string{"at=-0s&limit=3", "at=-0s&limit=3&orderBy=metadata.name"} {
		var got []string
		var header string
		next := ""
		for range 3 {
			path := "/clusters/eu/api/v1/pods?" + query + "&continue=" + next
			var text string
			var h http.Header
			until(t, func() string { // a disk that is slow to write leaves a gap at the end, and the answer says so
				var code int
				if code, text, h = p.read(t, "all", path, ""); code == http.StatusOK && h.Get("Mirador-Gap") == "" {
					return ""
				}
				return fmt.Sprintf("%s: %d %v %s", path, code, h, text)
			})
			if header == "" {
				header = h.Get("Mirador-At")
				create(t, p.eu, pod("web", "p3x", nil))
				if p.Idle() {
					t.Error("the list holds no memory")
				}
			}
			if h.Get("Mirador-At") != header {
				t.Errorf("pages of %s and %s", header, h.Get("Mirador-At"))
			}
			names := regexp.MustCompile(`"name":"(p[0-9a-z]+)"`).FindAllStringSubmatch(text, -1)
			for _, n := range names {
				got = append(got, "web/"+n[1])
			}
			token := regexp.MustCompile(`"continue":"([^"]+)"`).FindStringSubmatch(text)
			if token == nil {
				break
			}
			next = token[1]
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v", query, got)
		}
		until(t, func() string {
			if !p.Idle() {
				return "the list still holds memory"
			}
			return ""
		})
		if _, err := p.eu.Delete(pod("web", "p3x", nil)); err != nil {
			t.Fatal(err)
		}
		p.mirrors(t, want...)
	}
}

func TestANewListOfThePastTakesTheMemoryOfUnfinishedOnes(t *testing.T) {
	p := newPastDaemon(t, pod("web", "a", nil), pod("web", "b", nil))
	p.LimitPast(1 << 20) // of which a list takes a quarter
	first := ""
	for range 9 {
		code, text, _ := p.read(t, "all", "/clusters/eu/api/v1/pods?limit=1&at=-0s", "")
		if code != http.StatusOK {
			t.Fatal(code, text)
		}
		if first == "" {
			first = regexp.MustCompile(`"continue":"([^"]+)"`).FindStringSubmatch(text)[1]
		}
	}
	if code, text, _ := p.read(t, "all", "/clusters/eu/api/v1/pods?limit=1&at=-0s&continue="+first, ""); code !=
		http.StatusGone {
		t.Errorf("%d %s", code, text)
	}
}

func TestRightsAtAMomentAreThoseOfNow(t *testing.T) {
	p := newPastDaemon(t, pod("web", "a", nil), pod("shop", "c", nil))
	moment := at(time.Now())
	for path, want := range map[string]string{
		"/fleet/api/v1/pods?at=" + moment:                          "eu.web/a",
		"/clusters/eu/api/v1/namespaces/web/pods?at=" + moment:     "web/a",
		"/clusters/eu/api/v1/pods?filtered=true&at=" + moment:      "web/a",
		"/clusters/eu@" + moment + "/api/v1/pods":                  "403",
		"/clusters/eu/api/v1/namespaces/shop/pods?at=" + moment:    "403",
		"/clusters/us/api/v1/namespaces/web/pods?at=" + moment:     "403",
		"/clusters/none@" + moment + "/api/v1/namespaces/web/pods": "403",
		"/fleet@" + moment + "/api/v1/namespaces/eu.shop/pods":     "403",
		"/fleet@" + moment + "/api/v1/namespaces/eu.web/pods":      "eu.web/a",
	} {
		pods, code, text := p.podsAs(t, "ann", path)
		got := strings.Join(pods, " ")
		if code != http.StatusOK {
			got = fmt.Sprint(code)
		}
		if got != want {
			t.Errorf("%s: %s, want %s: %s", path, got, want, text)
		}
	}
	for name, want := range map[string]int{"web/pods/a": http.StatusOK, "shop/pods/c": http.StatusForbidden,
		"shop/pods/none": http.StatusForbidden, "web/pods/none": http.StatusNotFound} {
		path := "/clusters/eu/api/v1/namespaces/" + name + "?at=" + moment
		if code, text, _ := p.read(t, "ann", path, ""); code != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	// The right to see the past goes with the right to see the present.
	if _, err := p.eu.Delete(binding("web", "ann", "pods", "ann")); err != nil {
		t.Fatal(err)
	}
	until(t, func() string {
		code, text, _ := p.read(t, "ann", "/clusters/eu/api/v1/namespaces/web/pods?at="+moment, "")
		if code != http.StatusForbidden {
			return text
		}
		return ""
	})
}

func TestWithoutHistoryThePastIsAnError(t *testing.T) {
	p := newPastDaemon(t)
	for _, path := range []string{"/clusters/eu", "/fleet"} {
		code, text, _ := p.read(t, "administrator", path+"/api/v1/events?at=-0s", "")
		if code != http.StatusBadRequest || !strings.Contains(text, "no history is kept of events") ||
			!strings.Contains(text, `"reason":"NoHistory"`) {
			t.Errorf("%d %s", code, text)
		}
	}
	bare, _, _ := newDaemonWithRights(t)
	for _, query := range []string{"at=-1m", "history=true", "history=gaps"} {
		code, text, _ := pastDaemon{memoryDaemon: bare}.read(t, "bob", "/clusters/us/api/v1/pods?"+query, "")
		if code != http.StatusBadRequest || !strings.Contains(text, "--data") ||
			!strings.Contains(text, `"reason":"NoDataFolder"`) {
			t.Errorf("%s: %d %s", query, code, text)
		}
	}
}
