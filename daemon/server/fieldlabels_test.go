package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/informertest"
)

// fieldLabels are all labels that an API server knows for any kind, and some that it does not know.
var fieldLabels = []string{
	"metadata.name", "metadata.namespace", "name", "spec.nodeName", "spec.host", "spec.restartPolicy",
	"spec.schedulerName",
	"spec.serviceAccountName", "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs",
	"status.nominatedNodeName",
	"spec.unschedulable", "status.replicas", "involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
	"involvedObject.uid",
	"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "regarding.kind",
	"regarding.namespace",
	"regarding.name", "regarding.uid", "regarding.apiVersion", "regarding.resourceVersion",
	"regarding.fieldPath", "reason",
	"reportingComponent", "reportingController", "source", "type", "spec.clusterIP", "spec.type",
	"status.successful", "spec.signerName",
	"spec.podName", "spec.driver", "spec.leaseName", "spec.color", "spec.tails", "spec.stunt",
	"spec.nodName", "status.fase", "metadata.nam", "spec", "spec.containers", "a b", "a..b", "[0]",
}

// fieldValues are the values in the objects of the tests, and some others.
var fieldValues = []string{
	"", "true", "false", "0", "1", "2", "7", "a", "web", "default", "node-1", "node-2", "Running", "Pending",
	"Active", "Never", "Always",
	"default-scheduler", "other", "kubelet", "test", "Pod", "Node", "v1", "u-1", "Started", "Pulled", "Normal",
	"Warning", "Opaque",
	"kubernetes.io/basic-auth", "None", "ClusterIP", "NodePort", "10.0.0.7", "spec.containers{main}",
	"driver.example.com", "red", "<nil>",
}

// selectable fills the cluster with objects whose selectable fields are set and absent, computed and defaulted.
func selectable(t *testing.T) *pair {
	t.Helper()
	cluster := filled(t)
	cluster.Kubectl(t, "apply", "-f", "testdata/selectable.yaml")
	p := mirror(t)
	p.patchStatus(t, "/api/v1/namespaces/web/pods/b",
		`{"status":{"phase":"Running","podIP":"10.0.0.7","podIPs":[{"ip":"10.0.0.7"}],"nominatedNodeName":"node-1"}}`)
	p.patchStatus(t, "/api/v1/namespaces/web/replicationcontrollers/a", `{"status":{"replicas":2}}`)
	p.patchStatus(t, "/apis/batch/v1/namespaces/db/jobs/a", `{"status":{"succeeded":1}}`)
	p.caughtUp(t)
	return p
}

func (p *pair) patchStatus(t *testing.T, path, body string) {
	t.Helper()
	p.send(t, http.MethodPatch, path+"/status", "application/merge-patch+json", body)
}

// send sends a write to the real server.
func (p *pair) send(t *testing.T, method, path, contentType, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, p.real+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	resp, err := p.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s: %s", method, path, resp.Status, b)
	}
}

// added are labels that the real server refuses and the mirror accepts, because the kind has such a field. The
// definitions of oceans and sails allow any field.
var added = map[string][]string{
	"nodes": {"status.phase"}, "persistentvolumes": {"status.phase"}, "persistentvolumeclaims": {"status.phase"},
	"deployments": {"status.replicas"}, "replicasets": {"status.replicas"}, "statefulsets": {"status.replicas"},
	"volumeattachments": {"spec.nodeName"}, "prioritylevelconfigurations": {"spec.type"},
	"oceans": fieldLabels, "sails": fieldLabels,
}

func TestFieldSelectorsMeanTheSameAsAtTheRealServer(t *testing.T) {
	p := selectable(t)
	c, _ := p.fleet.Cluster(mirrored)
	var compared, known atomic.Int64
	var wg sync.WaitGroup
	for _, r := range c.Resources() {
		wg.Go(func() {
			for _, label := range fieldLabels {
				compared.Add(1)
				if !p.sameAnswer(t, r, label+"=") {
					continue
				}
				known.Add(1)
				for i, value := range valuesToAsk(r, label) {
					compared.Add(1)
					p.sameAnswer(t, r, label+"="+value)
					if i < 3 {
						compared.Add(1)
						p.sameAnswer(t, r, label+"!="+value)
					}
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d field selectors were compared; the server knows %d pairs of a kind and a label",
		compared.Load(), known.Load())
}

// valuesToAsk are the values by which objects of a resource are selected: those that can be the value of an absent
// field and those that occur in an object. With MIRADOR_NIGHTLY they are all of them.
func valuesToAsk(r *fleet.Resource, label string) []string {
	if strings.HasPrefix(label, "metadata.") {
		return []string{"", "a", "web"}
	}
	if os.Getenv("MIRADOR_NIGHTLY") != "" {
		return fieldValues
	}
	var objects bytes.Buffer
	for o := range r.Snapshot().Objects() {
		objects.Write(o.Bytes)
	}
	out := []string{"", "true", "false", "0", "<nil>"}
	for _, value := range fieldValues {
		if !slices.Contains(out, value) && bytes.Contains(objects.Bytes(), []byte(value)) {
			out = append(out, value)
		}
	}
	return out
}

// sameAnswer compares the answers to one field selector, and reports whether the real server knows its label.
func (p *pair) sameAnswer(t *testing.T, r *fleet.Resource, selector string) (known bool) {
	ask := path(r, "") + "?fieldSelector=" + url.QueryEscape(selector)
	var wantHead, want, gotHead, got string
	for range 3 { // the server renews its own lease now and then
		wantHead, want = p.ask(t, http.MethodGet, p.real+ask, lists)
		gotHead, got = p.ask(t, http.MethodGet, p.ours+ask, lists)
		if wantHead == gotHead && (want == got || normalised(want) == normalised(got)) {
			return strings.HasPrefix(wantHead, "200")
		}
	}
	label, _, _ := strings.Cut(selector, "=")
	if strings.HasPrefix(wantHead, "400") && strings.HasPrefix(gotHead, "200") &&
		slices.Contains(added[r.GVR().Resource], label) {
		return false
	}
	t.Errorf("%s of %s\nreal: %s %.300s\nours: %s %.300s", selector, r.GVR(), wantHead, normalised(want), gotHead,
		normalised(got))
	return strings.HasPrefix(wantHead, "200")
}

// A watch parses its field selector as a list does.
func TestWatchRefusesTheFieldLabelsThatListRefuses(t *testing.T) {
	t.Parallel()
	eu := informertest.NewServer()
	create(t, eu, pod("web", "a", map[string]any{"spec": map[string]any{"nodeName": "n1"}}), pod("web", "b", nil))
	s := newMemoryDaemon(t, map[string]http.Handler{"eu": eu})
	s.Start()
	s.ready(t, 2)
	for _, c := range []struct {
		selector string
		refused  string
		finds    string
	}{
		{"spec.nodName=n1", "field label not supported: spec.nodName", ""},
		{"spec.containers=", "field label not supported: spec.containers", ""},
		{"spec.containers[0].imag=x", "field label not supported: spec.containers[0].imag", ""},
		{"a b=x", "field label not supported: a b", ""},
		{"spec.hostNetwork=false", "", "a b"},
		{"spec.hostNetwork!=false", "", ""},
		{"spec.host=n1", "", "a"},
		{"status.podIPs=", "", "a b"},
		{"{.spec.nodeName}=n1", "", "a"},
		{"spec.priority!=1", "", "a b"},
		{"metadata.labels['a.b/c']=", "", "a b"},
		{"spec.containers[0].image=", "", "a b"},
		{"metadata.creationTimestamp!=x", "", "a b"},
	} {
		for _, base := range []string{"/clusters/eu", "/fleet"} {
			selector := c.selector
			if base == "/fleet" {
				selector = strings.ReplaceAll(selector, "=n1", "=eu:n1")
			}
			ask := base + "/api/v1/pods?timeoutSeconds=1&fieldSelector=" + url.QueryEscape(selector)
			for _, watch := range []string{"", "&watch=true"} {
				if watch != "" && c.refused == "" {
					continue
				}
				code, body := s.get(t, ask+watch, "application/json")
				var answer struct {
					Message string
					Items   []struct{ Metadata struct{ Name string } }
				}
				if err := json.NewDecoder(bytes.NewReader([]byte(body))).Decode(&answer); err != nil {
					t.Fatal(err)
				}
				var names []string
				for _, it := range answer.Items {
					names = append(names, it.Metadata.Name)
				}
				if answer.Message != c.refused || (code == http.StatusBadRequest) != (c.refused != "") ||
					strings.Join(names, " ") != c.finds {
					t.Errorf("%s%s: %s", ask, watch,
						fmt.Sprintf("%d %q finds %q, want %q and %q", code, answer.Message, names, c.refused, c.finds))
				}
			}
		}
	}
}
