package cli

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// podsPage is a list of two pods, as a server sends it.
const podsPage = `{"metadata":{"resourceVersion":"7"},"items":[
{"metadata":{"name":"a","namespace":"web","managedFields":[{"manager":"kubelet"}]},
"spec":{"nodeName":"n1","containers":[{"image":"x"},{"image":"y"}]}},
{"metadata":{"name":"b","namespace":"web"},"spec":{"secret":"hunter2"}}]}`

func shown(t *testing.T, names []string, output string) (string, error) {
	t.Helper()
	var p page
	if err := json.Unmarshal([]byte(podsPage), &p); err != nil {
		t.Fatal(err)
	}
	c := &readCommand{}
	c.output = output
	if err := c.parse(); err != nil {
		t.Fatal(err)
	}
	if len(names) == 1 {
		p.Items = p.Items[:1]
	}
	var b bytes.Buffer
	err := c.show(&b, []found{{&ask{mapping: pods, names: names}, &result{page: p}}})
	return b.String(), err
}

func TestObjectsAreShownInEveryForm(t *testing.T) {
	file := func(text string) string { return write(t, filepath.Join(t.TempDir(), "template"), text) }
	for _, c := range []struct {
		output string
		names  []string
		want   string
	}{
		{"name", nil, "pod/a\npod/b\n"},
		{"name", []string{"a"}, "pod/a\n"},
		{"jsonpath={.items[*].metadata.name}", nil, "a b"},
		{"jsonpath=.metadata.name", []string{"a"}, "a"},
		{"jsonpath={.none}", []string{"a"}, ""},
		{"jsonpath-file=" + file("{.metadata.namespace}"), []string{"a"}, "web"},
		{"go-template={{range .items}}{{.metadata.name}};{{end}}", nil, "a;b;"},
		{"go-template-file=" + file("{{.kind}}"), []string{"a"}, "Pod"},
		{"custom-columns=NAME:.metadata.name,NODE:spec.nodeName,IMAGES:{.spec.containers[*].image}", nil,
			"NAME   NODE     IMAGES\na      n1       x,y\nb      <none>   <none>\n"},
		{"custom-columns-file=" + file("N  S\n.metadata.name .metadata.namespace\n"), nil, "N   S\na   web\nb   web\n"},
		{"yaml", []string{"a"},
			"apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  namespace: web\nspec:\n  containers:\n  - image: x\n  - " +
				"image: \"y\"\n  nodeName: n1\n"},
	} {
		got, err := shown(t, c.names, c.output)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("-o %s: %v %s", c.output, err, diff)
		}
	}
	got, err := shown(t, nil, "json")
	var list struct {
		Kind  string
		Items []struct{ Kind string }
	}
	if err != nil || json.Unmarshal([]byte(got), &list) != nil || list.Kind != "List" || len(list.Items) != 2 ||
		list.Items[0].Kind != "Pod" || strings.Contains(got, "kubelet") {
		t.Errorf("-o json: %v\n%s", err, got)
	}
}

// The input of a failing template is not printed, because it may be a secret.
func TestFailingTemplateIsAnErrorOfOneLine(t *testing.T) {
	for _, output := range []string{"go-template={{index .items 7}}", "jsonpath={.items[7].metadata.name}"} {
		got, err := shown(t, nil, output)
		if ExitCode(err) != exitUsage || got != "" || strings.Contains(err.Error(), "hunter2") ||
			strings.Contains(err.Error(), "\n") || len(err.Error()) > 500 {
			t.Errorf("-o %s printed %q and said %v", output, got, err)
		}
	}
}

func TestSeveralResourcesAreSeveralTables(t *testing.T) {
	services := &mapping{gvr: pods.gvr.GroupVersion().WithResource("services"), singular: "service", namespaced: true}
	table := func(rows string) *result {
		var p page
		if err := json.Unmarshal([]byte(`{"columnDefinitions":[{"name":"Name"},{"name":"Age"}],"rows":[`+rows+`]}`),
			&p); err != nil {
			t.Fatal(err)
		}
		return &result{page: p}
	}
	row := func(name string) string {
		return `{"cells":["` + name + `","1d"],"object":{"metadata":{"name":"` + name +
			`","labels":{"app":"x","example.com/tier":"db"}}}}`
	}
	var b bytes.Buffer
	c := &readCommand{labelColumns: []string{"example.com/tier"}, showLabels: true}
	err := c.show(&b, []found{{&ask{mapping: pods}, table(row("a") + "," + row("b"))}, {&ask{mapping: pods}, table("")},
		{&ask{mapping: services}, table(row("c"))}})
	want := `
NAME    AGE   TIER   LABELS
pod/a   1d    db     app=x,example.com/tier=db
pod/b   1d    db     app=x,example.com/tier=db

NAME        AGE   TIER   LABELS
service/c   1d    db     app=x,example.com/tier=db
`
	if diff := cmp.Diff(want[1:], b.String()); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func TestSplitNames(t *testing.T) {
	for args, want := range map[string][]wanted{
		"pods":                {{"pods", nil}},
		"pods a b":            {{"pods", []string{"a", "b"}}},
		"pods,services a":     {{"pods", []string{"a"}}, {"services", []string{"a"}}},
		"pod/a svc/b pod/c":   {{"pod", []string{"a", "c"}}, {"svc", []string{"b"}}},
		"deployments.apps/we": {{"deployments.apps", []string{"we"}}},
	} {
		got, err := splitNames(strings.Fields(args))
		if err != nil || len(got) != len(want) {
			t.Errorf("%s: %v, %v", args, got, err)
			continue
		}
		for i := range want {
			if got[i].resource != want[i].resource || strings.Join(got[i].names, " ") != strings.Join(want[i].names, " ") {
				t.Errorf("%s: %v, want %v", args, got, want)
			}
		}
	}
}
