package cli

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/mirador-k8s/mirador/dev/testcluster"
)

// contexts returns a kubeconfig whose contexts all lead to the test's cluster, and makes sure that no daemon of this
// machine is used.
func contexts(t *testing.T, c *testcluster.Cluster, names ...string) string {
	t.Helper()
	t.Setenv("MIRADOR_SERVER", "")
	t.Setenv("MIRADOR_TOKEN_FILE", "")
	cfg, err := clientcmd.LoadFromFile(c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := api.MinifyConfig(cfg); err != nil {
		t.Fatal(err)
	}
	if err := api.FlattenConfig(cfg); err != nil {
		t.Fatal(err)
	}
	only := cfg.Contexts[cfg.CurrentContext]
	cfg.Contexts = map[string]*api.Context{}
	for _, n := range names {
		cfg.Contexts[n] = only.DeepCopy()
	}
	cfg.CurrentContext = names[0]
	path := filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*cfg, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func configMap(namespace, name, color string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s, labels: {color: "+
		"%s}}\ndata: {color: %s}\n", name, namespace, color, color)
}

var age = regexp.MustCompile(`( +)[0-9]+[smh][0-9smh]*\n`)

// ageless replaces the ages of objects.
func ageless(s string) string { return age.ReplaceAllString(s, "   AGE\n") }

func TestWritesAndReadsOfAClusterWithoutADaemon(t *testing.T) {
	c := testcluster.Start(t, testcluster.WithoutControllers())
	ns := c.Namespace(t)
	kube := contexts(t, c, "eu")
	at := []string{"--kubeconfig", kube, "-n", ns}
	with := func(args ...string) []string { return append(args, at...) }

	out := ok(t, configMap(ns, "a", "red")+configMap(ns, "b", "blue"), with("create", "-f", "-")...)
	if out != "configmap/a created\nconfigmap/b created\n" {
		t.Errorf("create said %q", out)
	}
	if got := ageless(ok(t, "", with("get", "cm", "--sort-by",
		"metadata.name")...)); got != "NAME   DATA   AGE\na      1   AGE\nb      1   AGE\n" {
		t.Errorf("get showed\n%s", got)
	}
	for _, q := range []struct {
		want string
		args []string
	}{
		{"configmap/a\nconfigmap/b\n", []string{"get", "configmaps", "-o", "name"}},
		{"configmap/b\n", []string{"get", "configmap", "-o", "name", "-l", "color=blue"}},
		{"configmap/a\n", []string{"get", "configmaps", "-o", "name", "--where", "object.data.color == 'red'"}},
		{"configmap/b\n", []string{"get", "configmaps.v1.", "-o", "name", "--field-selector", "data.color=blue"}},
		{"configmap/b\nconfigmap/a\n", []string{"get", "cm", "b", "a", "-o", "name", "--sort-by", "data.color"}},
		{"red", []string{"get", "cm/a", "-o", "jsonpath={.data.color}"}},
		{"configmap/a\n", []string{"get", "cm/a", "-o", "name"}},
		{"configmap/a\nconfigmap/b\n", []string{"get", "cm,serviceaccounts", "-o", "name"}},
		{"a;b;", []string{"get", "cm", "-o", "go-template={{range .items}}{{.metadata.name}};{{end}}"}},
		{"COLOR\nred\nblue\n", []string{"get", "cm", "-o", "custom-columns=COLOR:.data.color"}},
		{"", []string{"get", "cm", "none", "--ignore-not-found"}},
		{"RESOURCE          COUNT\nconfigmaps        2\nserviceaccounts   0\n", []string{"count", "cm,sa"}},
		{"2\n", []string{"count", "cm"}},
		{"1\n", []string{"count", "cm", "--where", "object.data.color == 'blue'"}},
	} {
		if got := ok(t, "", with(q.args...)...); got != q.want {
			t.Errorf("mirador %q printed %q, want %q", q.args, got, q.want)
		}
	}
	fails(t, exitNotFound, `"none"`, with("get", "cm", "none")...)
	if s := fails(t, exitNotFound, `"none"`, with("get", "cm", "a", "none", "-o", "name")...); s.out != "configmap/a\n" {
		t.Errorf("the existing object was not shown: %q", s.out)
	}
	fails(t, exitFailed, "api-resources", with("get", "nonsense")...)
	if s := fails(t, exitFailed, "expression", with("get", "cm", "--where", "1 +")...); !strings.Contains(s.err.Error(),
		`"1 +" is wrong at column 4`) {
		t.Errorf("the error does not name the missing object: %v", s.err)
	}
	if s := run(t, "", with("get", "cm", "-l", "color=green")...); s.code != 0 || s.out != "" ||
		!strings.Contains(s.errs, "no configmaps found in namespace "+ns) {
		t.Errorf("nothing found: %+v", s)
	}
	if s := run(t, "", with("get", "cm", "--limit", "1", "-o", "name")...); s.out != "configmap/a\n" ||
		!strings.Contains(s.errs, "there are more (1)") {
		t.Errorf("limited: %+v", s)
	}
	changes(t, ns, with)
}

// changes is the second half of the test: it changes the objects.
func changes(t *testing.T, ns string, with func(...string) []string) {
	if got := ok(t, "", with("patch", "cm", "a", "-p", "data: {color: green}")...); got != "configmap/a patched\n" {
		t.Errorf("patch said %q", got)
	}
	if got := ok(t, "", with("patch", "cm/a", "--type", "json", "-p",
		`[{"op":"add","path":"/data/size","value":"2"}]`)...); got != "configmap/a patched\n" {
		t.Errorf("patch said %q", got)
	}
	if got := ok(t, "", with("get", "cm", "a", "-o", "jsonpath={.data.color}{.data.size}")...); got != "green2" {
		t.Errorf("after the patches: %q", got)
	}
	fails(t, exitNotFound, "not found", with("patch", "cm", "none", "-p", "{}")...)
	if got := ok(t, configMap(ns, "a", "black"), with("replace", "-f", "-")...); got != "configmap/a replaced\n" {
		t.Errorf("replace said %q", got)
	}
	if got := ok(t, "", with("get", "cm", "a", "-o", "jsonpath={.data}")...); got != `{"color":"black"}` {
		t.Errorf("after replace: %q", got)
	}
	if got := ok(t, configMap(ns, "c", "white"), with("apply", "-f", "-")...); got != "configmap/c applied\n" {
		t.Errorf("apply said %q", got)
	}
	if got := ok(t, "", with("get", "cm", "c", "-o", "jsonpath={.metadata.managedFields[*].manager}",
		"--show-managed-fields")...); got != fieldManager {
		t.Errorf("the field manager is %q", got)
	}
	// b was created, not applied, so another field manager owns its color.
	s := run(t, configMap(ns, "b", "pink"), with("apply", "-f", "-")...)
	if s.code != exitFailed || !strings.Contains(s.err.Error(), "--force-conflicts") {
		t.Errorf("a conflict: %+v", s)
	}
	ok(t, configMap(ns, "b", "pink"), with("apply", "-f", "-", "--force-conflicts")...)
	ok(t, configMap(ns, "dry", "x"), with("create", "-f", "-", "--dry-run")...)

	s = run(t, configMap(ns, "a", "again")+"---\nkind: Nothing\n"+configMap(ns, "d", "new")+
		configMap("elsewhere", "e", "x"), with("create", "-f", "-")...)
	if s.code != exitFailed || s.out != "configmap/d created\n" ||
		!strings.Contains(s.err.Error(), "3 of 4 failed; the first: configmap/a") || strings.Count(s.errs, "failed:") != 3 {
		t.Errorf("some fail: %+v", s)
	}
	if got := ok(t, "", with("delete", "cm", "a", "b")...); got != "configmap/a deleted\nconfigmap/b deleted\n" {
		t.Errorf("delete said %q", got)
	}
	fails(t, exitNotFound, "configmap/a", with("delete", "cm", "a")...)
	selected(t, ns, with)
	ok(t, configMap(ns, "a", "x")+configMap(ns, "c", "x"), with("delete", "-f", "-", "--ignore-not-found")...)
	if got := ok(t, "", with("get", "cm", "-o", "name")...); got != "configmap/d\n" {
		t.Errorf("the remaining objects are %q", got)
	}
}

// selected deletes by selectors.
func selected(t *testing.T, ns string, with func(...string) []string) {
	ok(t, configMap(ns, "s1", "gold")+configMap(ns, "s2", "gold")+configMap(ns, "s3", "tin"),
		with("create", "-f", "-")...)
	if got := ok(t, "", with("delete", "cm,secrets", "-l", "color=gold",
		"--dry-run")...); got != "configmap/s1 deleted (dry run)\nconfigmap/s2 deleted (dry run)\n" {
		t.Errorf("a dry run said %q", got)
	}
	if got := ok(t, "",
		with("delete", "cm", "-l", "color=gold")...); got != "configmap/s1 deleted\nconfigmap/s2 deleted\n" {
		t.Errorf("delete -l said %q", got)
	}
	if s := run(t, "", with("delete", "cm", "-l", "color=gold")...); s.code != 0 || s.out != "" ||
		!strings.Contains(s.errs, "nothing deleted") {
		t.Errorf("nothing to delete: %+v", s)
	}
	if got := ok(t, "", with("delete", "cm", "--field-selector",
		"metadata.name=s3")...); got != "configmap/s3 deleted\n" {
		t.Errorf("delete --field-selector said %q", got)
	}
	ok(t, configMap(ns, "s4", "tin"), with("create", "-f", "-")...)
	if got := ok(t, "", with("delete", "cm/s4")...); got != "configmap/s4 deleted\n" {
		t.Errorf("delete cm/s4 said %q", got)
	}
}

const widget = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.cli.example.com}
spec:
  group: cli.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList, shortNames: [wg]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Hue, type: string, jsonPath: .spec.hue, priority: 1}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: cli.example.com/v1
kind: Widget
metadata: {name: w}
spec: {size: 3, hue: red}
`

func TestDefinitionAndItsObjectsAreAppliedTogether(t *testing.T) {
	c := testcluster.Start(t, testcluster.WithoutControllers())
	ns := c.Namespace(t)
	at := []string{"--kubeconfig", contexts(t, c, "eu"), "-n", ns}
	with := func(args ...string) []string { return append(args, at...) }
	want := "customresourcedefinition.apiextensions.k8s.io/widgets.cli.example.com applied\nwidget.cli.example.com/w " +
		"applied\n"
	if got := ok(t, widget, with("apply", "-f", "-")...); got != want {
		t.Errorf("apply said %q", got)
	}
	if got := ok(t, "", with("get", "wg")...); got != "NAME   SIZE\nw      3\n" {
		t.Errorf("get showed\n%s", got)
	}
	if got := ok(t, "", with("get", "widgets.cli.example.com", "-o",
		"wide")...); got != "NAME   SIZE   HUE\nw      3      red\n" {
		t.Errorf("get showed\n%s", got)
	}
	if got := ok(t, "", "api-resources", "--kubeconfig", at[1]); !strings.Contains(got, "widgets") ||
		!strings.Contains(got, "cli.example.com/v1") {
		t.Errorf("api-resources shows no widgets:\n%s", got)
	}
	ok(t, "", with("delete", "wg", "w")...)
	ok(t, "", with("delete", "crd", "widgets.cli.example.com")...)
}

func TestSeveralContextsAreReadWithoutADaemon(t *testing.T) {
	c := testcluster.Start(t, testcluster.WithoutControllers())
	ns := c.Namespace(t)
	at := []string{"--kubeconfig", contexts(t, c, "eu", "us"), "-n", ns}
	ok(t, configMap(ns, "a", "red"), append([]string{"create", "-f", "-", "--cluster", "us"}, at...)...)
	read := append(at, "--context", "eu", "--context", "us")
	if got := ageless(ok(t, "",
		append([]string{"get", "cm"},
			read...)...)); got != "CLUSTER   NAME   DATA   AGE\neu        a      1   AGE\nus        a      1   AGE\n" {
		t.Errorf("get showed\n%s", got)
	}
	if diff := cmp.Diff("CLUSTER   COUNT\neu        1\nus        1\n(all)     2\n",
		ok(t, "", append([]string{"count", "cm"}, read...)...)); diff != "" {
		t.Error(diff)
	}
	if got := ok(t, "", append([]string{"count", "cm", "--cluster", "us"}, read...)...); got != "1\n" {
		t.Errorf("one of them has %q", got)
	}
	if got := ok(t, "", append([]string{"get", "namespaces", "us." + ns, "-o", "name"},
		read...)...); got != "namespace/us."+ns+"\n" {
		t.Errorf("a name in a cluster is %q", got)
	}
}

func TestLongSyncReportsItsProgress(t *testing.T) {
	c := testcluster.Start(t, testcluster.WithoutControllers())
	kube := contexts(t, c, "eu")
	before := quietTime
	defer func() { quietTime = before }()
	for wait, said := range map[time.Duration]bool{0: true, time.Hour: false} {
		quietTime = wait
		s := run(t, "", "get", "namespaces", "default", "--kubeconfig", kube)
		if s.err != nil || strings.Contains(s.errs, "reading cluster eu: ") != said {
			t.Errorf("quiet for %v: %+v", wait, s)
		}
	}
}

func TestInterruptDuringTheSyncEndsTheCommandAtOnce(t *testing.T) {
	c := testcluster.Start(t, testcluster.WithoutControllers())
	kube := contexts(t, c, "eu")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for args, code := range map[string]int{"get": exitFailed, "watch": 0} {
		began := time.Now()
		err := runIn(ctx, strings.NewReader(""), newScreen(), newScreen(), args, "namespaces", "--kubeconfig", kube)
		if ExitCode(err) != code || time.Since(began) > 20*time.Second {
			t.Errorf("%s: %v after %v", args, err, time.Since(began))
		}
	}
}

func TestWatchShowsChangesAndEndsWithoutAnError(t *testing.T) {
	c := testcluster.Start(t, testcluster.WithoutControllers())
	ns := c.Namespace(t)
	at := []string{"--kubeconfig", contexts(t, c, "eu"), "-n", ns}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, ended := newScreen(), make(chan error, 1)
	ok(t, configMap(ns, "a", "red"), append([]string{"create", "-f", "-"}, at...)...)
	go func() {
		ended <- runIn(ctx, strings.NewReader(""), out, newScreen(),
			append([]string{"watch", "cm", "-l", "color=red", "--output-watch-events"}, at...)...)
	}()
	out.await(t, "ADDED")
	ok(t, "", append([]string{"patch", "cm", "a", "-p", "data: {x: z}"}, at...)...)
	out.await(t, "MODIFIED")
	ok(t, "", append([]string{"patch", "cm", "a", "-p", "metadata: {labels: {color: blue}}"}, at...)...)
	out.await(t, "DELETED") // it does not match the selector any more
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the watch ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the watch did not end")
	}
}

func TestUnreachableServerHasItsExitCode(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unused := l.Addr().String()
	l.Close()
	t.Setenv("MIRADOR_SERVER", "http://"+unused)
	kube := write(t, filepath.Join(t.TempDir(), "config"),
		"apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{name: x, cluster: {server: 'http://"+unused+
			"'}}]\ncontexts: [{name: x, context: {cluster: x}}]\n")
	file := write(t, filepath.Join(t.TempDir(), "a.yaml"), configMap("default", "a", "x"))
	for _, args := range [][]string{
		{"get", "pods"}, {"watch", "pods"}, {"count", "pods"}, {"clusters"}, {"status"}, {"status", "--watch"},
		{"api-resources"}, {"clusters", "leave", "x"},
		{"get", "pods", "--kubeconfig", kube}, {"api-resources", "--kubeconfig", kube},
		{"create", "-f", file, "--kubeconfig", kube},
		{"delete", "pod", "x", "--kubeconfig", kube}, {"patch", "pod", "x", "-p", "{}", "--kubeconfig", kube},
	} {
		if s := run(t, "", args...); s.code != exitUnreachable {
			t.Errorf("mirador %q: exit code %d (%v), want %d", args, s.code, s.err, exitUnreachable)
		}
	}
}
