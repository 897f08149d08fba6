package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/informertest"
)

// This file replays requests of two dashboards, Headlamp and Freelens, which were found by reading their sources. Paths
// of Headlamp are those of github.com/kubernetes-sigs/headlamp, and paths of Freelens those of
// github.com/freelensapp/freelens, each with the commit that was read.
//
// Headlamp is a page and a Go program that passes on the page's requests with httputil.ReverseProxy
// (backend/pkg/kubeconfig/kubeconfig.go 01db26c, backend/cmd/headlamp.go): the path is appended to that of the
// kubeconfig's server, Host is replaced, a token is added, and every other header of the browser is kept, so that
// the Origin is that of Headlamp's page. Freelens is a desktop program that sends its requests through a kubectl
// proxy (freelensapp/freelens-k8s-proxy, main.go 0cb6914), without an Origin.
type dashboardRequest struct {
	source string // the file that sends the request
	use    string // what the client does with the answer
	method string
	path   string // {ns} is the namespace web and {node} the node node-1, in the names of the view
	accept string
	body   string
	// codes are the status codes at /clusters/eu and at /fleet, as an administrator and then as ann; 0 if the request is
	// not sent.
	codes [4]int
	// has are fields that a successful answer must have, as path or path=value; the elements of a list are joined by
	// commas. An element that begins with "text " is a part of an answer that is not JSON.
	has []string
	// says is a part of the message of a refusal.
	says string
}

const (
	anyType    = "*/*"                                                                  // of fetch
	aggregated = "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList" // of Headlamp
	clientNode = "application/json, */*;q=0.8"                                          // of @kubernetes/client-node
)

var (
	always    = [4]int{200, 200, 200, 200}
	created   = [4]int{201, 201, 201, 201}
	notFound  = [4]int{404, 404, 404, 404}
	readOnly  = [4]int{405, 405, 405, 405}
	inCluster = [4]int{200, 200, 403, 403} // of what ann may not see at all
	filtered  = [4]int{200, 200, 403, 200} // of what ann may see in a namespace
)

var headlampRequests = []dashboardRequest{
	{source: "frontend/src/lib/k8s/index.ts 001549f", use: "shows the version of the cluster",
		path: "/version", codes: always, has: []string{"gitVersion=v1.37.2", "major", "minor"}},
	{source: "frontend/src/lib/k8s/api/v1/clusterApi.ts 0717623", use: "shows whether the cluster is healthy",
		path: "/healthz", codes: always, has: []string{"text ok"}},
	{source: "frontend/src/lib/k8s/api/v2/apiDiscovery.tsx 3cc9c6f", use: "takes the first version of each group",
		path: "/api", accept: aggregated, codes: always, has: []string{"items.0.versions.0.version=v1",
			"items.0.versions.0.resources.0.verbs", "items.0.versions.0.resources.0.responseKind.kind",
			"items.0.versions.0.resources.0.scope", "items.0.versions.0.resources.0.singularResource"}},
	{source: "frontend/src/lib/k8s/api/v2/apiDiscovery.tsx 3cc9c6f", use: "takes the first version of each group",
		path: "/apis", accept: aggregated, codes: always, has: []string{"items.0.metadata.name=apps",
			"items.0.versions.0.version=v1", "items.0.versions.0.resources.0.resource=deployments"}},
	{source: "frontend/src/lib/k8s/api/v2/apiDiscovery.tsx 3cc9c6f", use: "is the fallback",
		path: "/api", codes: always, has: []string{"versions=v1"}},
	{source: "frontend/src/lib/k8s/api/v2/useApiGroupAvailable.ts 006bdb2", use: "hides what needs the group if it is 404",
		path: "/apis/gateway.networking.k8s.io/v1", codes: notFound},
	{source: "frontend/src/lib/k8s/api/v1/clusterApi.ts 0717623", use: "asks for a login if it fails",
		method: "POST", path: "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", accept: "application/json",
		body: `{"spec":{"namespace":"default"}}`, codes: created, has: []string{"status.resourceRules"}},
	{source: "frontend/src/lib/k8s/api/v1/clusterApi.ts 0717623", use: "shows the user",
		method: "POST", path: "/apis/authentication.k8s.io/v1/selfsubjectreviews", accept: "application/json",
		body:  `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`,
		codes: created, has: []string{"status.userInfo.username", "status.userInfo.groups"}},
	{source: "frontend/src/lib/k8s/KubeObject.ts 0ae6577", use: "hides the buttons that change something",
		method: "POST", path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", accept: "application/json",
		body:  accessReview(`"verb":"delete","group":"","version":"v1","resource":"pods","namespace":"{ns}","name":"a"`),
		codes: created, has: []string{"status.allowed=false", "status.denied=true"}},
	{source: "frontend/src/lib/k8s/KubeObject.ts 0ae6577", use: "shows what can be listed",
		method: "POST", path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", accept: "application/json",
		body:  accessReview(`"verb":"list","group":"","version":"v1","resource":"pods","namespace":"{ns}"`),
		codes: created, has: []string{"status.allowed=true"}},
	{source: "frontend/src/lib/k8s/api/v2/useKubeObjectList.ts 005a46b",
		use: "cuts List from the kind, and watches from the version", path: "/api/v1/pods", codes: filtered,
		has: []string{"kind=PodList", "apiVersion=v1", "metadata.resourceVersion", "items.0.metadata.uid",
			"items.0.metadata.name"}},
	{source: "frontend/src/lib/k8s/api/v2/useKubeObjectList.ts 005a46b", use: "asks for the next page with it",
		path: "/api/v1/namespaces/{ns}/pods?limit=1", codes: always, has: []string{"metadata.continue"}},
	{source: "frontend/src/lib/k8s/api/v2/hooks.ts 005a46b", use: "shows the object",
		path: "/api/v1/namespaces/{ns}/pods/a", codes: always, has: []string{"kind=Pod", "metadata.uid"}},
	{source: "frontend/src/lib/k8s/api/v2/hooks.ts 005a46b", use: "shows the node",
		path: "/api/v1/nodes/{node}", codes: inCluster, has: []string{"metadata.name={node}"}},
	{source: "frontend/src/lib/k8s/api/v2/hooks.ts 005a46b", use: "takes the first version that is answered",
		path: "/apis/batch/v1/cronjobs", codes: inCluster, has: []string{"kind=CronJobList"}},
	{source: "frontend/src/lib/k8s/api/v1/factories.ts 1548426", use: "tries the next version after 404",
		path: "/apis/batch/v1beta1/cronjobs", codes: [4]int{404, 404, 403, 403}, says: "are mirrored in version v1"},
	{source: "frontend/src/lib/k8s/event.ts 36f74d1", use: "shows warnings",
		path: "/api/v1/events?limit=2000&fieldSelector=type!%3DNormal", codes: filtered,
		has: []string{"items.0.metadata.name=warning"}},
	{source: "frontend/src/lib/k8s/event.ts 36f74d1", use: "shows the events of a pod",
		path: "/api/v1/namespaces/{ns}/events?limit=2000&fieldSelector=involvedObject.kind%3DPod%2C" +
			"involvedObject.name%3Da%2CinvolvedObject.namespace%3D{ns}", codes: always,
		has: []string{"items.0.metadata.name=warning", "items.0.involvedObject.namespace={ns}"}},
	{source: "frontend/src/lib/k8s/api/v1/metricsApi.ts 44a912b", use: "shows no usage",
		path: "/apis/metrics.k8s.io/v1beta1/nodes", codes: [4]int{404, 404, 403, 404}, says: "has no metrics"},
	{source: "frontend/src/lib/k8s/api/v1/scaleApi.ts daa87b9", use: "shows the replicas",
		path: "/apis/apps/v1/namespaces/{ns}/deployments/a/scale", codes: inCluster, has: []string{"kind=Scale",
			"spec.replicas=2"}},
	{source: "frontend/src/lib/k8s/api/v2/fetchLogs.tsx 1b4ef3e", use: "shows the message",
		path:  "/api/v1/namespaces/{ns}/pods/a/log?container=main&follow=true&timestamps=true",
		codes: [4]int{405, 405, 403, 405}, says: "has no log of pods"},
	{source: "frontend/src/lib/k8s/api/v1/apply.ts 2d1d4a2", use: "shows the message; after 403 it would try PUT",
		method: "POST", path: "/api/v1/namespaces/{ns}/pods?fieldValidation=Strict", body: `{}`, codes: readOnly,
		says: "read-only mirror, which does not answer POST: send it to the API server of cluster \"eu\" itself"},
	{source: "frontend/src/lib/k8s/api/v1/scaleApi.ts daa87b9", use: "shows the message",
		method: "PATCH", path: "/apis/apps/v1/namespaces/{ns}/deployments/a/scale?fieldValidation=Strict",
		body: `{"spec":{"replicas":3}}`, codes: readOnly, says: "read-only mirror"},
	{source: "frontend/src/lib/k8s/api/v1/clusterRequests.ts 090d8a2", use: "shows the message",
		method: "PUT", path: "/api/v1/namespaces/{ns}/pods/a", body: `{}`, codes: readOnly, says: "read-only mirror"},
	{source: "frontend/src/lib/k8s/api/v1/clusterRequests.ts 090d8a2", use: "shows the message",
		method: "DELETE", path: "/api/v1/namespaces/{ns}/pods/a", codes: readOnly, says: "read-only mirror"},
	{source: "frontend/src/lib/k8s/pod.ts 00b6ca7", use: "shows the message",
		method: "POST", path: "/api/v1/namespaces/{ns}/pods/a/eviction", body: `{}`, codes: readOnly,
		says: "has no eviction of pods"},
	{source: "backend/pkg/portforward/handler.go 488d206", use: "shows the message",
		method: "POST", path: "/api/v1/namespaces/{ns}/pods/a/portforward", codes: readOnly,
		says: "has no portforward of pods"},
}

var freelensRequests = []dashboardRequest{
	{source: "packages/core/src/main/cluster-detectors/request-cluster-version.injectable.ts 646c451",
		use: "counts as connected; 4xx means invalid credentials", path: "/version", codes: always,
		has: []string{"gitVersion=v1.37.2"}},
	{source: "packages/core/src/main/cluster-detectors/cluster-id-detector.injectable.ts 1c1c9ec",
		use: "identifies the cluster; otherwise its URL does", path: "/api/v1/namespaces/default",
		codes: [4]int{200, 404, 403, 404}, has: []string{"metadata.uid"}, says: "default"},
	{source: "packages/core/src/main/cluster-detectors/cluster-nodes-count-detector.injectable.ts 8b3537b",
		use: "counts the nodes", path: "/api/v1/nodes", codes: inCluster, has: []string{"items.0.metadata.name={node}"}},
	{source: "packages/core/src/main/cluster-detectors/cluster-distribution-detector.injectable.ts 5ed00c0",
		use: "finds OpenShift by the paths; an error means that it is not", path: "/", codes: [4]int{200, 404, 403, 403},
		has: []string{"name=eu"}},
	{source: "packages/core/src/main/cluster/request-core-api-versions.injectable.ts 12632cf",
		use: "asks for the resources of each version", path: "/api", codes: always, has: []string{"versions=v1"}},
	{source: "packages/core/src/main/cluster/request-non-core-api-versions.injectable.ts 5bdc650",
		use: "asks for the resources of each version", path: "/apis", codes: always,
		has: []string{"groups.0.name=apps", "groups.0.versions.0.groupVersion=apps/v1"}},
	{source: "packages/core/src/main/cluster/request-kube-api-resources-for.injectable.ts 12632cf",
		use: "shows what can be listed", path: "/apis/apps/v1", codes: always,
		has: []string{"resources.0.name=deployments", "resources.0.kind=Deployment", "resources.0.namespaced=true"}},
	{source: "packages/utility-features/kube-api/src/kube-api.ts 12db6a8", use: "finds the preferred version",
		path: "/apis/networking.k8s.io", codes: always, has: []string{"preferredVersion.groupVersion=networking.k8s.io/v1",
			"preferredVersion.version=v1", "versions.0.version=v1"}},
	{source: "packages/core/src/main/cluster/cluster-connection.injectable.ts 19e3bdd",
		use: "knows that the user is no administrator", method: "POST",
		path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", accept: clientNode,
		body:  accessReview(`"namespace":"kube-system","resource":"*","verb":"create"`),
		codes: created, has: []string{"status.allowed=false"}},
	{source: "packages/core/src/main/cluster/cluster-connection.injectable.ts 19e3bdd",
		use: "watches all namespaces at once", method: "POST",
		path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", accept: clientNode,
		body: accessReview(`"resource":"*","verb":"watch"`), codes: [4]int{201, 201}, has: []string{"status.allowed=true"}},
	{source: "packages/core/src/main/cluster/cluster-connection.injectable.ts 19e3bdd",
		use: "watches each namespace by itself", method: "POST",
		path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", accept: clientNode,
		body: accessReview(`"resource":"*","verb":"watch"`), codes: [4]int{0, 0, 201, 201},
		has: []string{"status.allowed=false"}},
	{source: "packages/core/src/common/cluster/list-namespaces.injectable.ts 0ce77cc",
		use: "shows these namespaces; after 403 that of the kubeconfig", path: "/api/v1/namespaces", accept: clientNode,
		codes: inCluster, has: []string{"items.0.metadata.name"}, says: "cannot list resource \"namespaces\""},
	{source: "packages/core/src/common/cluster/create-request-namespace-list-permissions.injectable.ts 12632cf",
		use: "shows the resources that have the verb list", method: "POST",
		path: "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", accept: clientNode,
		body:  `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview","spec":{"namespace":"{ns}"}}`,
		codes: created, has: []string{"status.incomplete=false", "status.resourceRules.0.verbs=get,list,watch",
			"status.resourceRules.0.resources"}},
	{source: "packages/utility-features/kube-api/src/kube-api.ts 12db6a8", use: "watches from the version",
		path: "/api/v1/namespaces/{ns}/pods?limit=1", codes: always, has: []string{"kind=PodList", "apiVersion=v1",
			"metadata.resourceVersion", "items.0.metadata.uid", "items.0.metadata.namespace={ns}"}},
	{source: "packages/utility-features/kube-api/src/endpoints/pod.api.ts 126c171", use: "shows the message",
		path:  "/api/v1/namespaces/{ns}/pods/a/log?tailLines=500&timestamps=true&container=main&previous=false",
		codes: [4]int{405, 405, 403, 405}, says: "has no log of pods"},
	{source: "packages/utility-features/kube-api/src/endpoints/pod.api.ts 126c171", use: "shows the message",
		method: "POST", path: "/api/v1/namespaces/{ns}/pods/a/eviction",
		body: `{"apiVersion":"policy/v1","kind":"Eviction"}`, codes: readOnly, says: "has no eviction of pods"},
	{source: "packages/utility-features/kube-api/src/kube-api.ts 12db6a8", use: "shows the message",
		method: "PATCH", path: "/api/v1/namespaces/{ns}/pods/a", body: `[]`, codes: readOnly, says: "read-only mirror"},
	{source: "packages/utility-features/kube-api/src/kube-api.ts 12db6a8", use: "shows the message",
		method: "DELETE", path: "/api/v1/namespaces/{ns}/pods/a?propagationPolicy=Background", codes: readOnly,
		says: "read-only mirror"},
	{source: "packages/core/src/main/cluster/prometheus-handler/prometheus-handler.ts 2402586", use: "shows no usage",
		method: "POST", path: "/api/v1/namespaces/{ns}/services/prometheus:80/proxy/api/v1/query_range", codes: readOnly,
		says: "has no proxy"},
	{source: "packages/utility-features/kube-api/src/endpoints/node-metrics.api.ts 4400171", use: "shows no usage",
		path: "/apis/metrics.k8s.io/v1beta1/nodes", codes: [4]int{404, 404, 403, 404}, says: "has no metrics"},
}

func accessReview(attributes string) string {
	return `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{` +
		attributes + `}}}`
}

// byToken authenticates each user by a bearer token that is its name.
type byToken struct{}

func (byToken) Authenticate(r *http.Request) (user.Info, bool, error) {
	name, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return &user.DefaultInfo{Name: name, Groups: []string{user.AllAuthenticated}}, ok && name == "ann", nil
}

// newDashboardDaemon has the clusters eu and us. ann may read pods and events in namespace web of eu.
func newDashboardDaemon(t *testing.T) (d memoryDaemon, eu *informertest.Server) {
	t.Helper()
	read := []any{"get", "list", "watch"}
	clusters := map[string]http.Handler{}
	object := func(apiVersion, kind, namespace, name string, fields map[string]any) *unstructured.Unstructured {
		meta := map[string]any{"name": name}
		if namespace != "" {
			meta["namespace"] = namespace
		}
		obj := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": meta}
		for k, v := range fields {
			obj[k] = v
		}
		return &unstructured.Unstructured{Object: obj}
	}
	for _, name := range []string{"eu", "us"} {
		c := informertest.NewServer()
		if name == "us" { // so that UIDs differ from those of eu, as those of two clusters do
			for i := range 100 {
				create(t, c, object("v1", "ConfigMap", "other", strconv.Itoa(i), nil))
			}
		}
		create(t, c, pod("web", "a", nil), pod("web", "b", nil), pod("shop", "c", nil),
			object("v1", "Namespace", "", "default", nil), object("v1", "Namespace", "", "web", nil),
			object("v1", "Node", "", "node-1", nil),
			object("v1", "Event", "web", "warning", map[string]any{"type": "Warning",
				"involvedObject": map[string]any{"kind": "Pod", "namespace": "web", "name": "a"}}),
			object("v1", "Event", "web", "started", map[string]any{"type": "Normal",
				"involvedObject": map[string]any{"kind": "Pod", "namespace": "web", "name": "b"}}),
			object("apps/v1", "Deployment", "web", "a", map[string]any{"spec": map[string]any{"replicas": int64(2)}}),
			clusterRole("pods", rule(read, []any{"pods", "events"})),
			clusterRole("discovery", map[string]any{"verbs": []any{"get"}, "nonResourceURLs": []any{"/api", "/api/*",
				"/apis", "/apis/*", "/version", "/healthz"}}))
		create(t, c, binding("", "discovery", "discovery", "ann"))
		if clusters[name] = c; name == "eu" {
			eu = c
			create(t, c, binding("web", "ann", "pods", "ann"))
		}
	}
	d = memoryDaemon{server.NewInMemoryWithRights(t, clusters, fleet.Options{Include: []string{"pods", "namespaces",
		"nodes", "events", "deployments.apps", "cronjobs.batch", "ingresses.networking.k8s.io",
		"*.rbac.authorization.k8s.io"}, WithoutOpenAPI: true},
		server.Options{Access: server.Access{Token: "administrator"}, StartGrace: -1}, byToken{})}
	d.Start()
	until(t, func() string {
		for _, path := range []string{"/fleet/api/v1/nodes", "/fleet/apis/apps/v1/deployments",
			"/fleet/apis/batch/v1/cronjobs", "/fleet/api/v1/namespaces", "/fleet/api/v1/pods", "/fleet/api/v1/events"} {
			if a := d.replay(t, "administrator", &dashboardRequest{path: path + "?complete=true"}, nil); a.code != 200 {
				return path + ": " + a.body
			}
		}
		if a := d.replay(t, "ann", &dashboardRequest{path: "/clusters/eu/api/v1/namespaces/web/pods"}, nil); a.code != 200 {
			return a.body
		}
		return ""
	})
	return d, eu
}

// dashboardAnswer is an answer to a dashboard.
type dashboardAnswer struct {
	code   int
	header http.Header
	body   string
}

// replay sends a request as a user.
func (s memoryDaemon) replay(t *testing.T, name string, q *dashboardRequest, header http.Header) dashboardAnswer {
	t.Helper()
	method := q.method
	if method == "" {
		method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+q.path, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	for key, values := range header {
		r.Header[key] = values
	}
	r.Header.Set("Authorization", "Bearer "+name)
	if r.Header.Set("Accept", anyType); q.accept != "" {
		r.Header.Set("Accept", q.accept)
	}
	if q.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return dashboardAnswer{resp.StatusCode, resp.Header, string(b)}
}

// ofHeadlamp are headers of the browser that Headlamp passes on.
var ofHeadlamp = http.Header{"Origin": {"http://localhost:4466"}, "Sec-Fetch-Site": {"same-origin"},
	"Sec-Fetch-Mode": {"cors"}, "User-Agent": {"Headlamp 0.40.0 (linux/amd64)"}, "X-Forwarded-Host": {"127.0.0.1:8090"}}

// ofFreelens are headers that Freelens adds.
var ofFreelens = http.Header{"User-Agent": {"Freelens/1.6.0"}}

func TestRequestsOfDashboardsAreAnswered(t *testing.T) {
	d, _ := newDashboardDaemon(t)
	for client, c := range map[string]struct {
		requests []dashboardRequest
		header   http.Header
	}{"Headlamp": {headlampRequests, ofHeadlamp}, "Freelens": {freelensRequests, ofFreelens}} {
		for _, q := range c.requests {
			for i, want := range q.codes {
				if want == 0 {
					continue
				}
				view, name := []string{"/clusters/eu", "/fleet"}[i%2], []string{"administrator", "ann"}[i/2]
				names := strings.NewReplacer("{ns}", "web", "{node}", "node-1")
				if view == "/fleet" {
					names = strings.NewReplacer("{ns}", "eu.web", "{node}", "eu:node-1")
				}
				at := q
				at.path, at.body = view+names.Replace(q.path), names.Replace(q.body)
				at.says = names.Replace(q.says)
				got := d.replay(t, name, &at, c.header)
				why := ""
				switch {
				case got.code != want:
					why = fmt.Sprintf("the status is %d, want %d", got.code, want)
				case got.code < 300:
					why = lacks(got.body, q.has, names)
				default:
					why = badStatus(got, at.says)
				}
				if why != "" {
					t.Errorf("%s (%s), which %s: %s %s as %s: %s\n%s", client, q.source, q.use, q.method, at.path, name, why,
						got.body)
				}
			}
		}
	}
}

// Freelens shows nothing of a cluster if one of the versions that it is told of cannot be read
// (packages/core/src/main/cluster/request-kube-api-resources-for.injectable.ts 12632cf).
func TestFreelensFindsTheResourcesOfEveryVersion(t *testing.T) {
	d, _ := newDashboardDaemon(t)
	for _, view := range []string{"/clusters/eu", "/fleet"} {
		for _, name := range []string{"administrator", "ann"} {
			var list metav1.APIGroupList
			got := d.replay(t, name, &dashboardRequest{path: view + "/apis"}, ofFreelens)
			if err := json.Unmarshal([]byte(got.body), &list); err != nil || len(list.Groups) < 4 {
				t.Fatalf("%s as %s: %v %s", view, name, err, got.body)
			}
			for _, g := range list.Groups {
				for _, v := range g.Versions {
					got := d.replay(t, name, &dashboardRequest{path: view + "/apis/" + v.GroupVersion}, ofFreelens)
					if why := lacks(got.body, []string{"resources.0.name"}, strings.NewReplacer()); why != "" || got.code != 200 {
						t.Errorf("%s as %s: %s: %d %s", view, name, v.GroupVersion, got.code, why)
					}
				}
			}
		}
	}
}

// Headlamp appends the items of each page, and takes the version and the token of the last one
// (frontend/src/lib/k8s/api/v2/useKubeObjectList.ts 005a46b).
func TestHeadlampLoadsAllPages(t *testing.T) {
	d, _ := newDashboardDaemon(t)
	for path, name := range dashboardViews {
		want := d.dashboardList(t, name, path, ofHeadlamp)
		var names []string
		for token, version := "", ""; ; {
			got := d.replay(t, name, &dashboardRequest{path: path + "?limit=1&continue=" + url.QueryEscape(token)}, ofHeadlamp)
			var page metav1.PartialObjectMetadataList
			if err := json.Unmarshal([]byte(got.body), &page); err != nil || got.code != http.StatusOK {
				t.Fatalf("%s: %d %v %s", path, got.code, err, got.body)
			}
			for _, it := range page.Items {
				names = append(names, it.Name)
			}
			if version == "" {
				version = page.ResourceVersion
			}
			if page.ResourceVersion != version {
				t.Errorf("%s: a page has version %s, and the first one %s", path, page.ResourceVersion, version)
			}
			if token = page.Continue; token == "" {
				break
			}
		}
		if len(names) != len(want.items) || len(names) < 2 {
			t.Errorf("%s: the pages have the pods %q, and the list has %d", path, names, len(want.items))
		}
	}
}

// lacks returns why an answer has not all of the fields, or "".
func lacks(body string, fields []string, names *strings.Replacer) string {
	var doc any
	err := json.Unmarshal([]byte(body), &doc)
	for _, want := range fields {
		if text, ok := strings.CutPrefix(want, "text "); ok {
			if !strings.Contains(body, text) {
				return "the answer is not " + text
			}
			continue
		}
		if err != nil {
			return err.Error()
		}
		path, value, exact := strings.Cut(names.Replace(want), "=")
		got, ok := fieldOf(doc, path)
		if !ok || got == "" || exact && got != value {
			return fmt.Sprintf("%s is %q", want, got)
		}
	}
	return ""
}

// fieldOf returns a field of a document as text. A list has its elements joined by commas.
func fieldOf(doc any, path string) (string, bool) {
	for _, part := range strings.Split(path, ".") {
		switch in := doc.(type) {
		case map[string]any:
			var ok bool
			if doc, ok = in[part]; !ok {
				return "", part == "allowed" || part == "incomplete" // false is left out
			}
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(in) {
				return "", false
			}
			doc = in[i]
		default:
			return "", false
		}
	}
	if list, ok := doc.([]any); ok {
		var all []string
		for _, element := range list {
			all = append(all, fmt.Sprint(element))
		}
		return strings.Join(all, ","), true
	}
	return fmt.Sprint(doc), true
}

// badStatus returns why an answer is not a Status with a message, or "". An unknown path of discovery has a text only,
// as for an API server.
func badStatus(got dashboardAnswer, says string) string {
	if says == "" && strings.HasPrefix(got.header.Get("Content-Type"), "text/plain") {
		return ""
	}
	var st struct {
		Kind, APIVersion, Message string
		Code                      int
		Metadata                  *struct{}
	}
	d := json.NewDecoder(bytes.NewReader([]byte(got.body)))
	if err := d.Decode(&st); err != nil {
		return err.Error()
	}
	if st.Kind != "Status" || st.APIVersion != "v1" || st.Code != got.code || st.Metadata == nil || st.Message == "" {
		return "it is not a Status"
	}
	if !strings.Contains(st.Message, says) && got.code != http.StatusForbidden {
		return "the message does not say " + says
	}
	return ""
}
