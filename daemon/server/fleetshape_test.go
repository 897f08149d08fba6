package server

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mirador-k8s/mirador/internal/jsonscan"
	"github.com/mirador-k8s/mirador/object"
)

func TestObjectsAtFleetHaveAnnotationsOfTheirCluster(t *testing.T) {
	for _, c := range []struct {
		key       object.Key
		obj, want string
	}{
		{"web/a",
			`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"web","resourceVersion":"7"},` +
				`"spec":{"name":"a"}}`,
			`{"kind":"Pod","apiVersion":"v1","metadata":{"annotations":{"mirador.dev/cluster":"eu",` +
				`"mirador.dev/resource-version":"7"},"name":"a","namespace":"eu.web","resourceVersion":"99"},"spec":{"name":"a"}}`},
		{"n1", `{"metadata":{"annotations":{"x":"y"},"name":"n1","resourceVersion":"7"}}`,
			`{"metadata":{"annotations":{"mirador.dev/cluster":"eu","mirador.dev/resource-version":"7","x":"y"},` +
				`"name":"eu:n1","resourceVersion":"99"}}`},
		{"n1", `{"metadata":{"name":"n1","annotations":{},"resourceVersion":"7","labels":{"name":"n1"}}}`,
			`{"metadata":{"annotations":{"mirador.dev/cluster":"eu","mirador.dev/resource-version":"7"},` +
				`"labels":{"name":"n1"},"name":"eu:n1","resourceVersion":"99"}}`},
		{"n1", `{"metadata":{"name":"n1","annotations":null,"resourceVersion":"7"}}`,
			`{"metadata":{"annotations":{"mirador.dev/cluster":"eu","mirador.dev/resource-version":"7"},"name":"eu:n1",` +
				`"resourceVersion":"99"}}`},
		// A mirror of a mirror.
		{"eu.web/a",
			`{"metadata":{"name":"a","namespace":"eu.web","annotations":{ "a" : "b" , "mirador.dev/cluster":"eu","x":"y",` +
				`"mirador.dev/resource-version":"7" },"resourceVersion":"8"}}`,
			`{"metadata":{"annotations":{"a":"b","mirador.dev/cluster":"eu","mirador.dev/resource-version":"8","x":"y"},` +
				`"name":"a","namespace":"eu.eu.web","resourceVersion":"99"}}`},
		// Objects of a hostile cluster.
		{"n1",
			`{"metadata":{"name":"n1","annotations":{"mir\u0061dor.dev/cluster":"us","mirador.dev\/cluster":"us",` +
				`"mirador.dev/cluster":"us","mirador.dev/cluster":"us"},"resourceVersion":"7"}}`,
			`{"metadata":{"annotations":{"mirador.dev/cluster":"eu","mirador.dev/resource-version":"7"},"name":"eu:n1",` +
				`"resourceVersion":"99"}}`},
		{"n1",
			`{"metadata":{"name":"n1","annotations":{"mirador.dev/cluster":"us","mirador.dev/resource-version":"8"},` +
				`"resourceVersion":"7"}}`,
			`{"metadata":{"annotations":{"mirador.dev/cluster":"eu","mirador.dev/resource-version":"7"},"name":"eu:n1",` +
				`"resourceVersion":"99"}}`},
		{"n1",
			`{"metadata":{"name":"x","annotations":{"a":"b"},"annotations":{"mirador.dev/cluster":"us"},"name":"n1",` +
				`"resourceVersion":"7"}}`,
			`{"metadata":{"annotations":{"mirador.dev/cluster":"eu","mirador.dev/resource-version":"7"},"name":"eu:n1",` +
				`"resourceVersion":"99"}}`},
		{`n","x":"1`, `{"metadata":{"n\u0061me":"n\",\"x\":\"1","annot\u0061tions":null,"resourceVersion":"7\""}}`,
			`{"metadata":{"annotations":{"mirador.dev/cluster":"eu","mirador.dev/resource-version":"7\""},"name":"eu:n\",` +
				`\"x\":\"1","resourceVersion":"99"}}`},
	} {
		out := appendForFleet(nil, []byte(c.obj), "eu", c.key, "99", &fleetShape{})
		if name := repeatedAnnotation(t, out); name != "" {
			t.Errorf("%s has %s twice: %s", c.obj, name, out)
		}
		var got, want any
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%s became %s: %v", c.obj, out, err)
		}
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: -want +got\n%s", c.obj, d)
		}
	}
}

func TestFleetNamesAreSplitIntoClusterAndName(t *testing.T) {
	if c, ns, ok := ofFleetNamespace("eu.web"); c != "eu" || ns != "web" || !ok {
		t.Error(c, ns, ok)
	}
	if c, n, ok := ofFleetName("eu:system:admin"); c != "eu" || n != "system:admin" || !ok {
		t.Error(c, n, ok)
	}
	for _, bad := range []string{"", "web", ".web", "eu."} {
		if _, _, ok := ofFleetNamespace(bad); ok {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// repeatedAnnotation returns the name of an annotation that appears twice, "" if there is none.
func repeatedAnnotation(t *testing.T, obj []byte) string {
	t.Helper()
	from, to, ok := jsonscan.Member(obj, "metadata")
	if !ok {
		t.Fatalf("no metadata: %s", obj)
	}
	meta := obj[from:to]
	if from, to, ok = jsonscan.Member(meta, "annotations"); !ok {
		t.Fatalf("no annotations: %s", obj)
	}
	seen := map[string]bool{}
	for i := 1; ; {
		m, next, more := jsonscan.Next(meta[from:to], i)
		if !more {
			return ""
		}
		name := jsonscan.Unquote(m.Name, m.Escaped)
		if seen[name] {
			return name
		}
		seen[name], i = true, next
	}
}
