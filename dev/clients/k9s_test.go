package clients

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// k9sConfig removes what differs between servers, such as the name of the context, and what k9s would ask the Internet.
const k9sConfig = `k9s:
  refreshRate: 2
  skipLatestRevCheck: true
  ui: {headless: true, logoless: true, crumbsless: true, splashless: true, noIcons: true}
`

// k9s starts k9s in a terminal.
func (w *world) k9s(t *testing.T, name, kubeconfig string, args ...string) *terminal {
	t.Helper()
	folder := t.TempDir()
	check(t, os.WriteFile(filepath.Join(folder, "config.yaml"), []byte(k9sConfig), 0o600))
	cmd := exec.Command(program("k9s"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+folder, "K9S_CONFIG_DIR="+folder,
		"K9S_LOGS_DIR="+folder)
	return openTerminal(t, "k9s on "+name, cmd)
}

// view returns what the frame on k9s's screen contains, without ages and the width of columns. Its first line is the
// title.
func view(lines []string) []string {
	first := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "┌") })
	if first < 0 {
		return nil
	}
	var out []string
	for _, l := range lines[first:] {
		if strings.HasPrefix(l, "└") {
			return out
		}
		l = strings.Trim(strings.TrimSuffix(strings.TrimPrefix(l, "│"), "│"), "┌┐─ ")
		if l = spaces.ReplaceAllString(ages.ReplaceAllString(l, "AGE"), " "); l != "" {
			out = append(out, l)
		}
	}
	return nil // the frame is not complete
}

// step is what a user types, and what the screen shows then.
type step struct {
	keys  string
	shows []string
}

// k9sSteps are the steps in a cluster. After an escape, k9s must have shown the screen before the next key.
var k9sSteps = []step{
	{"", []string{"pods(all)[4]", "NAMESPACE↑ NAME PF READY STATUS RESTARTS IP NODE AGE", "db store-0", "web cart-"}},
	{"/cart" + enter, []string{"pods(all)[1] </cart>", "web cart-"}},
	{"d", []string{"Describe(web/cart-", "Node: node-", "Normal Scheduled"}},
	{escape, []string{"pods(all)[1] </cart>"}},
	{"y", []string{"YAML(web/cart-", "kind: Pod", "namespace: web"}},
	{escape, []string{"pods(all)[1] </cart>"}},
	{enter, []string{"containers(web/cart-", "example.com/cart:1"}},
	{":deploy" + enter, []string{"deployments(all)[2]", "web cart 1/1", "web shop 2/2"}},
	{":ns" + enter, []string{"namespaces(all)[7]", "web Active AGE"}},
	{":nodes" + enter, []string{"nodes(all)[5]", "node-4 Ready"}},
	{":xray deploy" + enter, []string{"Xray-Deployments(all)[3]", "pod/cart-", "configmap/settings"}},
	{":statefulsets" + enter, []string{"statefulsets(all)[1]", "db store 1/1"}},
	{":svc" + enter, []string{"services(all)[2]", "web shop ClusterIP"}},
	{":configmaps" + enter, []string{"configmaps(all)", "web settings 1 AGE"}},
	{":rolebindings" + enter, []string{"rolebindings(all)", "web pods"}},
	{":events" + enter, []string{"events(all)", "deployment/shop", "RegisteredNode"}},
	{":pods db" + enter, []string{"pods(db)[1]", "store-0"}},
	{":crd" + enter, []string{"customresourcedefinitions(all)[0]"}},
}

// k9sStepsOfJane are the steps of a user with few rights.
var k9sStepsOfJane = []step{
	{"", []string{"pods(web)[3]", "cart-", "shop-"}},
	{"/cart" + enter, []string{"pods(web)[1] </cart>", "cart-"}},
	{"d", []string{"Describe(web/cart-", "Normal Scheduled"}},
	{escape, []string{"pods(web)[1] </cart>"}},
	{":deploy" + enter, []string{"pods(web)"}}, // which remains behind the refusal
}

// sameScreens types the steps into k9s on the cluster and on its mirror, and compares the screens.
func sameScreens(t *testing.T, real, ours *terminal, steps []step) {
	t.Helper()
	for _, s := range steps {
		real.press(s.keys)
		ours.press(s.keys)
		want := real.awaitView(s.shows...)
		ours.await("the same as the cluster after "+fmt.Sprintf("%q:\n%s\n", s.keys, strings.Join(want, "\n")),
			func(lines []string) bool {
				want = view(real.lines()) // which may still change, such as the number of an event
				return slices.Equal(view(lines), want)
			})
	}
}

// awaitView waits until the view contains texts, and returns it.
func (x *terminal) awaitView(texts ...string) []string {
	x.t.Helper()
	return view(x.await(strings.Join(texts, " and "), func(lines []string) bool {
		all := strings.Join(view(lines), "\n")
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(all, text) })
	}))
}

func k9sShowsTheSameOfTheMirrorAndTheCluster(t *testing.T, w *world) {
	sameScreens(t, w.k9s(t, "the cluster", w.realKubeconfig(t, admin), "-A", "-c", "pods"),
		w.k9s(t, "/clusters/eu", w.kubeconfig(t, admin, "/clusters/eu"), "-A", "-c", "pods"), k9sSteps)
}

func k9sOfAUserWithFewRightsShowsTheSame(t *testing.T, w *world) {
	real := w.k9s(t, "the cluster", w.realKubeconfig(t, jane), "-n", "web", "-c", "pods")
	ours := w.k9s(t, "/clusters/eu", w.kubeconfig(t, jane, "/clusters/eu"), "-n", "web", "-c", "pods")
	sameScreens(t, real, ours, k9sStepsOfJane)
	const refusal = `(list) access denied for user on resource "":apps/v1/deployments`
	real.awaitText(refusal)
	ours.awaitText(refusal)
}

// node is a node's name in the clusters.
var node = regexp.MustCompile(`\bnode-\d\b`)

// inFleet returns a row of a cluster's table as k9s shows it at /fleet. The row begins with a namespace, or with the
// name of a node.
func inFleet(cluster, row string) string {
	if !node.MatchString(strings.Fields(row)[0]) {
		row = cluster + "." + row
	}
	return node.ReplaceAllStringFunc(row, func(name string) string { return cluster + ":" + name })
}

func k9sAtFleetShowsTheRowsOfAllClusters(t *testing.T, w *world) {
	eu := w.k9s(t, "cluster eu", w.eu.Kubeconfig(), "-A", "-c", "pods")
	us := w.k9s(t, "cluster us", w.us.Kubeconfig(), "-A", "-c", "pods")
	fleet := w.k9s(t, "/fleet", w.kubeconfig(t, admin, "/fleet"), "-A", "-c", "pods")
	for _, s := range []step{
		{"", []string{"pods(all)[4]", "store-0"}},
		{"/cart" + enter, []string{"pods(all)[1] </cart>", "cart-"}},
		{":deploy" + enter, []string{"deployments(all)[2]", "shop"}},
		{":statefulsets" + enter, []string{"statefulsets(all)[1]", "store"}},
		{":svc" + enter, []string{"services(all)[2]", "shop"}},
		{":nodes" + enter, []string{"nodes(all)[5]", "node-4 Ready"}},
	} {
		var want []string
		for cluster, x := range map[string]*terminal{"eu": eu, "us": us} {
			x.press(s.keys)
			table := x.awaitView(s.shows...)
			want = append(want, table[1]) // the names of columns
			for _, row := range table[2:] {
				want = append(want, inFleet(cluster, row))
			}
		}
		slices.Sort(want)
		want = slices.Compact(want)
		fleet.press(s.keys)
		fleet.await("the rows of both clusters after "+fmt.Sprintf("%q:\n%s\n", s.keys, strings.Join(want, "\n")),
			func(lines []string) bool {
				got := view(lines)
				if len(got) == 0 {
					return false
				}
				got = slices.Clone(got[1:])
				slices.Sort(got)
				return slices.Equal(got, want)
			})
	}
	for _, s := range []step{
		{":ns" + enter, []string{"namespaces(all)[13]", "eu.web Active", "us.web Active"}},
		{"/us.web" + enter, []string{"namespaces(all)[1] </us.web>", "us.web Active"}},
		{enter, []string{"pods(us.web)[3]", "us:node-"}},
		{"/cart" + enter, []string{"pods(us.web)[1] </cart>"}},
		{"d", []string{"Describe(us.web/cart-", "Namespace: us.web", "Node: us:node-", "mirador.dev/cluster: us",
			"Normal Scheduled"}},
		{escape, []string{"pods(us.web)[1] </cart>"}},
		{"y", []string{"YAML(us.web/cart-", "namespace: us.web", "nodeName: us:node-"}},
		{escape, []string{"pods(us.web)[1] </cart>"}},
		{":xray deploy us.web" + enter, []string{"namespace/us.web(2)", "pod/cart-", "configmap/settings"}},
		{":pods eu.web" + enter, []string{"pods(eu.web)[3]", "eu:node-"}},
	} {
		fleet.press(s.keys)
		fleet.awaitView(s.shows...)
	}
}

func k9sOfAUserWithFewRightsAtFleetShowsItsPods(t *testing.T, w *world) {
	x := w.k9s(t, "/fleet", w.kubeconfig(t, jane, "/fleet"), "-n", "eu.web", "-c", "pods")
	x.awaitView("pods(eu.web)[3]", "cart-", "shop-")
	x.press(":pods us.web" + enter)
	x.awaitView("pods(us.web)[3]", "us:node-")
	x.press(":deploy" + enter)
	x.awaitText(`(list) access denied for user on resource "":apps/v1/deployments`)
}
