package access

import (
	"context"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

const accessFile = `
apiVersion: mirador.dev/v1alpha1
kind: AccessConfiguration
roles:
- name: pod-reader
  rules:
  - apiGroups: [""]
    resources: [pods]
    verbs: [get, list, watch]
bindings:
- {role: reader, groups: ["system:authenticated"]}
- {role: operator, users: [olga]}
- {role: administrator, groups: [platform]}
- {role: pod-reader, users: [ann], clusters: [eu], namespaces: [web]}
- {role: pod-reader, users: [bob]}
clusters:
- {name: us, userPrefix: "corp:", groupPrefix: "corp:", users: {ann: ann.smith}}
- {name: open, authorization: none}
`

func info(name string, groups ...string) *user.DefaultInfo {
	return &user.DefaultInfo{Name: name, Groups: append(groups, user.AllAuthenticated)}
}

func newAccess(t *testing.T, mode Mode, file string) *Access {
	t.Helper()
	c, err := ParseConfig([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	fl, err := fleet.New(fleet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(fl, Options{Mode: mode, Config: c})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestRightsToTheDaemonItself(t *testing.T) {
	a := newAccess(t, ModeRBAC, accessFile)
	clusters := func(verb string) Attributes {
		return Attributes{ResourceRequest: true, Verb: verb, APIGroup: "mirador.dev", Resource: "clusters"}
	}
	metrics := Attributes{Verb: "get", Path: "/metrics"}
	for _, c := range []struct {
		who  *user.DefaultInfo
		want Attributes
		ok   bool
	}{
		{info("carl"), clusters("list"), true}, {info("carl"), clusters("create"), false},
		{info("carl"), clusters("delete"), false}, {info("carl"), metrics, false},
		{info("olga"), clusters("create"), true}, {info("olga"), metrics, true},
		{info("ann"), clusters("create"), false}, // bindings of clusters do not count
		{info("pat", "platform"), clusters("delete"), true}, {info("root", Administrators), metrics, true},
		{&user.DefaultInfo{Name: "carl"}, clusters("list"), false},
	} {
		d, err := a.Decide(context.Background(), c.who, Daemon, c.want)
		if err != nil || d.Allowed != c.ok {
			t.Errorf("%s of %s: %+v %v", c.want.Verb, c.who.Name, d, err)
		}
	}
}

func TestModes(t *testing.T) {
	list := Attributes{ResourceRequest: true, Verb: "list", Resource: "pods", Namespace: "web"}
	for _, c := range []struct {
		mode    Mode
		user    string
		cluster string
		want    string // allowed, refused or an error
	}{
		{ModeRules, "ann", "eu", "allowed"}, {ModeRules, "ann", "us", "refused"}, {ModeRules, "bob", "eu", "allowed"},
		{ModeRules, "carl", "eu", "refused"}, {ModeRules, "carl", "open", "allowed"}, {ModeRBAC, "ann", "open", "allowed"},
		{ModeRBAC, "ann", "eu", `the rights in cluster "eu" are not known yet`}, {ModeNone, "carl", "eu", "allowed"},
	} {
		a := newAccess(t, c.mode, accessFile)
		d, err := a.Decide(context.Background(), info(c.user), c.cluster, list)
		got := map[bool]string{true: "allowed", false: "refused"}[d.Allowed]
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s in %s by %s: %s, want %s", c.user, c.cluster, c.mode, got, c.want)
		}
		see, serr := a.Visible(context.Background(), info(c.user), c.cluster, "list",
			schema.GroupResource{Resource: "pods"}, true)
		if (serr == nil) != (err == nil) || err == nil && (see == nil || see.Contains("web/a")) != d.Allowed {
			t.Errorf("%s in %s by %s: sees %+v %v", c.user, c.cluster, c.mode, see, serr)
		}
	}
}

func TestNamesInAClusterArePrefixedOrMapped(t *testing.T) {
	p := newAccess(t, ModeRBAC, accessFile).policy.Load()
	fromEU := map[string][]string{HomeCluster: {"eu"}}
	for _, c := range []struct {
		cluster string
		u       *user.DefaultInfo
		name    string
		groups  string
	}{
		{"eu", info("ann", "dev"), "ann", "dev system:authenticated"},
		{"us", info("ann", "dev"), "ann.smith", "corp:dev system:authenticated"},
		{"us", info("bob", "dev", Administrators), "corp:bob", "corp:dev system:authenticated"},
		{"us", info("system:admin", "system:masters"), "corp:system:admin", "corp:system:masters system:authenticated"},
		{"eu", &user.DefaultInfo{Name: "system:serviceaccount:a:b",
			Groups: []string{"system:serviceaccounts"}, Extra: fromEU},
			"system:serviceaccount:a:b", "system:serviceaccounts"},
		{"us", &user.DefaultInfo{Name: "system:serviceaccount:a:b", Extra: fromEU,
			Groups: []string{"system:serviceaccounts", "system:masters", "system:authenticated", "dev"}},
			"mirador:eu:system:serviceaccount:a:b", "system:authenticated corp:dev"},
		{"us", &user.DefaultInfo{Name: "ann", Extra: fromEU}, "ann.smith", ""},
	} {
		got := p.inCluster(c.cluster, c.u)
		if got.GetName() != c.name || strings.Join(got.GetGroups(), " ") != c.groups {
			t.Errorf("%+v in %s is %+v", c.u, c.cluster, got)
		}
	}
}

func TestBadAccessFilesAreRefused(t *testing.T) {
	head := "apiVersion: mirador.dev/v1alpha1\nkind: AccessConfiguration\n"
	mixed := "roles: [{name: x, rules: [{nonResourceURLs: [/a], resources: [p], verbs: [get]}]}]"
	for file, want := range map[string]string{
		"":                                  "must begin with apiVersion: mirador.dev/v1alpha1",
		head + "bindngs: []":                `AccessConfiguration of mirador.dev/v1alpha1: there is no field "bindngs"`,
		head + "bindings: [{user: [a]}]":    `there is no field "user"`,
		head + "bindings: reader":           "the field bindings must not be of type string",
		head + "bindings: [{role: [a]}]":    "the field bindings.role must not be of type array",
		head + "bindings: []\nbindings: []": `key "bindings" already set`,
		"- a":                               "it must be a mapping, and is of type array",
		"apiVersion: v1\nkind: Config\nclusters: []": "it must begin with apiVersion: mirador.dev/v1alpha1 and kind: " +
			"AccessConfiguration",
		head + "bindings: [{role: redaer, users: [a]}]":                         `bindings[0]: there is no role "redaer"`,
		head + "roles: [{name: empty}]\nbindings: [{role: empty}]":              "neither users nor groups",
		head + "bindings: [{role: reader}]":                                     "neither users nor groups",
		head + "bindings: [{role: administrator, users: [a], clusters: [eu]}]":  "leave clusters and namespaces out",
		head + "roles: [{name: reader, rules: []}]":                             `the name "reader"`,
		head + "roles: [{name: x, rules: [{resources: [pods]}]}]":               "roles: x: rules[0]: verbs are missing",
		head + "roles: [{name: x, rules: [{resources: [pods], verbs: [get]}]}]": "apiGroups are missing",
		head + mixed: "write two rules",
		head + "clusters: [{name: eu, authorization: rabc}]": `clusters[0]: authorization: "rabc"`,
		head + "clusters: [{name: eu}, {name: eu}]":          "clusters[1]",
		"kind: [": "line",
		head + "bindings: [{role: reader, groups: ['system:unauthenticated']}]":        "only nonResourceURLs",
		head + "bindings: [{role: administrator, groups: ['system:unauthenticated']}]": "only nonResourceURLs",
		head + "bindings: [{role: operator, users: ['system:anonymous']}]":             "only nonResourceURLs",
	} {
		if _, err := ParseConfig([]byte(file)); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "json") || strings.Contains(err.Error(), "access.") {
			t.Errorf("%q: %v", file, err)
		}
	}
}

// The example of docs/security.md for authorization rules has what kubectl needs.
func TestDocumentedRulesAllowDiscoveryAndObjects(t *testing.T) {
	b, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(b), "With `--authorization rules`")
	_, after, _ = strings.Cut(after, "```yaml\n")
	file, _, _ := strings.Cut(after, "```")
	a := newAccess(t, ModeRules, file)
	list := func(namespace string) Attributes {
		return Attributes{ResourceRequest: true, Verb: "list", Resource: "pods", Namespace: namespace}
	}
	for _, c := range []struct {
		cluster string
		want    Attributes
		ok      bool
	}{
		{"eu", Attributes{Verb: "get", Path: "/api"}, true}, {"eu", Attributes{Verb: "get", Path: "/api/v1"}, true},
		{"eu", Attributes{Verb: "get", Path: "/apis"}, true}, {"us", Attributes{Verb: "get", Path: "/apis/apps/v1"}, true},
		{"eu", Attributes{Verb: "get", Path: "/version"}, true},
		{"eu", Attributes{Verb: "get", Path: "/openapi/v3"}, true},
		{"eu", Attributes{Verb: "get", Path: "/metrics"}, false},
		{"eu", list("shop"), true}, {"eu", list("lab"), false}, {"us", list("shop"), false},
	} {
		d, err := a.Decide(context.Background(), info("ann", "developers"), c.cluster, c.want)
		if err != nil || d.Allowed != c.ok {
			t.Errorf("%+v in %s: %+v %v", c.want, c.cluster, d, err)
		}
	}
}
