package server_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/informertest"
)

// byHeader authenticates requests by the header Test-User.
type byHeader struct{}

func (byHeader) Authenticate(r *http.Request) (user.Info, bool, error) {
	name := r.Header.Get("Test-User")
	return &user.DefaultInfo{Name: name, UID: "uid-of-" + name, Groups: []string{user.AllAuthenticated},
		Extra: map[string][]string{"test": {"extra"}}}, name != "", nil
}

// binding returns a RoleBinding, or a ClusterRoleBinding without a namespace, of a ClusterRole to a user.
func binding(namespace, name, role, to string) *unstructured.Unstructured {
	kind := "ClusterRoleBinding"
	meta := map[string]any{"name": name}
	if namespace != "" {
		kind, meta["namespace"] = "RoleBinding", namespace
	}
	group := "rbac.authorization.k8s.io"
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": kind, "metadata": meta,
		"roleRef":  map[string]any{"apiGroup": group, "kind": "ClusterRole", "name": role},
		"subjects": []any{map[string]any{"apiGroup": group, "kind": "User", "name": to}}}}
}

func clusterRole(name string, rules ...map[string]any) *unstructured.Unstructured {
	list := []any{}
	for _, r := range rules {
		list = append(list, r)
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1",
		"kind": "ClusterRole", "metadata": map[string]any{"name": name}, "rules": list}}
}

func rule(verbs []any, resources []any, names ...any) map[string]any {
	r := map[string]any{"apiGroups": []any{""}, "resources": resources, "verbs": verbs}
	if len(names) > 0 {
		r["resourceNames"] = names
	}
	return r
}

// newDaemonWithRights has the clusters eu and us, each with the pods web/a, web/b and shop/c. ann may read the pods of
// namespace web in eu, and bob all pods of us and one pod of shop in eu.
func newDaemonWithRights(t *testing.T) (d memoryDaemon, eu, us *informertest.Server) {
	t.Helper()
	return newDaemonWithRightsAnd(t, server.Options{Access: server.Access{Token: "administrator"}})
}

// newDaemonWithRightsAnd is newDaemonWithRights with options.
func newDaemonWithRightsAnd(t *testing.T, o server.Options) (d memoryDaemon, eu, us *informertest.Server) {
	t.Helper()
	read := []any{"get", "list", "watch"}
	o.StartGrace = -1
	eu, us = informertest.NewServer(), informertest.NewServer()
	for _, c := range []*informertest.Server{eu, us} {
		create(t, c, pod("web", "a", nil), pod("web", "b", nil), pod("shop", "c", nil),
			clusterRole("pods", rule(read, []any{"pods"})), clusterRole("one-pod", rule(read, []any{"pods"}, "c")))
	}
	create(t, eu, binding("web", "ann", "pods", "ann"), binding("shop", "bob", "one-pod", "bob"))
	create(t, us, binding("", "bob", "pods", "bob"))
	d = memoryDaemon{server.NewInMemoryWithRights(t, map[string]http.Handler{"eu": eu, "us": us},
		fleet.Options{Include: []string{"pods", "*.rbac.authorization.k8s.io"}, WithoutOpenAPI: true},
		o, byHeader{})}
	d.Start()
	until(t, func() string {
		for _, u := range []string{"bob", "ann"} { // bob sees something in both, which waits for both
			if _, code, text := d.podsAs(t, u, "/fleet/api/v1/pods?complete=true"); code != http.StatusOK {
				return text
			}
		}
		return ""
	})
	return d, eu, us
}

// until waits until what returns no reason to wait.
func until(t *testing.T, what func() string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	why := ""
	for late := time.Now().Add(30 * time.Second); time.Now().Before(late); <-tick.C {
		if why = what(); why == "" {
			return
		}
	}
	t.Fatal(why)
}

// openAs sends a GET as a user.
func (s memoryDaemon) openAs(t *testing.T, name, path string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Header.Set("Test-User", name); name == "administrator" {
		r.Header.Set("Authorization", "Bearer administrator")
	}
	resp, err := s.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// podsAs lists pods as a user. It returns them as namespace/name, or the text of the error.
func (s memoryDaemon) podsAs(t *testing.T, name, path string) (pods []string, code int, text string) {
	t.Helper()
	resp := s.openAs(t, name, path)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var list metav1.PartialObjectMetadataList
	if resp.StatusCode != http.StatusOK {
		var status metav1.Status
		if err := json.Unmarshal(b, &status); err != nil {
			t.Fatalf("%s: %s", path, b)
		}
		return nil, resp.StatusCode, status.Message
	}
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatal(err)
	}
	for _, it := range list.Items {
		pods = append(pods, it.Namespace+"/"+it.Name)
	}
	filtered := resp.Header.Get("Mirador-Filtered") == "true"
	if whole := name == "administrator" || strings.Contains(path, "/namespaces/eu.web/") ||
		!strings.Contains(path, "filtered") && !strings.HasPrefix(path, "/fleet"); filtered == whole {
		t.Errorf("%s as %s: filtered is %v", path, name, filtered)
	}
	return pods, resp.StatusCode, ""
}

const podsForbidden, inNone = "pods is forbidden: ", ": in none of the clusters"

func TestEveryUserSeesExactlyWhatTheClustersAllow(t *testing.T) {
	d, _, _ := newDaemonWithRights(t)
	for _, c := range []struct {
		user, path string
		pods       string
		code       int
		text       string
	}{
		{"ann", "/fleet/api/v1/pods", "eu.web/a eu.web/b", 200, ""},
		{"ann", "/fleet/api/v1/pods?limit=1", "eu.web/a", 200, ""},
		{"ann", "/fleet/api/v1/pods?fieldSelector=metadata.name%3Db", "eu.web/b", 200, ""},
		{"ann", "/fleet/api/v1/pods?where=metadata.name!='a'", "eu.web/b", 200, ""},
		{"ann", "/fleet/api/v1/pods?orderBy=-metadata.name", "eu.web/b eu.web/a", 200, ""},
		{"ann", "/fleet/api/v1/namespaces/eu.web/pods", "eu.web/a eu.web/b", 200, ""},
		{"ann", "/fleet/api/v1/namespaces/eu.shop/pods", "", 403,
			podsForbidden + `User "ann" cannot list resource "pods" in API group "" in the namespace "eu.shop"` + inNone},
		{"ann", "/fleet/api/v1/namespaces/web/pods", "eu.web/a eu.web/b", 200, ""},
		{"ann", "/fleet/api/v1/namespaces/shop/pods", "", 403,
			podsForbidden + `User "ann" cannot list resource "pods" in API group "" in the namespace "shop"` + inNone},
		{"ann", "/fleet/api/v1/namespaces/us.web/pods/a", "", 403,
			`pods "a" is forbidden: User "ann" cannot get resource "pods" in API group "" in the namespace "us.web"`},
		{"ann", "/clusters/eu/api/v1/pods", "", 403,
			podsForbidden + `User "ann" cannot list resource "pods" in API group "" at the cluster scope`},
		{"ann", "/clusters/eu/api/v1/pods?filtered=true", "web/a web/b", 200, ""},
		{"ann", "/clusters/us/api/v1/pods?filtered=true", "", 403,
			podsForbidden + `User "ann" cannot list resource "pods" in API group "" at the cluster scope`},
		{"ann", "/clusters/eu/api/v1/namespaces/web/pods", "web/a web/b", 200, ""},
		{"ann", "/clusters/eu/api/v1/namespaces/web/pods/nothing", "", 404, `pods "nothing" not found`},
		{"ann", "/clusters/eu/api/v1/namespaces/shop/pods/nothing", "", 403,
			`pods "nothing" is forbidden: User "ann" cannot get resource "pods" in API group "" in the namespace "shop"`},
		{"ann", "/clusters/eu/apis/apps/v1/deployments", "", 403,
			`deployments.apps is forbidden: User "ann" cannot list resource "deployments" in API group "apps" ` +
				`at the cluster scope`},
		{"bob", "/fleet/api/v1/pods", "eu.shop/c us.shop/c us.web/a us.web/b", 200, ""},
		{"bob", "/fleet/api/v1/pods?clusters=eu", "eu.shop/c", 200, ""},
		{"bob", "/clusters/eu/api/v1/namespaces/shop/pods", "", 403,
			podsForbidden + `User "bob" cannot list resource "pods" in API group "" in the namespace "shop"`},
		{"bob", "/clusters/eu/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3Dc", "shop/c", 200, ""},
		{"bob", "/clusters/us/api/v1/pods", "shop/c web/a web/b", 200, ""},
		{"carl", "/fleet/api/v1/pods", "", 403,
			podsForbidden + `User "carl" cannot list resource "pods" in API group "" at the cluster scope` + inNone},
		{"carl", "/readyz?verbose", "", 403,
			`clusters.mirador.dev is forbidden: User "carl" cannot list resource "clusters" in API group "mirador.dev" ` +
				`at the cluster scope`},
		{"carl", "/clusters/eu/version", "", 403, `forbidden: User "carl" cannot get path "/version"`},
		{"carl", "/clusters", "", 403,
			`clusters.mirador.dev is forbidden: User "carl" cannot list resource "clusters" in API group "mirador.dev" ` +
				`at the cluster scope`},
		{"administrator", "/fleet/api/v1/pods", "eu.shop/c eu.web/a eu.web/b us.shop/c us.web/a us.web/b", 200, ""},
		{"administrator", "/clusters/eu/api/v1/pods", "shop/c web/a web/b", 200, ""},
	} {
		pods, code, text := d.podsAs(t, c.user, c.path)
		if strings.Join(pods, " ") != c.pods || code != c.code || text != c.text {
			t.Errorf("%s as %s: %d %v %s", c.path, c.user, code, pods, text)
		}
	}
}

func TestAContinueTokenBelongsToItsUser(t *testing.T) {
	d, eu, _ := newDaemonWithRights(t)
	resp := d.openAs(t, "ann", "/fleet/api/v1/pods?limit=1")
	defer resp.Body.Close()
	var list metav1.PartialObjectMetadataList
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil || list.RemainingItemCount == nil ||
		*list.RemainingItemCount != 1 {
		t.Fatalf("%+v %v", list.ListMeta, err)
	}
	next := "/fleet/api/v1/pods?limit=1&continue=" + list.Continue
	if _, code, _ := d.podsAs(t, "bob", next); code != http.StatusBadRequest {
		t.Errorf("another user gets %d", code)
	}
	if pods, code, _ := d.podsAs(t, "ann", next); code != http.StatusOK || !slices.Equal(pods, []string{"eu.web/b"}) {
		t.Errorf("the user gets %d %v", code, pods)
	}
	create(t, eu, binding("shop", "ann", "pods", "ann"))
	until(t, func() string {
		pods, _, _ := d.podsAs(t, "ann", "/fleet/api/v1/pods")
		if len(pods) < 3 {
			return "the new right has no effect"
		}
		return ""
	})
	if _, code, _ := d.podsAs(t, "ann", next); code != http.StatusGone {
		t.Errorf("after a change of rights the user gets %d", code)
	}
}

// watchAs opens a watch and returns its lines.
func (s memoryDaemon) watchAs(t *testing.T, name, path string) <-chan string {
	t.Helper()
	resp := s.openAs(t, name, path)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", path, resp.Status)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		defer resp.Body.Close()
		for in := bufio.NewScanner(resp.Body); in.Scan(); {
			lines <- in.Text()
		}
	}()
	return lines
}

func TestAWatchEndsWhenItsRightsChange(t *testing.T) {
	for _, view := range []string{"/fleet/api/v1/pods", "/fleet/api/v1/namespaces/eu.web/pods",
		"/clusters/eu/api/v1/pods?filtered=true", "/clusters/eu/api/v1/namespaces/web/pods"} {
		t.Run(view, func(t *testing.T) {
			d, eu, us := newDaemonWithRights(t)
			separator := "?"
			if strings.Contains(view, "?") {
				separator = "&"
			}
			lines := d.watchAs(t, "ann", view+separator+"watch=true&allowWatchBookmarks=true")
			for _, want := range []string{`"name":"a"`, `"name":"b"`} {
				if got := <-lines; !strings.Contains(got, want) {
					t.Fatalf("got %s, want %s", got, want)
				}
			}
			create(t, us, pod("web", "hidden", nil))
			create(t, eu, pod("shop", "hidden", nil), pod("web", "shown", nil))
			if got := <-lines; !strings.Contains(got, `"name":"shown"`) {
				t.Fatalf("got %s", got)
			}
			// A change for somebody else is not felt.
			create(t, eu, binding("shop", "carl", "pods", "carl"), pod("web", "more", nil))
			if got := <-lines; !strings.Contains(got, `"name":"more"`) {
				t.Fatalf("got %s", got)
			}
			if _, err := eu.Delete(binding("web", "ann", "pods", "ann")); err != nil {
				t.Fatal(err)
			}
			got := <-lines
			var event struct {
				Type   string
				Object metav1.Status
			}
			if err := json.Unmarshal([]byte(got), &event); err != nil || event.Type != "ERROR" || event.Object.Code != 410 {
				t.Fatalf("got %s", got)
			}
			if last, open := <-lines; open {
				t.Errorf("after the end: %s", last)
			}
			if _, code, _ := d.podsAs(t, "ann", view); code != http.StatusForbidden {
				t.Errorf("then a list is %d", code)
			}
		})
	}
}

func TestLocalSubjectAccessReviewsNeedARight(t *testing.T) {
	d, eu, _ := newDaemonWithRights(t)
	group := map[string]any{"apiGroups": []any{"authorization.k8s.io"}, "resources": []any{"localsubjectaccessreviews"},
		"verbs": []any{"create"}}
	create(t, eu, clusterRole("reviewer", group), binding("shop", "ann-reviews", "reviewer", "ann"))
	ask := func(as, path, namespace, about, verb, name string) (code int, status string) {
		t.Helper()
		body := `{"apiVersion":"authorization.k8s.io/v1","kind":"LocalSubjectAccessReview","spec":{"user":"` + about +
			`","resourceAttributes":{"namespace":"` + namespace + `","verb":"` + verb + `","resource":"pods","name":"` +
			name + `"}}}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Test-User", as)
		r.Header.Set("Content-Type", "application/json")
		resp, err := d.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var review struct{ Status json.RawMessage }
		if err := json.NewDecoder(resp.Body).Decode(&review); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(review.Status)
	}
	in := func(namespace string) string {
		return "/apis/authorization.k8s.io/v1/namespaces/" + namespace + "/localsubjectaccessreviews"
	}
	shop, web, euShop := in("shop"), in("web"), in("eu.shop")
	until(t, func() string {
		if code, status := ask("ann", "/clusters/eu"+shop, "shop", "bob", "get",
			"c"); code != 201 ||
			!strings.Contains(status, `"allowed":true`) {
			return status
		}
		return ""
	})
	for _, c := range []struct {
		as, path, namespace, about, verb, name string
		code                                   int
		status                                 string
	}{
		{"ann", "/fleet" + euShop, "eu.shop", "bob", "get", "c", 201, `"allowed":true`},
		{"ann", "/clusters/eu" + shop, "shop", "bob", "get", "a", 201,
			`{"allowed":false}`},
		{"ann", "/clusters/eu" + shop, "shop", "bob", "delete", "c",
			201, `"denied":true`},
		{"ann", "/clusters/eu" + shop, "web", "bob", "get", "c", 400, ""},
		{"ann", "/clusters/eu" + web, "web", "bob", "get", "c", 403, ""},
		{"bob", "/clusters/eu" + shop, "shop", "bob", "get", "c", 403, ""},
	} {
		code, status := ask(c.as, c.path, c.namespace, c.about, c.verb, c.name)
		if code != c.code || !strings.Contains(status, c.status) {
			t.Errorf("%+v: %d %s", c, code, status)
		}
	}
}

func TestOnlyOperatorsJoinAndRemoveClusters(t *testing.T) {
	d, _, _ := newDaemonWithRights(t)
	for _, c := range []struct{ method, path string }{
		{http.MethodPost, "/clusters"}, {http.MethodDelete, "/clusters/eu"}, {http.MethodPut, "/clusters/eu"},
		{http.MethodGet, "/clusters?watch=true"}, {http.MethodGet, "/clusters/eu"}, {http.MethodHead, "/clusters"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, d.URL+c.path, strings.NewReader(`{"name":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Test-User", "ann")
		r.Header.Set("Content-Type", "application/json")
		resp, err := d.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s %s: %s", c.method, c.path, resp.Status)
		}
	}
	if pods, _, _ := d.podsAs(t, "administrator", "/clusters/eu/api/v1/pods"); len(pods) != 3 {
		t.Errorf("eu has %v", pods)
	}
}

func TestARightToASubresourceShowsNoObjects(t *testing.T) {
	d, eu, _ := newDaemonWithRights(t)
	create(t, eu, clusterRole("status", rule([]any{"get", "list", "watch"}, []any{"pods/status"})),
		binding("", "dan", "status", "dan"))
	until(t, func() string {
		_, code, text := d.podsAs(t, "dan", "/clusters/eu/api/v1/namespaces/web/pods/a/status")
		if code != http.StatusOK {
			return text
		}
		return ""
	})
	for _, path := range []string{"/api/v1/pods", "/api/v1/pods//status", "/api/v1/namespaces/shop/pods//status",
		"/api/v1/pods//status?watch=true&timeoutSeconds=1", "/api/v1/namespaces//pods"} {
		if resp := d.openAs(t, "dan", "/clusters/eu"+path); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", path, resp.Status)
			resp.Body.Close()
		} else {
			resp.Body.Close()
		}
	}
}

// A request that waits for a version is answered with the rights of the moment at which it is answered.
func TestARequestThatWaitsIsAuthorizedAgain(t *testing.T) {
	for _, path := range []string{"/clusters/eu/api/v1/namespaces/web/pods?", "/clusters/eu/api/v1/pods?filtered=true&",
		"/clusters/eu/api/v1/namespaces/web/pods/secret?"} {
		d, eu, _ := newDaemonWithRights(t)
		resp := d.openAs(t, "ann", "/clusters/eu/api/v1/namespaces/web/pods")
		var list metav1.PartialObjectMetadataList
		if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		n, err := strconv.Atoi(list.ResourceVersion)
		if err != nil {
			t.Fatal(err)
		}
		code := make(chan int, 1)
		go func() {
			resp := d.openAs(t, "ann", path+"resourceVersion="+strconv.Itoa(n+2))
			resp.Body.Close()
			code <- resp.StatusCode
		}()
		if _, err := eu.Delete(binding("web", "ann", "pods", "ann")); err != nil {
			t.Fatal(err)
		}
		until(t, func() string {
			if _, code, _ := d.podsAs(t, "ann", "/clusters/eu/api/v1/namespaces/web/pods"); code != http.StatusForbidden {
				return "the right is not withdrawn"
			}
			return ""
		})
		create(t, eu, pod("web", "secret", nil), pod("web", "secret2", nil))
		if got := <-code; got != http.StatusForbidden && got != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", path, got)
		}
	}
}
