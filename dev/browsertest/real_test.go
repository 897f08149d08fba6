package browsertest

import (
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/mirador-k8s/mirador/daemon/disk"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/dev/testcluster"
)

// These tests use a real API server, a fleet that mirrors it, and its server. Each fails on any console error or
// policy violation.

const (
	pickedNamespace = `document.getElementById('pick-namespace')`
	headers         = `[...document.querySelectorAll('[role=columnheader]')].map(c => c.textContent)`
	names           = gridRows + `.map(r => r.children[` + headers + `.indexOf('Name')].textContent)`
)

// pick selects an option as a user does.
func (p *tab) pick(id, value string) {
	p.t.Helper()
	p.until("the choice of "+value, `[...document.getElementById('`+id+`').options].some(o => o.value === '`+value+`')`)
	p.eval(`(() => { const s = document.getElementById('`+id+`'); s.value = '`+value+
		`'; s.dispatchEvent(new Event('change', { bubbles: true })); })()`, new(any))
}

// press presses a button that may move, as those below a busy cluster do.
func (p *tab) press(selector string) {
	p.t.Helper()
	p.eval("document.querySelector('"+selector+"').click()", new(any))
}

// write replaces the text of a field and submits it.
func (p *tab) write(id, text string) {
	p.t.Helper()
	p.eval(`(document.getElementById('`+id+`').value = '')`, new(any))
	p.do(chromedp.SendKeys(chromedp.CSS(`#`+id), text+kb.Enter))
}

func TestRealOverviewShowsEveryPipeline(t *testing.T) {
	d, cluster := startFleet(t)
	ns := place(t, cluster)
	p := openDaemon(t, d, "")
	p.until("both are ready", `[...document.querySelectorAll('.state')].map(s => s.textContent).join() === 'ready,ready'`)
	c, _ := d.fleet.Cluster("eu")
	n := len(c.Resources())
	if n < 40 {
		t.Fatalf("the fleet mirrors %d resources of a cluster", n)
	}
	for _, name := range []string{"eu", "us"} {
		section := `document.querySelector('[aria-labelledby=cluster-` + name + `]')`
		p.until("every resource of "+name+" is a lane or a dot",
			section+`.querySelectorAll('.lane').length + (`+section+`.querySelector('.fold').open ? 0 : `+
				section+`.querySelectorAll('.dots i').length) === `+strconv.Itoa(n))
		p.until("all stream", section+`.querySelector('.pipe-big svg').getAttribute('aria-label').includes('`+
			strconv.Itoa(n)+` of `+strconv.Itoa(n)+` resources streaming')`)
	}
	p.until("the version of the server", `document.querySelector('.pipe-big text').textContent.startsWith('v1.')`)
	p.until("memory", `/MiB/.test(document.querySelector('.tile-memory').textContent)`)

	apply(t, cluster, podYAML(ns, "first", "web"))
	for _, name := range []string{"eu", "us"} {
		p.until("pods are a lane of "+name, lane(name, "pods"))
	}
	p.eval("("+lane("us", "pods")+`).querySelector('a').click()`, new(any))
	p.until("the lane's link shows its objects", names+`.includes('first')`)
	p.same("the cluster is selected", `document.getElementById('pick-cluster').value`, "us")
}

func TestRealObjectsAreFilteredFollowedAndShown(t *testing.T) {
	d, cluster := startFleet(t)
	ns := place(t, cluster)
	apply(t, cluster, podYAML(ns, "web-1", "web")+podYAML(ns, "web-2", "web")+podYAML(ns, "db-1", "db"))
	p := openDaemon(t, d, "#/objects?ns=eu."+ns)
	p.until("the pods", names+`.join() === 'db-1,web-1,web-2'`)
	p.same("columns", headers+`.join()`, "Cluster,Name,Ready,Status,Restarts,Age")
	p.until("it is live", live+` === 'live'`)

	p.write("filter-text", "app in (web)")
	p.until("those with the label", names+`.join() === 'web-1,web-2'`)
	p.until("it is live", live+` === 'live'`)
	apply(t, cluster, podYAML(ns, "web-3", "web")+podYAML(ns, "db-2", "db"))
	p.until("a new one comes by itself", names+`.join() === 'web-1,web-2,web-3'`)
	p.until("the new object is in the feed",
		`[...document.querySelectorAll('.feed-item[data-type=ADDED] .feed-name')].some(n => n.textContent === 'web-3')`)
	cluster.Kubectl(t, "label", "pod", "-n", ns, "web-2", "app=other", "--overwrite")
	p.until("one that leaves the filter goes", names+`.join() === 'web-1,web-3'`)
	cluster.Kubectl(t, "delete", "pod", "-n", ns, "web-3", "--grace-period=0", "--force")
	p.until("a deleted one goes", names+`.join() === 'web-1'`)

	p.pick("filter-kind", "where")
	p.write("filter-text", `metadata.name.startsWith("db-") && status.phase == "Pending"`)
	p.until("the objects that match the CEL expression", names+`.join() === 'db-1,db-2'`)
	p.expect("400")
	p.write("filter-text", `metadata.name ==`)
	p.until("the error of an invalid expression",
		`document.getElementById('filter-error').checkVisibility() &&
			/expression/i.test(document.getElementById('filter-error').textContent)`)
	p.do(chromedp.Click(chromedp.CSS(`#filter-clear`)))
	p.until("everything again", names+`.join() === 'db-1,db-2,web-1,web-2'`)
}

func TestRealDetailIsTheObjectOfTheCluster(t *testing.T) {
	d, cluster := startFleet(t)
	ns := place(t, cluster)
	apply(t, cluster, podYAML(ns, "one", "web"))
	p := openDaemon(t, d, "#/")
	p.until("both are ready", `[...document.querySelectorAll('.state')].map(s => s.textContent).join() === 'ready,ready'`)
	p.eval(`location.hash = '#/objects?cluster=eu&ns=`+ns+`'`, new(any))
	p.until("the row", rowOf("one"))
	p.eval("("+rowOf("one")+`).click()`, new(any))
	p.until("the detail", `document.getElementById('detail-yaml').textContent.startsWith('apiVersion: v1\nkind: Pod\n')`)
	p.do(chromedp.Click(chromedp.CSS(`#detail-managed`)))
	p.until("managed fields", `document.getElementById('detail-yaml').textContent.includes('managedFields')`)
	sameYAML(t, p.text(`document.getElementById('detail-yaml').textContent`),
		[]byte(cluster.Kubectl(t, "get", "pod", "-n", ns, "one", "-o", "json", "--show-managed-fields")))
	p.same("text stays text", `document.querySelectorAll('#detail-yaml b').length`, "0")

	p.until("it is live", live+` === 'live'`)
	cluster.Kubectl(t, "annotate", "pod", "-n", ns, "one", "later=yes")
	p.until("a change shows, marked",
		`[...document.querySelectorAll('.yaml .fresh')].some(l => l.textContent.includes('later'))`)
	cluster.Kubectl(t, "delete", "pod", "-n", ns, "one", "--grace-period=0", "--force")
	p.until("the deletion", `document.getElementById('detail-state').textContent === 'deleted'`)
}

func TestRealNamespacesArePicked(t *testing.T) {
	d, cluster := startFleet(t)
	one, two := place(t, cluster), place(t, cluster)
	apply(t, cluster, podYAML(one, "a", "web")+podYAML(two, "b", "web"))
	p := openDaemon(t, d, "")
	p.until("both are ready", `[...document.querySelectorAll('.state')].map(s => s.textContent).join() === 'ready,ready'`)
	p.eval(`location.hash = '#/objects'`, new(any))
	p.until("pods of both clusters", names+`.filter(n => n === 'a').length === 2 && `+names+
		`.filter(n => n === 'b').length === 2`)

	p.pick("pick-namespace", "us."+one)
	p.until("those of one namespace of one cluster", names+`.join() === 'a'`)
	p.same("which cluster", gridRows+`[0].children[0].textContent`, "us")
	p.same("it is in the address", `new URLSearchParams(location.hash.split('?')[1]).get('ns')`, "us."+one)
	p.pick("pick-cluster", "eu")
	p.until("the same in another cluster", `location.hash.includes('cluster=eu') && `+names+`.join() === 'a'`)
	p.same("under its own name", `new URLSearchParams(location.hash.split('?')[1]).get('ns')`, one)
	p.pick("pick-namespace", two)
	p.until("another", names+`.join() === 'b'`)
	p.do(chromedp.Reload())
	p.until("a link to it leads to it", names+`.join() === 'b' && `+pickedNamespace+`.value === '`+two+`'`)
	p.pick("pick-cluster", "")
	p.until("and to all clusters", `new URLSearchParams(location.hash.split('?')[1]).get('ns') === 'eu.`+two+`' && `+
		names+`.join() === 'b'`)

	three := place(t, cluster)
	p.until("a new namespace can be picked", `[...`+pickedNamespace+`.options].some(o => o.value === 'us.`+three+`')`)
	p.pick("pick-namespace", "us."+three)
	p.until("the list shows that the namespace is empty",
		`document.getElementById('list-trouble').textContent.includes('no pods')`)
	p.pick("pick-resource", "namespaces.v1")
	p.until("cluster-scoped objects", names+`.includes('eu.`+one+`') || `+names+`.includes('`+one+`')`)
	p.same("no namespace can be selected", pickedNamespace+`.disabled && !location.hash.includes('ns=')`, "true")
	p.eval(`history.back()`, new(any))
	p.until("Back restores the namespace", pickedNamespace+`.value === 'us.`+three+`'`)
}

func TestRealClusterJoinsAndLeavesThroughTheDialogs(t *testing.T) {
	d := startDaemon(t, server.Access{}, "pods", "namespaces", "nodes")
	cluster := testcluster.Start(t, testcluster.WithoutControllers())
	kubeconfig, err := os.ReadFile(cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	ns := place(t, cluster)
	apply(t, cluster, podYAML(ns, "one", "web"))
	p := openDaemon(t, d, "")
	p.until("there is no cluster yet", noCluster)
	join := func(name, text string) {
		p.do(chromedp.SetValue(chromedp.CSS(`#join-name`), name), chromedp.SetValue(chromedp.CSS(`#join-kubeconfig`), text),
			chromedp.Click(chromedp.CSS(`#join-submit`)))
	}
	p.do(chromedp.Click(chromedp.CSS(`.empty button`)), chromedp.WaitVisible(chromedp.CSS(`#join-name`)))
	p.expect("400")
	join("eu",
		"apiVersion: v1\nkind: Config\nusers: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, "+
			"command: /bin/true}}}]\n"+
			"clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: x, context: {cluster: c, "+
			"user: u}}]\ncurrent-context: x\n")
	p.until("a plugin is refused", joinError+` !== ''`)
	if s := p.text(joinError); !strings.Contains(s, "exec") && !strings.Contains(s, "plugin") {
		t.Errorf("the error is %q", s)
	}
	join("eu", string(kubeconfig))
	p.until("the dialog closes", `!document.getElementById('join').open`)
	p.until("it is ready", `document.querySelector('[aria-labelledby=cluster-eu] .state')?.textContent === 'ready'`)
	p.do(chromedp.Click(chromedp.CSS(`#join-open`)), chromedp.WaitVisible(chromedp.CSS(`#join-name`)))
	p.expect("409")
	join("eu", "apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: t}}]\n"+
		"clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: x, context: {cluster: c, "+
		"user: u}}]\ncurrent-context: x\n")
	p.until("another cluster with a name that is taken is refused", joinError+`.includes('already exists')`)
	join("us", string(kubeconfig))
	p.until("the other is ready too",
		`document.querySelector('[aria-labelledby=cluster-us] .state')?.textContent === 'ready'`)
	p.until("the kubeconfig is not kept", `document.getElementById('join-kubeconfig').value === ''`)

	p.eval(`location.hash = '#/objects?filter=labels&text=app%3Dweb'`, new(any))
	p.until("the objects of both", names+`.filter(n => n === 'one').length === 2`)
	p.until("it is live", live+` === 'live'`)
	p.eval(`location.hash = '#/'`, new(any))
	p.press(`button[aria-label="Leave us"]`)
	p.do(chromedp.WaitVisible(chromedp.CSS(`#leave-submit`)), chromedp.Click(chromedp.CSS(`#leave-submit`)))
	p.until("it is gone", `document.querySelectorAll('.cluster').length === 1 && !document.getElementById('leave').open`)
	if _, ok := d.fleet.Cluster("us"); ok {
		t.Error("the fleet still has it")
	}
	p.eval(`location.hash = '#/objects?filter=labels&text=app%3Dweb'`, new(any))
	p.until("its objects are removed", names+`.filter(n => n === 'one').length === 1`)
}

func TestRealPastIsWhatTheClusterHad(t *testing.T) {
	t.Parallel()
	data, err := disk.Open(t.TempDir(), disk.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := data.Close(); err != nil {
			t.Error(err)
		}
	})
	cluster := testcluster.Start(t, testcluster.WithoutControllers())
	ns := place(t, cluster)
	apply(t, cluster, `{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: `+ns+`}, data: {colour: red}}`)
	d := startDaemonWithDisk(t, server.Access{}, data, "configmaps", "namespaces")
	if err := d.fleet.Join("eu", cluster.Config(), fleet.Origin{Kind: "kubeconfig"}); err != nil {
		t.Fatal(err)
	}
	p := openDaemon(t, d, "#/objects?cluster=eu&resource=configmaps.v1&ns="+ns)
	p.expect("410")
	p.until("the object", names+`.join() === 'one' && `+live+` === 'live'`)
	p.wait("the history begins", func() (ok bool) {
		p.eval(`fetch('/clusters/eu/api/v1/namespaces/`+ns+`/configmaps?history=gaps').then((r) => r.ok)`, &ok)
		return ok
	})
	cluster.Kubectl(t, "patch", "configmap", "-n", ns, "one", "-p", `{"data":{"colour":"blue"}}`)
	p.until("the change", `document.querySelector('.feed-item[data-type=MODIFIED]')`)
	cluster.Kubectl(t, "delete", "configmap", "-n", ns, "one")
	p.until("the deletion", names+`.length === 0`)

	p.do(chromedp.Click(chromedp.CSS(`#time-open`)))
	p.until("the changes", `document.querySelectorAll('.timeline .change').length === 2`)
	p.do(chromedp.Click(chromedp.CSS(`#change-before`)))
	p.until("it was gone then", band+` && `+names+`.length === 0`)
	p.do(chromedp.Click(chromedp.CSS(`#change-before`)))
	p.until("and there before", names+`.join() === 'one'`)
	p.same("without a warning", warnings, "")
	p.press(".grid-row")
	p.until("the object of then", `document.getElementById('detail-yaml').textContent.includes('colour: blue')`)
	p.do(chromedp.Click(chromedp.CSS(`#detail-tab-history`)))
	p.until("the versions", versions+`.map(v => v.dataset.type).join() === 'Deleted,Updated,Added'`)
	p.same("who changed it", versions+`[1].querySelector('.version-by').textContent`, "kubectl-patch")
	p.same("what changed", versions+`[1].querySelector('.version-what').textContent`, "data.colour red → blue")
	p.until("the differences", `[...document.querySelectorAll('.diff-cell[data-side=after]')]
		.map(c => c.textContent.trim()).join() === 'after:   colour: blue'`)
}
