package browsertest

import (
	"strings"
	"testing"
	"time"

	"github.com/mirador-k8s/mirador/dev/browsertest/fakeapi"
)

const lanes = `[...document.querySelectorAll('.lane')]`

func lane(cluster, resource string) string {
	return `[...document.querySelectorAll('[aria-labelledby=cluster-` + cluster + `] .lane')]` +
		`.find(l => l.querySelector('.lane-name').textContent === '` + resource + `')`
}

func TestEveryPipelineIsShownAndQuietOnesAreFolded(t *testing.T) {
	p := open(t, "", fakeapi.Options{})
	p.until("both clusters", `document.querySelectorAll('.cluster').length === 2`)
	p.until("active lanes", lanes+`.length >= 14`)
	p.same("states", `[...document.querySelectorAll('.state')].map(s => s.textContent)`, "ready,degraded")
	if n := p.number(lanes + `.length`); n > 40 {
		t.Errorf("%v lanes show although most resources are quiet", n)
	}
	p.same("every resource is a lane or a dot", lanes+`.length + document.querySelectorAll('.dots i').length`, "120")

	p.same("trouble comes first", `document.querySelectorAll('.cluster')[1].querySelector('.lane-name').textContent`,
		"widgets")
	p.same("the server's error is shown as text",
		`document.querySelectorAll('.cluster')[1].querySelector('.lane-error').textContent`,
		"watch widgets.example.com: the server refused: <b>forbidden</b> to mirador")
	p.same("the error is not parsed as markup", `document.querySelectorAll('.lane-error b').length`, "0")
	if s := p.text("(" + lane("us", "jobs") + `).querySelector('svg').getAttribute('aria-label')`); !strings.Contains(s,
		"420 queued") {
		t.Errorf("the drawing of jobs has the text %q", s)
	}
	if s := p.text(`document.querySelector('.tiles').textContent`); !strings.Contains(s, "118 MiB") {
		t.Errorf("memory is missing in %q", s)
	}

	p.eval(`document.querySelectorAll('details.fold').forEach(d => d.open = true)`, new(any))
	p.until("all lanes, unfolded", lanes+`.length === 120`)
}

func TestRatesAreEventsPerSecond(t *testing.T) {
	p := open(t, "", fakeapi.Options{})
	rate := "parseFloat((" + lane("eu", "pods") + ")?.querySelector('.lane-rate').textContent)"
	p.until("a rate near 37/s", "Math.abs("+rate+" - 37) < 8")
}

func TestTheOverviewChangesInPlace(t *testing.T) {
	p := open(t, "", fakeapi.Options{})
	p.until("lanes", lanes+`.length >= 14`)
	p.until("trouble settled", lane("eu", "pods"))
	p.eval(`(`+lanes+`.forEach(l => l.marked = true), (`+lane("eu", "pods")+
		`).querySelector('a').focus(), window.clock0 = document.getElementById('connection').textContent)`, new(any))
	p.until("two seconds pass",
		`document.getElementById('connection').textContent > clock0 && (window.ticks = (window.ticks ?? 0) + 1) > 60`)
	p.same("lanes are the same elements", lanes+`.filter(l => l.marked).length >= 14`, "true")
	p.same("the focus stayed", `document.activeElement.textContent`, "pods")
	p.same("and is in the lane", `document.activeElement === (`+lane("eu", "pods")+`).querySelector('a')`, "true")
}

func TestALaneLeadsToItsObjects(t *testing.T) {
	p := open(t, "", fakeapi.Options{})
	p.until("the lane", lane("eu", "nodes"))
	p.eval("("+lane("eu", "nodes")+`).querySelector('a').click()`, new(any))
	p.until("rows", `document.querySelectorAll('.grid-row').length > 5`)
	p.same("the cluster", `document.getElementById('pick-cluster').value`, "eu")
	p.same("the resource", `document.getElementById('pick-resource').value`, "nodes.v1")
	p.same("the title", `document.title`, "Objects · Mirador")
}

func TestAnUnreachableClusterShowsItsError(t *testing.T) {
	p := open(t, "", fakeapi.Options{})
	p.until("both clusters", `document.querySelectorAll('.cluster').length === 2`)
	p.api.SetState("eu", "unreachable", "dial tcp 10.0.0.1:6443: connection refused")
	p.until("its state", `document.querySelector('.state').textContent === 'unreachable'`)
	p.until("the reason", `document.querySelector('.section-error').textContent.includes('connection refused')`)
}

func TestThePageReconnectsAfterARestartOfTheDaemon(t *testing.T) {
	p := open(t, "", fakeapi.Options{Tick: 100 * time.Millisecond})
	p.until("connected", `document.getElementById('connection').dataset.on === 'yes'`)
	p.eval(`(window.lost = 0, new MutationObserver(() => {
		if (document.getElementById('connection').dataset.on === 'no') lost++;
	}).observe(document.getElementById('connection'), {attributes: true}))`, new(any))
	p.api.Cut()
	p.until("the page showed the lost connection", `lost > 0`)
	p.until("connected again", `document.getElementById('connection').dataset.on === 'yes'`)
	if n := len(p.api.Requests("/clusters?watch=true")); n != 2 {
		t.Errorf("%d streams were opened, want 2", n)
	}
}

// A browser allows six connections to one host in all its tabs together.
func TestAHiddenPageHoldsNoConnection(t *testing.T) {
	p := open(t, "#/objects?cluster=eu", fakeapi.Options{Pods: map[string]int{"eu": 100}})
	p.until("the list is live", live+` === 'live'`)
	hide := func(yes string) {
		p.eval(`(Object.defineProperty(document, 'hidden', { configurable: true, get: () => `+yes+
			` }), document.dispatchEvent(new Event('visibilitychange')))`, new(any))
	}
	hide("true")
	p.wait("both streams have ended", func() bool { return p.api.Streams() == 0 })
	pod := p.api.At("eu", 0)
	pod.Status = "Evicted"
	p.api.Put(pod)
	hide("false")
	p.until("what happened meanwhile shows", `(`+rowOf(pod.Name)+`)?.children[3].textContent === 'Evicted'`)
	if n := p.api.Requests("limit=100"); len(n) != 1 {
		t.Errorf("the list was read again: %q", n)
	}
}
