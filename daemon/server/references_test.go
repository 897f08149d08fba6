package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/object"
)

// shapeOf returns the shape of a kind in clusters where Widgets of example.com have no namespace.
func shapeOf(gk schema.GroupKind) *fleetShape {
	return &fleetShape{kind: gk, references: builtinReferences()[gk],
		clusterScoped: func(_, apiVersion, kind string) bool {
			return kind == "Node" || apiVersion == "example.com/v1" && kind == "Widget"
		}}
}

func TestReferencesAtFleetHaveFleetNames(t *testing.T) {
	const meta = `"metadata":{"name":"x","resourceVersion":"7"}`
	for _, c := range []struct {
		group, kind string
		key         object.Key
		obj, want   string // M stands for the metadata
	}{
		{"", "Pod", "web/x", `{M,"spec":{"nodeName":"n1"}}`, `{M,"spec":{"nodeName":"eu:n1"}}`},
		{"", "Pod", "web/x", `{M,"spec":{"nodeName":""}}`, `{M,"spec":{"nodeName":""}}`},
		{"", "Pod", "web/x", `{M,"spec":{"nodeName":"n1","x":{"y":[1]}},"status":{"phase":"Running"}}`,
			`{M,"spec":{"nodeName":"eu:n1","x":{"y":[1]}},"status":{"phase":"Running"}}`},
		{"", "Pod", "web/x", `{M,"spec":{"nodeName":"n1"},"status":{"nominatedNodeName":"n2","x":1}}`,
			`{M,"spec":{"nodeName":"eu:n1"},"status":{"nominatedNodeName":"eu:n2","x":1}}`},
		{"", "Pod", "web/x", `{M,"status":{"nominatedNodeName":"n2"},"spec":{"nodeName":"n1"}}`,
			`{M,"status":{"nominatedNodeName":"eu:n2"},"spec":{"nodeName":"eu:n1"}}`},
		{"", "Pod", "web/x", `{"spec":{"nodeName":"n1"},M}`, `{"spec":{"nodeName":"eu:n1"},M}`},
		{"", "Pod", "web/x", `{M, "spec" : { "nodeName" : "n1" } , "status":{} }`,
			`{M,"spec":{"nodeName":"eu:n1"},"status":{}}`},
		{"", "Pod", "web/x",
			`{M,"spec":{"nodeSelector":{"nodeName":"n1"},"nodeName":"n2","env":"spec.nodeName"},"status":{}}`,
			`{M,"spec":{"nodeSelector":{"nodeName":"n1"},"nodeName":"eu:n2","env":"spec.nodeName"},"status":{}}`},
		{"", "Pod", "web/x", `{M,"spec":{"nodeSelector":{"nodeName":"n1"}}}`,
			`{M,"spec":{"nodeSelector":{"nodeName":"n1"}}}`},
		{"", "Pod", "web/x", `{M,"spec":{"nodeName":["n1"]}}`, `{M,"spec":{"nodeName":["n1"]}}`},
		{"", "Pod", "web/x", `{M,"spec":null}`, `{M,"spec":null}`},
		{"", "Event", "web/x", `{M,"involvedObject":{"kind":"Pod","namespace":"web","name":"a","uid":"u"}}`,
			`{M,"involvedObject":{"kind":"Pod","namespace":"eu.web","name":"a","uid":"u"}}`},
		{"", "Event", "default/x", `{M,"involvedObject":{"kind":"Node","name":"n1","uid":"n1"}}`,
			`{M,"involvedObject":{"kind":"Node","name":"eu:n1","uid":"eu:n1"}}`},
		{"", "Event", "default/x", `{M,"involvedObject":{"kind":"Node","name":"n1","uid":"u"}}`,
			`{M,"involvedObject":{"kind":"Node","name":"eu:n1","uid":"u"}}`},
		{"", "Event", "default/x", `{M,"involvedObject":{"kind":"Namespace","name":"web"}}`,
			`{M,"involvedObject":{"kind":"Namespace","name":"eu.web"}}`},
		{"", "Event", "default/x", `{M,"involvedObject":null,"related":"x"}`, `{M,"involvedObject":null,"related":"x"}`},
		{"events.k8s.io", "Event", "web/x",
			`{M,"regarding":{"kind":"Pod","namespace":"web","name":"a"},"related":{"kind":"Node","name":"n1"}}`,
			`{M,"regarding":{"kind":"Pod","namespace":"eu.web","name":"a"},"related":{"kind":"Node","name":"eu:n1"}}`},
		{"", "PersistentVolume", "x", `{M,"spec":{"claimRef":{"kind":"PersistentVolumeClaim","namespace":"db","name":"d"}}}`,
			`{M,"spec":{"claimRef":{"kind":"PersistentVolumeClaim","namespace":"eu.db","name":"d"}}}`},
		{"", "PersistentVolumeClaim", "db/x", `{M,"spec":{"volumeName":"v","storageClassName":"s"}}`,
			`{M,"spec":{"volumeName":"eu:v","storageClassName":"s"}}`},
		{"discovery.k8s.io", "EndpointSlice", "web/x",
			`{M,"endpoints":[{"nodeName":"n1","targetRef":{"kind":"Pod","namespace":"web","name":"a"}},` +
				`{"addresses":["1"]}, {"nodeName":"n2"}]}`,
			`{M,"endpoints":[{"nodeName":"eu:n1","targetRef":{"kind":"Pod","namespace":"eu.web","name":"a"}},` +
				`{"addresses":["1"]},{"nodeName":"eu:n2"}]}`},
		{"rbac.authorization.k8s.io", "RoleBinding", "web/x",
			`{M,"roleRef":{"kind":"ClusterRole","name":"view"},"subjects":[{"kind":"ServiceAccount","namespace":"web",` +
				`"name":"a"},{"kind":"User","name":"u"}]}`,
			`{M,"roleRef":{"kind":"ClusterRole","name":"eu:view"},"subjects":[{"kind":"ServiceAccount",` +
				`"namespace":"eu.web","name":"a"},{"kind":"User","name":"u"}]}`},
		{"rbac.authorization.k8s.io", "RoleBinding", "web/x", `{M,"roleRef":{"kind":"Role","name":"view"}}`,
			`{M,"roleRef":{"kind":"Role","name":"view"}}`},
		{"apps", "Deployment", "web/x", `{M,"spec":{"nodeName":"n1"}}`, `{M,"spec":{"nodeName":"n1"}}`},
	} {
		name := "x"
		metaWant := `"metadata":{"annotations":{"mirador.dev/cluster":"eu","mirador.dev/resource-version":"7"},` +
			`"name":"x","resourceVersion":"99"}`
		if namespace, _ := c.key.Split(); namespace == "" {
			name = "eu:x"
		}
		metaWant = strings.Replace(metaWant, `"name":"x"`, `"name":"`+name+`"`, 1)
		out := appendForFleet(nil, []byte(strings.Replace(c.obj, "M", meta, 1)), "eu", c.key, "99",
			shapeOf(schema.GroupKind{Group: c.group, Kind: c.kind}))
		sameJSON(t, c.obj, string(out), strings.Replace(c.want, "M", metaWant, 1))
	}
}

func TestOwnersAndNamespacesAtFleetHaveFleetNames(t *testing.T) {
	const marks = `"annotations":{"mirador.dev/cluster":"eu","mirador.dev/resource-version":"7"}`
	for _, c := range []struct {
		kind      schema.GroupKind
		key       object.Key
		obj, want string
	}{
		{namespaceKind, "web", `{"metadata":{"name":"web","resourceVersion":"7"}}`,
			`{"metadata":{` + marks + `,"name":"eu.web","resourceVersion":"99"}}`},
		{schema.GroupKind{Group: "example.com", Kind: "Namespace"}, "web",
			`{"metadata":{"name":"web","resourceVersion":"7"}}`,
			`{"metadata":{` + marks + `,"name":"eu:web","resourceVersion":"99"}}`},
		{schema.GroupKind{Kind: "Pod"}, "web/a",
			`{"metadata":{"name":"a","namespace":"web","resourceVersion":"7","ownerReferences":[{"apiVersion":"apps/v1",` +
				`"kind":"ReplicaSet","name":"r"}, {"apiVersion":"v1","kind":"Node","name":"n1"},` +
				`{"apiVersion":"example.com/v1","kind":"Widget","name":"w"},5]},"spec":{"nodeName":"n1"}}`,
			`{"metadata":{` + marks + `,"name":"a","namespace":"eu.web","resourceVersion":"99",` +
				`"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r"},{"apiVersion":"v1","kind":"Node",` +
				`"name":"eu:n1"},{"apiVersion":"example.com/v1","kind":"Widget","name":"eu:w"},5]},"spec":{"nodeName":"eu:n1"}}`},
		{schema.GroupKind{Group: "example.com", Kind: "Gadget"}, "a",
			`{"metadata":{"name":"a","resourceVersion":"7","ownerReferences":[{"kind":"Namespace","name":"web"},` +
				`{"kind":"Other","name":"o"}]}}`,
			`{"metadata":{` + marks + `,"name":"eu:a","resourceVersion":"99","ownerReferences":[{"kind":"Namespace",` +
				`"name":"eu.web"},{"kind":"Other","name":"eu:o"}]}}`},
	} {
		sameJSON(t, c.obj, string(appendForFleet(nil, []byte(c.obj), "eu", c.key, "99", shapeOf(c.kind))), c.want)
	}
}

func sameJSON(t *testing.T, of, out, text string) {
	t.Helper()
	var got, want any
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%s became %s: %v", of, out, err)
	}
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: -want +got\n%s", of, d)
	}
}

// Valid JSON from a cluster must stay valid.
func FuzzPodNodes(f *testing.F) {
	for _, seed := range []string{`{"metadata":{},"spec":{"nodeName":"n1"},"status":{"nominatedNodeName":"n2"}}`,
		`{"metadata":{},"spec":{"a":{"nodeName":"n1"},"status":{}}}`,
		`{"metadata":{"ownerReferences":[{"name":"a"},[]]},"spec":{"nodeSelector":{"nodeName":"x"},"nodeName":"n1"}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		if out := appendForFleet(nil, []byte(text), "eu", "web/a", "9",
			shapeOf(schema.GroupKind{Kind: "Pod"})); !json.Valid(out) {
			t.Errorf("%s became %s", text, out)
		}
	})
}

func BenchmarkPodForFleet(b *testing.B) {
	var containers []string
	for i := range 4 {
		containers = append(containers,
			fmt.Sprintf(`{"name":"c%d","image":"example.com/%d:1","env":[%s{"name":"last","value":"x"}]}`, i, i,
				strings.Repeat(`{"name":"VARIABLE","value":"some value of it"},`, 30)))
	}
	pod := []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"web","uid":"u",` +
		`"resourceVersion":"7","labels":{"app":"web"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet",` +
		`"name":"r","uid":"u2"}]},"spec":{"containers":[` +
		strings.Join(containers,
			",") + `],"restartPolicy":"Always","nodeName":"node-1","securityContext":{},` +
		`"schedulerName":"default-scheduler","tolerations":[{"key":"node.kubernetes.io/not-ready",` +
		`"operator":"Exists","effect":"NoExecute","tolerationSeconds":300}]},"status":{"phase":"Running","conditions":[` +
		strings.Repeat(`{"type":"Ready","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"},`,
			20) + `{"type":"X"}]}}`)
	for name, shape := range map[string]*fleetShape{
		"searched": shapeOf(schema.GroupKind{Kind: "Pod"}),
		"walked": {kind: schema.GroupKind{Kind: "Other"}, references: builtinReferences()[schema.GroupKind{Kind: "Pod"}],
			clusterScoped: shapeOf(namespaceKind).clusterScoped},
		"name only": {kind: schema.GroupKind{Kind: "Other"}, clusterScoped: shapeOf(namespaceKind).clusterScoped},
	} {
		b.Run(name, func(b *testing.B) {
			var dst []byte
			b.SetBytes(int64(len(pod)))
			b.ReportAllocs()
			for b.Loop() {
				dst = appendForFleet(dst[:0], pod, "eu", "web/a", "99", shape)
			}
		})
	}
}
