package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mirador-k8s/mirador/informertest"
)

// names returns the names in the answer to a list or watch.
func (s memoryDaemon) names(t *testing.T, path string) string {
	t.Helper()
	code, body := s.get(t, path, "application/json")
	if code != http.StatusOK {
		t.Errorf("%s: %d %s", path, code, body)
		return ""
	}
	var found []string
	for _, part := range strings.Split(body, `"metadata":{`)[1:] {
		if _, rest, ok := strings.Cut(part, `"name":"`); ok {
			name, _, _ := strings.Cut(rest, `"`)
			found = append(found, name)
		}
	}
	return strings.Join(found, " ")
}

func TestSelectorsAtFleetSeeObjectsAsShown(t *testing.T) {
	t.Parallel()
	eu, us := informertest.NewServer(), informertest.NewServer()
	on := func(node string) map[string]any { return map[string]any{"spec": map[string]any{"nodeName": node}} }
	create(t, eu, pod("web", "a", on("n1")), pod("web", "b", on("n2")), pod("web", "c", nil))
	create(t, us, pod("web", "d", on("n1")))
	s := newMemoryDaemon(t, map[string]http.Handler{"eu": eu, "us": us})
	s.Start()
	s.ready(t, 4)
	var watches sync.WaitGroup // concurrent, because each waits for its end
	for _, c := range []struct{ param, selector, want string }{
		{"fieldSelector", "spec.nodeName=eu:n1", "a"},
		{"fieldSelector", "spec.nodeName=us:n1", "d"},
		{"fieldSelector", "spec.nodeName=asia:n1", ""},
		{"fieldSelector", "spec.nodeName=n1", ""},
		{"fieldSelector", "spec.nodeName=", "c"},
		{"fieldSelector", "spec.nodeName!=eu:n1", "b c d"},
		{"fieldSelector", "spec.nodeName=eu:n1,metadata.namespace=web", "a"},
		{"fieldSelector", "spec.host=eu:n1", "a"},
		{"where", `spec.nodeName == "eu:n1"`, "a"},
		{"where", `metadata.namespace == "eu.web" && has(spec.nodeName)`, "a b"},
		{"where", `cluster == "us" && spec.nodeName.endsWith(":n1")`, "d"},
		{"orderBy", "-spec.nodeName", "d b a c"},
	} {
		ask := "/fleet/api/v1/pods?timeoutSeconds=1&" + c.param + "=" + url.QueryEscape(c.selector)
		if got := s.names(t, ask); got != c.want {
			t.Errorf("%s %s finds %q, want %q", c.param, c.selector, got, c.want)
		}
		if c.param != "orderBy" {
			watches.Go(func() {
				if got := s.names(t, ask+"&watch=true"); got != c.want {
					t.Errorf("a watch by %s %s finds %q, want %q", c.param, c.selector, got, c.want)
				}
			})
		}
	}
	watches.Wait()
	// A watch sees changes in the same way.
	watch := s.open(t, "/fleet/api/v1/pods?watch=true&fieldSelector="+url.QueryEscape("spec.nodeName=us:n3"),
		"application/json")
	defer watch.Body.Close()
	create(t, eu, pod("web", "e", on("n3")))
	create(t, us, pod("web", "f", on("n3")))
	b := make([]byte, 4096)
	n, err := watch.Body.Read(b)
	if line := string(b[:n]); err != nil || !strings.Contains(line, `"name":"f"`) ||
		!strings.Contains(line, `"nodeName":"us:n3"`) {
		t.Errorf("the watch sent %s, %v", line, err)
	}
}

func TestNamespaceWithoutAClusterIsThatOfEveryCluster(t *testing.T) {
	t.Parallel()
	eu, us := informertest.NewServer(), informertest.NewServer()
	create(t, eu, pod("web", "a", nil), pod("db", "b", nil))
	create(t, us, pod("web", "c", nil))
	s := newMemoryDaemon(t, map[string]http.Handler{"eu": eu, "us": us})
	s.Start()
	s.ready(t, 3)
	const path = "/fleet/api/v1/namespaces/web/pods"
	for _, query := range []string{"", "?limit=500", "?watch=true&timeoutSeconds=1"} {
		if got := s.names(t, path+query); got != "a c" {
			t.Errorf("%s%s has %q", path, query, got)
		}
	}
	if got := s.names(t, "/fleet/api/v1/namespaces/none/pods"); got != "" {
		t.Errorf("a namespace that no cluster has contains %q", got)
	}
	if code, body := s.get(t, path+"/a", "application/json"); code != http.StatusBadRequest ||
		!strings.Contains(body, "such as eu.web") {
		t.Errorf("a pod in a namespace without a cluster: %d %s", code, body)
	}
	watch := s.open(t, path+"?watch=true", "application/json")
	defer watch.Body.Close()
	create(t, us, pod("db", "d", nil))
	create(t, us, pod("web", "e", nil))
	lines := bufio.NewScanner(watch.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), `"name":"e"`) {
		if strings.Contains(lines.Text(), `"name":"d"`) {
			t.Errorf("the watch of namespace web sent %s", lines.Text())
		}
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
}

func TestKubectlFollowsReferencesAtFleet(t *testing.T) {
	cluster := filled(t)
	cluster.Kubectl(t, "apply", "-f", "testdata/fleetnames.yaml")
	p := mirror(t)
	_, a := p.ask(t, http.MethodGet, p.real+"/api/v1/namespaces/web/pods/a", "")
	var of struct{ Metadata struct{ UID string } }
	if err := json.Unmarshal([]byte(a), &of); err != nil {
		t.Fatal(err)
	}
	p.send(t, http.MethodPost, "/api/v1/namespaces/web/events", "application/json",
		`{"metadata":{"generateName":"a."},"reason":"Greeted","message":"hello fleet","type":"Normal",`+
			`"source":{"component":"test"},"involvedObject":{"apiVersion":"v1","kind":"Pod","namespace":"web","name":"a",`+
			`"uid":"`+of.Metadata.UID+`"}}`)
	p.caughtUp(t)
	for _, c := range []struct {
		args   string
		shows  []string
		hides  []string
		failed bool
	}{
		{args: "get namespaces", shows: []string{"eu.web ", "eu.db "}, hides: []string{"eu:web"}},
		{args: "get namespace eu.web -o name", shows: []string{"namespace/eu.web"}},
		{args: "get namespace eu:web", shows: []string{`namespaces "eu:web" not found`, "eu.web"}, failed: true},
		{args: "get pods -n eu.web", shows: []string{"eu ", "a "}},
		{args: "get pods -n web", shows: []string{"eu ", "a "}},
		{args: "get pod a -n web", shows: []string{"such as eu.web"}, failed: true},
		{args: "get pod a -n eu.web -o jsonpath={.spec.nodeName}", shows: []string{"eu:node-1"}},
		{args: "get pods -A --field-selector spec.nodeName=eu:node-1", shows: []string{"eu.web"}, hides: []string{"eu.db"}},
		{args: "get events -n eu.web --field-selector involvedObject.name=a,involvedObject.namespace=eu.web",
			shows: []string{"Started"}},
		{args: "describe pod a -n eu.web", shows: []string{"Node: ", "eu:node-1", "Greeted", "hello fleet"}},
		{args: "describe node eu:node-1",
			shows: []string{"Name: ", "eu:node-1", "eu.web ", "NodeReady", "HolderIdentity:  node-1"}},
		{args: "describe namespace eu.web", shows: []string{"eu.web", "Resource Quotas", "Name:     a"}},
		{args: "describe pv eu:fleetdisk", shows: []string{"eu.db/disk"}},
		{args: "describe pvc disk -n eu.db", shows: []string{"disk", "eu.db"}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		code, out := kubectl(t, ctx, cluster, p.all, c.args).ended(t)
		cancel()
		if (code != 0) != c.failed {
			t.Errorf("kubectl %s: exit code %d:\n%s", c.args, code, out)
		}
		for _, text := range c.shows {
			if !strings.Contains(out, text) {
				t.Errorf("kubectl %s does not show %q:\n%s", c.args, text, out)
			}
		}
		for _, text := range c.hides {
			if strings.Contains(out, text) {
				t.Errorf("kubectl %s shows %q:\n%s", c.args, text, out)
			}
		}
	}
}
