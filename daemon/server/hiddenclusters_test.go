package server_test

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/informertest"
)

// documents answers the documents of a cluster with a mark, and everything else with the cluster.
type documents struct {
	*informertest.Server
	mark string
}

func (d documents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/version":
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"major":"1","minor":"30","gitVersion":"v1.30.0-`+d.mark+`"}`)
	case "/openapi/v3":
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"paths":{},"mark":"`+d.mark+`"}`)
	default:
		d.Server.ServeHTTP(w, r)
	}
}

// widgetDefinition returns the definition of widgets with one column.
func widgetDefinition(column string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1",
		"kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{"group": "example.com", "versions": []any{map[string]any{"name": "v1",
			"selectableFields": []any{map[string]any{"jsonPath": ".spec." + column}},
			"additionalPrinterColumns": []any{map[string]any{"name": column, "type": "string",
				"jsonPath": ".spec." + column}}}}}}}
}

// newHiddenCluster has the clusters hidden and open. Both have widgets, only hidden has gadgets, and only open has
// tools. ann may read documents, pods, widgets and tools of open, and has no right in hidden.
func newHiddenCluster(t *testing.T, mirrors fleet.Options, o server.Options) (memoryDaemon, *informertest.Server) {
	t.Helper()
	open, hidden := informertest.NewServer(), informertest.NewServer()
	for _, c := range []*informertest.Server{open, hidden} {
		register(t, c, "apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", false)
		register(t, c, "example.com", "widgets", "Widget", true)
	}
	register(t, hidden, "gadgets.example.com", "gadgets", "Gadget", true)
	register(t, open, "example.com", "tools", "Tool", true)
	read := []any{"get", "list", "watch"}
	create(t, hidden, widgetDefinition("hiddencolumn"), pod("web", "a", nil), widget("a"))
	create(t, open, widgetDefinition("opencolumn"), pod("web", "a", nil), widget("a"),
		clusterRole("reader", map[string]any{"apiGroups": []any{"", "example.com"},
			"resources": []any{"pods", "widgets", "tools"}, "verbs": read},
			map[string]any{"nonResourceURLs": []any{"*"}, "verbs": []any{"get"}}),
		binding("", "ann", "reader", "ann"))
	mirrors.Include = append(mirrors.Include, "pods", "*.example.com", "gadgets.gadgets.example.com",
		"*.apiextensions.k8s.io", "*.rbac.authorization.k8s.io")
	o.Access.Token, o.StartGrace = "administrator", -1
	d := memoryDaemon{server.NewInMemoryWithRights(t, map[string]http.Handler{
		"a-hidden": documents{hidden, "mark-of-hidden"}, "open": documents{open, "mark-of-open"}}, mirrors, o, byHeader{})}
	d.Start()
	until(t, func() string {
		for _, path := range []string{"/fleet/api/v1/pods?complete=true",
			"/fleet/apis/gadgets.example.com/v1/gadgets?complete=true",
			"/fleet/apis/example.com/v1/tools?complete=true",
			"/clusters/a-hidden/apis/example.com/v1/widgets", "/clusters/a-hidden/openapi/v3", "/clusters/open/openapi/v3",
			"/clusters/a-hidden/apis/apiextensions.k8s.io/v1/customresourcedefinitions"} {
			if code, _, text := d.asked(t, "administrator", http.MethodGet, path, ""); code != http.StatusOK {
				return path + ": " + text
			}
		}
		if _, code, text := d.podsAs(t, "ann", "/fleet/api/v1/pods?complete=true"); code != http.StatusOK {
			return text
		}
		return ""
	})
	return d, hidden
}

func register(t *testing.T, c *informertest.Server, group, resource, kind string, namespaced bool) {
	t.Helper()
	gvr := schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
	if err := c.Register(gvr, kind, namespaced); err != nil {
		t.Fatal(err)
	}
}

func widget(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": "web", "name": name}, "spec": map[string]any{}}}
}

// asked sends a request as a user. It returns the answer's code, its headers except those of time and length, and its
// body.
func (s memoryDaemon) asked(t *testing.T, user, method, path, body string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if r.Header.Set("Test-User", user); user == "administrator" {
		r.Header.Set("Authorization", "Bearer administrator")
	}
	if strings.Contains(path, "as=Table") {
		r.Header.Set("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := s.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	resp.Header.Del("Date")
	resp.Header.Del("Content-Length")
	resp.Header.Del("Audit-Id")
	return resp.StatusCode, resp.Header, string(b)
}

func TestFleetDocumentsAreThoseOfClustersThatTheUserMaySee(t *testing.T) {
	d, _ := newHiddenCluster(t, fleet.Options{}, server.Options{})
	for path, want := range map[string]string{
		"/fleet/version":                              "mark-of-open",
		"/fleet/openapi/v3":                           "mark-of-open",
		"/fleet/apis":                                 "example.com",
		"/fleet/apis/example.com/v1":                  "widgets",
		"/fleet/apis/gadgets.example.com":             "404",
		"/fleet/apis/example.com/v1/widgets?as=Table": "opencolumn",
	} {
		code, header, text := d.asked(t, "ann", http.MethodGet, path, "")
		if wrong := code != http.StatusOK; wrong == (want != "404") || !wrong && !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, code, text)
		}
		for _, secret := range []string{"hidden", "gadgets"} {
			if strings.Contains(text, secret) && !strings.Contains(path, secret) || strings.Contains(strings.Join(
				header.Values("Warning"), " "), secret) {
				t.Errorf("%s says %s: %s %s", path, secret, header, text)
			}
		}
		if code, _, text := d.asked(t, "carl", http.MethodGet, path, ""); code != http.StatusForbidden {
			t.Errorf("%s for a user without any right: %d %s", path, code, text)
		}
		if code, _, text := d.asked(t, "administrator", http.MethodGet, path, ""); code != http.StatusOK ||
			path == "/fleet/apis" && !strings.Contains(text, "gadgets") {
			t.Errorf("%s for the administrator: %d %s", path, code, text)
		}
	}
	for field, want := range map[string]int{"spec.opencolumn": http.StatusOK, "spec.hiddencolumn": http.StatusBadRequest} {
		path := "/fleet/apis/example.com/v1/widgets?fieldSelector=" + field + "%3Dx"
		if code, _, text := d.asked(t, "ann", http.MethodGet, path, ""); code != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

// versionsIn finds the versions of lists and objects at /fleet, and times.
var versionsIn = regexp.MustCompile(`"(resourceVersion|creationTimestamp)":"[^"]*"`)

const selfReview = `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{` +
	`"resourceAttributes":{"verb":"list","resource":"RESOURCE","namespace":"NAMESPACE","group":"GROUP"}}}`

func TestAHiddenClusterIsLikeOneThatDoesNotExist(t *testing.T) {
	d, hidden := newHiddenCluster(t, fleet.Options{}, server.Options{})
	register(t, hidden, "other.example.com", "parts", "Part", true)
	reviews := "/apis/authorization.k8s.io/v1/"
	type question struct{ method, path, body string }
	var ask []question
	for _, view := range []string{"/clusters/NAME", "/fleet"} {
		for _, path := range []string{"/", "/version", "/api", "/openapi/v3", "/healthz", "/nothing",
			"/api/v1/pods", "/api/v1/pods?filtered=true", "/api/v1/pods?watch=true", "/api/v1/pods?limit=x",
			"/api/v1/namespaces/NAMESPACE/pods", "/api/v1/namespaces/NAMESPACE/pods/a", "/api/v1/namespaces/NAMESPACE/pods/none",
			"/api/v1/namespaces/NAMESPACE/pods?watch=true",
			"/api/v1/namespaces/NAMESPACE", "/api/v1/nodes/NAME:node",
			"/api/v1/namespaces/NAMESPACE/pods/a/log", "/apis/metrics.k8s.io/v1/namespaces/NAMESPACE/pods",
			"/apis/gadgets.example.com/v1/gadgets?filtered=true", "/apis/gadgets.example.com/v2/gadgets?filtered=true",
			"/apis/gadgets.example.com/v2/namespaces/NAMESPACE/gadgets", "/apis/none/v1/nothing?filtered=true",
			"/api/v1/secrets?filtered=true", "/api/v1/namespaces/NAMESPACE/secrets"} {
			ask = append(ask, question{http.MethodGet, view + path, ""})
		}
		for _, path := range []string{"/api/v1/namespaces/NAMESPACE/pods", "/api/v1/namespaces/NAMESPACE/pods/a/exec"} {
			ask = append(ask, question{http.MethodPost, view + path, "{}"}, question{http.MethodDelete, view + path, ""})
		}
		for _, resource := range []string{"pods", "gadgets", "nothing"} {
			for _, group := range []string{"", "gadgets.example.com", "*"} {
				body := strings.NewReplacer("RESOURCE", resource, "GROUP", group).Replace(selfReview)
				ask = append(ask, question{http.MethodPost, view + reviews + "selfsubjectaccessreviews", body})
			}
		}
		ask = append(ask, question{http.MethodPost, view + reviews + "selfsubjectrulesreviews",
			`{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview","spec":{"namespace":"NAMESPACE"}}`},
			question{http.MethodPost, view + reviews + "namespaces/NAMESPACE/localsubjectaccessreviews",
				`{"apiVersion":"authorization.k8s.io/v1","kind":"LocalSubjectAccessReview","spec":{"user":"x",` +
					`"resourceAttributes":{"verb":"get","resource":"pods","namespace":"NAMESPACE"}}}`})
	}
	for _, query := range []string{"clusters=NAME", "clusters=NAME&watch=true", "clusters=NAME&complete=true",
		"fieldSelector=spec.nodeName%3DNAME:node", "fieldSelector=spec.nodeName%3DNAME:node&limit=1"} {
		ask = append(ask, question{http.MethodGet, "/fleet/api/v1/pods?" + query, ""})
	}
	ask = append(ask, question{http.MethodGet, "/fleet/api/v1/pods?clusters=open,NAME", ""},
		question{http.MethodGet, "/fleet/apis/example.com/v1/tools?clusters=open,NAME", ""},
		question{http.MethodGet, "/fleet/apis/gadgets.example.com/v2/gadgets?clusters=NAME", ""},
		question{http.MethodGet, "/clusters/NAME", ""}, question{http.MethodDelete, "/clusters/NAME", ""})
	ask = slices.DeleteFunc(ask, func(q question) bool { return !strings.Contains(q.path+q.body, "NAME") })
	for _, user := range []string{"ann", "carl"} {
		for _, q := range ask {
			named := func(cluster string) (int, http.Header, string) {
				namespace := "web"
				if strings.HasPrefix(q.path, "/fleet") {
					namespace = cluster + ".web"
				}
				names := strings.NewReplacer("NAMESPACE", namespace, "NAME", cluster)
				code, header, text := d.asked(t, user, q.method, names.Replace(q.path), names.Replace(q.body))
				for _, list := range header {
					for i := range list {
						list[i] = strings.ReplaceAll(list[i], cluster, "NAME")
					}
				}
				return code, header, versionsIn.ReplaceAllString(strings.ReplaceAll(text, cluster, "NAME"), "VERSION")
			}
			code, header, text := named("a-hidden")
			noCode, noHeader, noText := named("a-nothing")
			if code != noCode || text != noText || !slices.Equal(header.Values("Warning"), noHeader.Values("Warning")) ||
				len(header) != len(noHeader) {
				t.Errorf("%s %s %s as %s:\nif hidden: %d %v %s\nif not there: %d %v %s", q.method, q.path, q.body, user,
					code, header, text, noCode, noHeader, noText)
			}
		}
	}
	if code, _, text := d.asked(t, "administrator", http.MethodGet, "/clusters/nothing/api/v1/pods",
		""); code != http.StatusNotFound || !strings.Contains(text, "/clusters has the names") {
		t.Errorf("for the administrator: %d %s", code, text)
	}
	if code, _, text := d.asked(t, "administrator", http.MethodGet, "/fleet/api/v1/pods?clusters=nothing",
		""); code != http.StatusBadRequest {
		t.Errorf("for the administrator: %d %s", code, text)
	}
}
