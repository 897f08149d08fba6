package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFlagsDetermineTheRequest(t *testing.T) {
	nodes := &mapping{gvr: pods.gvr.GroupVersion().WithResource("nodes"), singular: "node"}
	deployments := &mapping{gvr: pods.gvr, singular: "deployment", namespaced: true}
	deployments.gvr.Group, deployments.gvr.Resource = "apps", "deployments"
	for _, c := range []struct {
		name  string
		flags selectFlags
		only  string
		of    *mapping
		names []string
		path  string
		query string
	}{
		{"one cluster", selectFlags{clusters: []string{"eu"}}, "", pods, nil,
			"/clusters/eu/api/v1/namespaces/default/pods", ""},
		{"the only cluster", selectFlags{namespace: "web"}, "eu", pods, nil, "/clusters/eu/api/v1/namespaces/web/pods", ""},
		{"one cluster, twice", selectFlags{clusters: []string{"eu", "eu"}, all: true}, "", deployments, nil,
			"/clusters/eu/apis/apps/v1/deployments", ""},
		{"a namespace of every cluster", selectFlags{namespace: "web"}, "", pods, nil,
			"/fleet/api/v1/namespaces/web/pods", ""},
		{"a namespace of a cluster in the fleet", selectFlags{namespace: "eu.web"}, "", pods, nil,
			"/fleet/api/v1/namespaces/eu.web/pods", ""},
		{"some clusters", selectFlags{all: true, clusters: []string{"us", "eu"}}, "", pods, nil,
			"/fleet/api/v1/pods", "clusters=eu,us"},
		{"a name", selectFlags{}, "eu", pods, []string{"a"}, "/clusters/eu/api/v1/namespaces/default/pods",
			"fieldSelector=metadata.name=a"},
		{"names", selectFlags{}, "eu", pods, []string{"a", "b"}, "/clusters/eu/api/v1/namespaces/default/pods",
			`where=(metadata.name == "a" || metadata.name == "b")`},
		{"a name in the fleet", selectFlags{}, "", nodes, []string{"eu:a"}, "/fleet/api/v1/nodes",
			`where=(metadata.name == "eu:a" || metadata.name == cluster + ":eu:a")`},
		{"names in the fleet", selectFlags{}, "", nodes, []string{"a", "b"}, "/fleet/api/v1/nodes",
			`where=(metadata.name == "a" || metadata.name == cluster + ":a" || ` +
				`metadata.name == "b" || metadata.name == cluster + ":b")`},
		{"a name with its cluster in a namespace", selectFlags{}, "", pods, []string{"eu:a"},
			"/fleet/api/v1/namespaces/default/pods",
			`where=(metadata.name == "eu:a" || cluster == "eu" && metadata.name == "a")`},
		{"everything", selectFlags{namespace: "web", labels: "a=b", fields: "c=d", where: "x || y", sortBy: "spec.z"}, "",
			pods, nil, "/fleet/api/v1/namespaces/web/pods",
			`fieldSelector=c=d&labelSelector=a=b&orderBy=spec.z&where=x || y`},
		{"a name in a namespace of every cluster", selectFlags{}, "", pods, []string{"a"},
			"/fleet/api/v1/namespaces/default/pods", "fieldSelector=metadata.name=a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := c.flags.ask(&session{only: c.only, namespace: "default"}, c.of, c.names)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, key := range []string{"clusters", "fieldSelector", "labelSelector", "orderBy", "where"} {
				if v := a.params.Get(key); v != "" {
					if got != "" {
						got += "&"
					}
					got += key + "=" + v
				}
			}
			if a.path != c.path || got != c.query {
				t.Errorf("asks %s ? %s\nwant %s ? %s", a.path, got, c.path, c.query)
			}
		})
	}
}

func TestConflictingFlagsAreAUsageError(t *testing.T) {
	for _, args := range [][]string{
		{"get"},
		{"get", "pods,"},
		{"get", "pods,services/a"},
		{"watch", "pods,services/a"},
		{"get", "pods", "-o", "go-template={{"},
		{"get", "pods", "-o", "custom-columns=NAME"},
		{"get", "pods", "-o", "jsonpath"},
		{"get", "pods", "-o", "json=x"},
		{"get", "pods", "-o", "jsonpath-file=/none"},
		{"get", "pods", "-w", "--limit", "3"},
		{"get", "pods", "a", "-l", "x=y"},
		{"get", "pods", "-A", "-n", "web"},
		{"get", "pods", "a", "-A"},
		{"get", "pods/a", "b"},
		{"get", "pods", "a%b"},
		{"get", "pods", "--limit", "-1"},
		{"get", "pods", "-o", "xml"},
		{"get", "pods", "-o", "jsonpath={"},
		{"get", "pods", "--no-such-flag"},
		{"get", "pods", "--server", "http://127.0.0.1:1", "--context", "x"},
		{"get", "pods", "--server", "ftp://x"},
		{"get", "pods", "--server", "http://user:word@127.0.0.1:1"},
		{"get", "pods", "--server", "http://mirror.example.com", "--token-file", "/none"},
		{"count", "pods", "-o", "name"},
		{"count", "pods", "-o", "wide"},
		{"diff", "-o", "name"},
		{"history", "pods", "-o", "go-template={{.kind}}"},
		{"status", "-o", "custom-columns=A:.a"},
		{"clusters", "-o", "go-template={{.kind}}"},
		{"api-resources", "-o", "custom-columns=A:.a"},
		{"clusters", "surplus"},
		{"status", "eu"},
		{"clusters", "join", "eu"},
		{"clusters", "join", "eu", "--kubeconfig", "/none"},
		{"clusters", "leave"},
		{"status", "--watch", "-o", "json"},
		{"create"},
		{"create", "-f", "/none", "--context", "a", "--cluster", "b"},
		{"patch", "pod", "a"},
		{"patch", "pod", "a", "-p", "{}", "--type", "other"},
		{"patch", "pod", "-p", "{}"},
		{"delete", "pods"},
		{"delete"},
		{"delete", "pods", "a", "-f", "x"},
		{"delete", "-l", "a=b"},
		{"delete", "pods", "a", "-l", "a=b"},
		{"delete", "pods", "--all", "-l", "a=b"},
		{"delete", "pods", "a", "-A"},
		{"delete", "pods", "--all", "-A", "-n", "web"},
	} {
		if s := run(t, "", args...); s.code != exitUsage {
			t.Errorf("mirador %q: exit code %d (%v), want %d", args, s.code, s.err, exitUsage)
		}
	}
}

func TestMissingNamesAreReported(t *testing.T) {
	a := &ask{mapping: pods, names: []string{"a", "eu:b", "c", "d"}}
	got := a.missing([]metadata{
		{Name: "a"}, {Name: "eu:b", Annotations: map[string]string{clusterMark: "eu"}},
		{Name: "eu:c", Annotations: map[string]string{clusterMark: "eu"}},
	})
	if diff := cmp.Diff([]string{"d"}, got); diff != "" {
		t.Error(diff)
	}
}
