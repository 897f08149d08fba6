package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mirador-k8s/mirador/daemon/server"
)

// changes returns what changed, and each change as text, such as "Updated eu web/a /status/phase by kubelet".
func (p pastDaemon) changes(t *testing.T, user, path string) (list server.ChangeList, all []string) {
	t.Helper()
	code, text, _ := p.read(t, user, path, "")
	if err := json.Unmarshal([]byte(text), &list); err != nil || code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, code, text)
	}
	for _, c := range list.Items {
		line := fmt.Sprintf("%s %s %s/%s", c.Type, c.Cluster, c.Namespace, c.Name)
		for _, d := range c.Changes {
			line += " " + d.Path
		}
		for _, b := range c.By {
			line += " by " + b.Manager
		}
		all = append(all, line)
	}
	return list, all
}

func managedBy(p *unstructured.Unstructured, managers ...string) *unstructured.Unstructured {
	var all []any
	for i, m := range managers {
		all = append(all, map[string]any{"manager": m, "operation": "Update", "apiVersion": "v1",
			"time": fmt.Sprintf("2026-11-17T10:00:%02dZ", i), "fieldsType": "FieldsV1", "fieldsV1": map[string]any{}})
	}
	p.Object["metadata"].(map[string]any)["managedFields"] = all
	return p
}

func TestHistoryHasEveryChange(t *testing.T) {
	web := map[string]any{"app": "web"}
	p := newPastDaemon(t, managedBy(withLabels("web", "a", "Pending", web), "creator"),
		withLabels("shop", "c", "Running", nil))
	do := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	update := func(objs ...*unstructured.Unstructured) {
		t.Helper()
		for _, obj := range objs {
			v, err := p.eu.Update(obj)
			do(v, err)
			key := obj.GetNamespace() + "/" + obj.GetName()
			until(t, func() string { // each state is mirrored
				_, text, _ := p.read(t, "all", "/clusters/eu/api/v1/namespaces/"+obj.GetNamespace()+"/pods/"+obj.GetName(), "")
				phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
				if !strings.Contains(text, `"`+phase+`"`) {
					return key + ": " + text
				}
				return ""
			})
		}
	}
	update(managedBy(withLabels("web", "a", "Running", web), "creator", "kubelet"),
		managedBy(withLabels("shop", "c", "Failed", map[string]any{"app": "web"}), "kubelet"),
		withLabels("web", "a", "Failed", map[string]any{"app": "other"}))
	do(p.eu.Delete(pod("web", "a", nil)))
	p.mirrors(t, "shop/c")
	create(t, p.eu, withLabels("web", "a", "New", nil))
	p.mirrors(t, "shop/c", "web/a")
	create(t, p.us, pod("web", "z", nil))
	until(t, func() string {
		_, text, _ := p.read(t, "all", "/clusters/us/api/v1/namespaces/web/pods/z", "")
		if !strings.Contains(text, `"kind":"Pod"`) {
			return text
		}
		return ""
	})

	const (
		running = "Updated eu web/a /status/phase by kubelet"
		shop    = "Updated eu shop/c /metadata/labels /status/phase by kubelet"
		failed  = "Updated eu web/a /metadata/labels/app /status/phase"
		gone    = "Deleted eu web/a"
		again   = "Added eu web/a"
		other   = "Added us web/z"
	)
	from := "from=" + at(begin)
	all := "/api/v1/pods?history=true&" + from
	for path, want := range map[string][]string{
		"/clusters/eu/api/v1/namespaces/web/pods/a/history":         {"Added eu web/a by creator", running, failed, gone, again},
		"/clusters/eu/api/v1/namespaces/web/pods/a/history?" + from: {running, failed, gone, again},
		"/clusters/eu/api/v1/namespaces/web/pods/a/history?to=-0s":  {"Added eu web/a by creator", running, failed, gone, again},
		"/fleet/api/v1/namespaces/eu.web/pods/a/history?" + from:    {running, failed, gone, again},
		"/clusters/eu" + all:                    {running, shop, failed, gone, again},
		"/clusters/eu/api/v1/pods?history=true": {running, shop, failed, gone, again},
		"/fleet" + all:                          {running, shop, failed, gone, again, other},
		"/fleet" + all + "&clusters=us":         {other},
		"/clusters/eu/api/v1/namespaces/shop/pods?history=true&" + from:    {shop},
		"/clusters/eu" + all + "&labelSelector=app%3Dweb":                  {running, shop, failed},
		"/clusters/eu" + all + "&labelSelector=app%3Dother":                {failed, gone},
		"/clusters/eu" + all + "&fieldSelector=metadata.name%3Dc":          {shop},
		"/clusters/eu" + all + "&fieldSelector=metadata.namespace!%3Dshop": {running, failed, gone, again},
		"/fleet" + all + "&fieldSelector=metadata.namespace%3Deu.shop":     {shop},
		"/clusters/eu/api/v1/namespaces/kube-system/history":               nil,
		"/clusters/eu/api/v1/namespaces/kube-system/history?":              nil,
	} {
		user := "all"
		if want == nil {
			user, want = "administrator", []string{"Added eu /kube-system"}
		}
		list, got := p.changes(t, user, path)
		if fmt.Sprint(got) != fmt.Sprint(want) || list.Kind != "ChangeList" || list.Begin == "" || len(list.Gaps) > 0 {
			t.Errorf("%s: %d changes\n%s\nwant\n%s\nbegin %s, gaps %v", path, len(got), strings.Join(got, "\n"),
				strings.Join(want, "\n"), list.Begin, list.Gaps)
		}
	}

	// Pages have all changes, once.
	var got []string
	next, pages := "", 0
	for ; pages < 9; pages++ {
		list, some := p.changes(t, "all", "/fleet"+all+"&limit=2&continue="+next)
		got = append(got, some...)
		if next = list.Metadata.Continue; next == "" {
			break
		}
	}
	if want := []string{running, shop, failed, gone, again, other}; fmt.Sprint(got) != fmt.Sprint(want) || pages != 2 {
		t.Errorf("%d pages: %s", pages+1, strings.Join(got, "\n"))
	}

	// history=gaps has when the history of each cluster begins, and no changes.
	for path, want := range map[string]string{"/fleet/api/v1/pods?": "all: eu us",
		"/fleet/api/v1/pods?clusters=us&": "all: us", "/clusters/eu/api/v1/namespaces/web/pods?": "all: eu", "/fleet/api/v1/namespaces/eu.web/pods?": "ann: eu",
		"/fleet/api/v1/pods?labelSelector=app&": "ann: eu"} {
		user, want, _ := strings.Cut(want, ": ")
		list, got := p.changes(t, user, path+"history=gaps")
		clusters := slices.Sorted(maps.Keys(list.Begins))
		if len(got) > 0 || list.Items == nil || list.Gaps == nil || strings.Join(clusters, " ") != want {
			t.Errorf("%s: %d changes, gaps %v, begins %v; want %s", path, len(got), list.Gaps, list.Begins, want)
		}
		latest, err := time.Parse(time.RFC3339Nano, list.Begin)
		for cluster, text := range list.Begins {
			if begin, err2 := time.Parse(time.RFC3339Nano, text); err != nil || err2 != nil || begin.After(latest) {
				t.Errorf("%s: %s begins at %s, and the list at %s", path, cluster, text, list.Begin)
			}
		}
	}

	// The rights are those of the object.
	for path, want := range map[string]int{
		"/clusters/eu/api/v1/namespaces/web/pods/a/history":                           http.StatusOK,
		"/clusters/eu/api/v1/namespaces/shop/pods/c/history":                          http.StatusForbidden,
		"/fleet/api/v1/namespaces/eu.shop/pods/c/history":                             http.StatusForbidden,
		"/clusters/eu/api/v1/namespaces/web/pods/none/history":                        http.StatusNotFound,
		"/clusters/eu/api/v1/pods?history=true":                                       http.StatusForbidden,
		"/clusters/eu/api/v1/pods?history=gaps":                                       http.StatusForbidden,
		"/clusters/eu/api/v1/namespaces/web/pods?history=true":                        http.StatusOK,
		"/clusters/eu/api/v1/namespaces/web/pods?history=true&watch=true":             http.StatusBadRequest,
		"/clusters/eu/api/v1/namespaces/web/pods?history=true&where=true":             http.StatusBadRequest,
		"/clusters/eu/api/v1/namespaces/web/pods?history=true&at=-1m":                 http.StatusBadRequest,
		"/clusters/eu/api/v1/namespaces/web/pods?history=true&from=soon":              http.StatusBadRequest,
		"/clusters/eu/api/v1/namespaces/web/pods?history=true&from=-1s&to=-1h":        http.StatusBadRequest,
		"/clusters/eu/api/v1/namespaces/web/pods?history=maybe":                       http.StatusBadRequest,
		"/clusters/eu/api/v1/namespaces/web/pods?history=true&continue=x":             http.StatusBadRequest,
		"/clusters/eu/api/v1/namespaces/web/pods?history=true&fieldSelector=spec.x=1": http.StatusBadRequest,
	} {
		if code, text, _ := p.read(t, "ann", path, ""); code != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if _, got := p.changes(t, "ann", "/fleet"+all); fmt.Sprint(got) != fmt.Sprint([]string{running, failed, gone, again}) {
		t.Errorf("ann sees %v", got)
	}
	if _, got := p.changes(t, "ann", "/clusters/eu"+all+"&filtered=true&limit=9"); len(got) != 4 {
		t.Errorf("ann sees %v", got)
	}
}
