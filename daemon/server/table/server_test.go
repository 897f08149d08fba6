package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/dev/testcluster"
)

const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"

// server sends requests to the cluster without a typed client.
type server struct {
	host     string
	client   *http.Client
	fixtures map[string]bool // by kind and name
}

func newServer(t *testing.T) *server {
	t.Helper()
	config := testcluster.Start(t, testcluster.WithoutControllers()).Config()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(client.Transport) })
	return &server{host: config.Host, client: client, fixtures: map[string]bool{}}
}

// send returns the body of a successful answer, or an error with the body of any other.
func (s *server) send(t *testing.T, method, path, accept string, body any) ([]byte, error) {
	t.Helper()
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		content = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.host+path, content)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, answer)
	}
	return answer, err
}

func (s *server) get(t *testing.T, path, accept string, into any) {
	t.Helper()
	b, err := s.send(t, http.MethodGet, path, accept, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		t.Fatal(err)
	}
}

// endpoint is where a kind is served.
type endpoint struct {
	gv         schema.GroupVersion
	name       string
	namespaced bool
}

func (r endpoint) path() string {
	if r.gv.Group == "" {
		return "/api/" + r.gv.Version + "/" + r.name
	}
	return "/apis/" + r.gv.String() + "/" + r.name
}

func (r endpoint) in(namespace string) string {
	if !r.namespaced {
		return r.path()
	}
	return strings.TrimSuffix(r.path(), r.name) + "namespaces/" + namespace + "/" + r.name
}

// discover returns the resources that the server lists.
func (s *server) discover(t *testing.T) map[schema.GroupVersionKind]endpoint {
	t.Helper()
	all := map[schema.GroupVersionKind]endpoint{}
	var groups metav1.APIGroupList
	s.get(t, "/apis", "application/json", &groups)
	versions := []string{"v1"}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			versions = append(versions, v.GroupVersion)
		}
	}
	for _, v := range versions {
		gv, err := schema.ParseGroupVersion(v)
		if err != nil {
			t.Fatal(err)
		}
		var list metav1.APIResourceList
		b, err := s.send(t, http.MethodGet, strings.TrimSuffix(endpoint{gv: gv}.path(), "/"), "application/json", nil)
		if err != nil {
			continue // the group of an APIService without a server
		}
		if err := json.Unmarshal(b, &list); err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") {
				all[gv.WithKind(r.Kind)] = endpoint{gv: gv, name: r.Name, namespaced: r.Namespaced}
			}
		}
	}
	return all
}

// printer returns our printer of a kind and, for a custom resource, its columns.
func (s *server) printer(t *testing.T, gvk schema.GroupVersionKind) (Printer, []Column) {
	t.Helper()
	if gvk.Group != "table.test" {
		return For(gvk), nil
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Name    string   `json:"name"`
				Columns []Column `json:"additionalPrinterColumns"`
			} `json:"versions"`
		} `json:"spec"`
	}
	s.get(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.table.test", "application/json", &crd)
	for _, v := range crd.Spec.Versions {
		if v.Name == gvk.Version {
			p, err := ForCRD(v.Columns)
			if err != nil {
				t.Fatal(err)
			}
			return p, v.Columns
		}
	}
	t.Fatalf("the definition has no version %s", gvk.Version)
	return nil, nil
}

var ago = regexp.MustCompile(`(MICRO)?AGO_([0-9a-z]+)`)

// objects reads testdata/objects and replaces AGO_5m and the like by that time.
func (s *server) objects(t *testing.T) (all []*unstructured.Unstructured) {
	t.Helper()
	files, err := filepath.Glob("testdata/objects/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d files of objects: %v", len(files), err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		b = ago.ReplaceAllFunc(b, func(m []byte) []byte {
			parts := ago.FindSubmatch(m)
			d, err := time.ParseDuration(string(parts[2]))
			if err != nil {
				t.Fatalf("%s: %s: %v", f, m, err)
			}
			format := time.RFC3339
			if len(parts[1]) > 0 {
				format = metav1.RFC3339Micro
			}
			return []byte(`"` + time.Now().UTC().Add(-d).Format(format) + `"`)
		})
		d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(b), 4096)
		for {
			o := &unstructured.Unstructured{}
			if err := d.Decode(&o.Object); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			all = append(all, o)
			s.fixtures[o.GetKind()+"/"+o.GetName()] = true
		}
	}
	return all
}

func (s *server) fixture(gvk schema.GroupVersionKind, raw []byte) bool {
	return s.fixtures[gvk.Kind+"/"+nameOf(raw)] || gvk.Kind == "APIService" && nameOf(raw) == "v1.apps"
}

// create creates an object, sets its status, and deletes it if it is marked so: a finalizer keeps it.
func (s *server) create(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	r := s.resource(t, o.GroupVersionKind())
	note := o.GetAnnotations()
	path := r.in(o.GetNamespace())
	b, err := s.send(t, http.MethodPost, path, "application/json", o)
	for deadline := time.Now().Add(20 * time.Second); err != nil && o.GroupVersionKind().Group == "table.test" &&
		time.Now().Before(deadline); {
		b, err = s.send(t, http.MethodPost, path, "application/json", o) // until the definition is served
	}
	if err != nil {
		t.Error(err)
		return
	}
	path += "/" + o.GetName()
	if status, ok := o.Object["status"]; ok && o.GroupVersionKind().Group != "table.test" {
		made := &unstructured.Unstructured{}
		if err := json.Unmarshal(b, &made.Object); err != nil {
			t.Fatal(err)
		}
		made.Object["status"] = status
		sub := "status"
		if note["table.test/status"] != "" {
			sub = note["table.test/status"]
		}
		if _, err := s.send(t, http.MethodPut, path+"/"+sub, "application/json", made); err != nil {
			t.Error(err)
		}
	}
	if note["table.test/then"] == "delete" {
		if _, err := s.send(t, http.MethodDelete, path, "application/json", nil); err != nil {
			t.Fatal(err)
		}
	}
}

// resource finds where a kind is served, and waits for a new kind.
func (s *server) resource(t *testing.T, gvk schema.GroupVersionKind) endpoint {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		var list metav1.APIResourceList
		b, err := s.send(t, http.MethodGet, strings.TrimSuffix(endpoint{gv: gvk.GroupVersion()}.path(), "/"),
			"application/json", nil)
		if err != nil || json.Unmarshal(b, &list) != nil {
			continue
		}
		for _, r := range list.APIResources {
			if r.Kind == gvk.Kind && !strings.Contains(r.Name, "/") {
				return endpoint{gv: gvk.GroupVersion(), name: r.Name, namespaced: r.Namespaced}
			}
		}
	}
	t.Fatalf("the server does not serve %s", gvk)
	return endpoint{}
}
