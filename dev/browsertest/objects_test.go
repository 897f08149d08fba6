package browsertest

import (
	"encoding/json"
	"math/big"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"sigs.k8s.io/yaml"

	"github.com/mirador-k8s/mirador/dev/browsertest/fakeapi"
)

const (
	gridRows = `[...document.querySelectorAll('.grid-row')].sort((a, b) => a.dataset.index - b.dataset.index)`
	status   = `document.getElementById('list-status').textContent`
	live     = `document.getElementById('list-live').textContent`
)

// rowOf returns JavaScript for the row that shows a name.
func rowOf(name string) string {
	return gridRows + `.find(r => [...r.children].some(c => c.textContent === '` + name + `'))`
}

func TestTheFleetIsListedInPages(t *testing.T) {
	p := open(t, "#/objects", fakeapi.Options{})
	p.until("the first page", status+` === '100 of 50,000'`)
	p.same("columns", `[...document.querySelectorAll('[role=columnheader]')].map(c => c.textContent)`,
		"Cluster,Namespace,Name,Ready,Status,Restarts,Age")
	first := p.api.At("eu", 0)
	p.same("the first row", gridRows+`[0].children[2].textContent`, first.Name)
	p.same("its namespace without the cluster", gridRows+`[0].children[1].textContent`, first.Namespace)
	p.same("ages have seconds, which the server's do not",
		`/^(\d+s|\d+m|\d+m[1-9]\d*s)$/.test(`+gridRows+`[0].children[6].textContent)`, "true")

	p.do(chromedp.Click(chromedp.CSS(`#more`)))
	p.until("the second page", status+` === '200 of 50,000'`)
	requests := p.api.Requests("continue=")
	if len(requests) != 1 || !strings.Contains(requests[0], "limit=100") {
		t.Errorf("the second page was asked for by %q", requests)
	}

	p.do(chromedp.Click(chromedp.CSS(`#wide`)))
	p.until("all columns",
		`[...document.querySelectorAll('[role=columnheader]')].map(c => c.textContent).includes('Node')`)
	p.same("the URL has it", `location.hash.includes('wide=1')`, "true")
}

// countWork counts what the list draws per frame. The time of a frame depends on the machine, but its work must not
// grow with the list.
const countWork = `(() => {
	window.work = { frame: 0, most: 0, rows: 0 };
	new MutationObserver((records) => {
		work.frame += records.length;
		work.most = Math.max(work.most, work.frame);
		work.rows = Math.max(work.rows, document.querySelectorAll('.grid-row').length);
	}).observe(document.querySelector('.grid'), { subtree: true, childList: true, attributes: true, characterData: true });
	const next = () => { work.frame = 0; requestAnimationFrame(next); };
	next();
})()`

// The list has 10,000 objects, and 50,000 if MIRADOR_NIGHTLY is set.
func TestALongListDoesNotFreezeThePage(t *testing.T) {
	eu, us, all := 6_000, 4_000, "10,000"
	if os.Getenv("MIRADOR_NIGHTLY") != "" {
		eu, us, all = 30_000, 20_000, "50,000"
	}
	p := open(t, "#/objects", fakeapi.Options{Pods: map[string]int{"eu": eu, "us": us}})
	p.until("the first page", status+` === '100 of `+all+`'`)
	p.eval(`longTasks.length = 0`, new(any))
	p.eval(countWork, new(any))
	began := time.Now()
	// Load pages and scroll to the end of what is loaded until everything is loaded.
	p.eval(`new Promise((done) => {
		const grid = document.querySelector('.grid');
		const more = document.getElementById('more');
		let steps = 0;
		const step = () => {
			if (`+status+` === '`+all+`') return done(true);
			more.disabled = false; // drawn with the next frame; the list itself knows when to wait
			more.click();
			if (steps++ % 10 === 0) grid.scrollTop = grid.scrollHeight;
			setTimeout(step, 10);
		};
		step();
	})`, new(any))
	pages := (eu + us) / 100
	t.Logf("%d pages in %v", pages, time.Since(began).Round(time.Millisecond))
	p.until("the last row", `(document.querySelector('.grid').scrollTop = 1e9, `+rowOf(p.api.At("us", us-1).Name)+`)`)
	if n := len(p.api.Requests("/pods?limit=100")); n != pages {
		t.Errorf("%d pages were requested, want %d", n, pages)
	}

	// Jump around in the list while much of it changes.
	for i := range 2000 {
		pod := p.api.At("eu", i*7%eu)
		pod.Restarts++
		p.api.Put(pod)
	}
	p.eval(`new Promise((done) => {
		const grid = document.querySelector('.grid');
		let left = 120;
		const step = () => {
			grid.scrollTop = Math.abs(Math.sin(left * 12.9)) * grid.scrollHeight;
			left-- ? requestAnimationFrame(step) : done(true);
		};
		step();
	})`, new(any))
	var tasks []float64
	p.eval(`longTasks`, &tasks)
	t.Logf("long tasks, in milliseconds: %v", tasks)
	if n := p.number(`work.rows`); n > 80 {
		t.Errorf("up to %v rows had elements", n)
	}
	n := p.number(`work.most`)
	t.Logf("up to %v changes in a frame", n)
	if n > 3000 { // some 40 rows of 8 cells, each with its text and marks
		t.Errorf("a frame changed %v nodes of the list, more than fit on a screen", n)
	}
}

func TestFilterByLabels(t *testing.T) {
	p := open(t, "#/objects?cluster=eu", fakeapi.Options{Pods: map[string]int{"eu": 1000}})
	p.until("the list", status+` === '100 of 1,000'`)
	p.do(chromedp.SendKeys(chromedp.CSS(`#filter-text`), "app in (web, mail)"+kb.Enter))
	p.until("the filtered list", `location.hash.includes('app+in') && `+status+`.startsWith('100 and more')`)
	p.same("only those", gridRows+`.every(r => /^(web|mail)-/.test(r.children[1].textContent))`, "true")
	p.do(chromedp.Click(chromedp.CSS(`#filter-clear`)))
	p.until("everything again", status+` === '100 of 1,000'`)
	p.eval(`history.back()`, new(any))
	p.until("Back restores the filter", `document.getElementById('filter-text').value === 'app in (web, mail)'`)
}

func TestFilterByCELAndItsError(t *testing.T) {
	p := open(t, "#/objects", fakeapi.Options{Pods: map[string]int{"eu": 2000}})
	p.until("the list", status+` === '100 of 2,000'`)
	p.eval(`(document.getElementById('filter-kind').value = 'where')`, new(any))
	p.do(chromedp.SendKeys(chromedp.CSS(`#filter-text`), `status.phase == "Pending"`+kb.Enter))
	p.until("the filtered list", status+` === '21'`)
	p.same("only those", gridRows+`.every(r => r.children[4].textContent === 'Pending')`, "true")

	p.expect("400")
	p.eval(`document.getElementById('filter-text').value = ''`, new(any))
	p.do(chromedp.SendKeys(chromedp.CSS(`#filter-text`), `what? <b>no</b>`+kb.Enter))
	p.until("the error", `!document.getElementById('filter-error').hidden`)
	p.same("the server's error as text",
		`document.getElementById('filter-error').textContent.includes('<b>no</b>')`, "true")
	p.same("the field is marked as invalid", `document.getElementById('filter-text').hasAttribute('aria-invalid')`, "true")
	p.shoot("filter-error")

	p.eval(`document.getElementById('filter-text').value = ''`, new(any))
	p.do(chromedp.SendKeys(chromedp.CSS(`#filter-text`), `metadata.name.startsWith("web")`+kb.Enter))
	p.until("a right one works again", `document.getElementById('filter-error').hidden && `+gridRows+`.length > 10`)
}

func TestAChangeIsShownInItsRowAndInTheFeed(t *testing.T) {
	p := open(t, "#/objects", fakeapi.Options{Pods: map[string]int{"eu": 500, "us": 300}})
	pod := p.api.At("eu", 3)
	p.until("the list is live", live+` === 'live' && `+status+` === '100 of 800'`)
	pod.Status = "CrashLoopBackOff"
	p.api.Put(pod)
	p.until("the row", `(`+rowOf(pod.Name)+`)?.children[4].textContent === 'CrashLoopBackOff'`)
	p.same("its tone", `(`+rowOf(pod.Name)+`).children[4].dataset.tone`, "bad")
	p.until("the feed",
		`document.querySelector('.feed-what')?.textContent.includes('Status Running → CrashLoopBackOff')`)

	fresh := fakeapi.Pod{Cluster: "eu", Namespace: pod.Namespace, Name: "api-00001-zzzzz", App: "api", Status: "Pending"}
	p.api.Put(fresh)
	p.until("a new one, in its place", `(`+rowOf(fresh.Name)+`)?.dataset.index === '2'`)
	p.api.Delete(fresh)
	p.until("it is marked or gone", `!(`+rowOf(fresh.Name)+`) || (`+rowOf(fresh.Name)+`).dataset.change === 'gone'`)
	p.until("it is gone", `!(`+rowOf(fresh.Name)+`)`)
	p.same("the feed has all three", `[...document.querySelectorAll('.feed-type')].map(n => n.textContent)`,
		"deleted,added,changed")
}

// A page of the list can be older than what the watch has already sent.
func TestAWatchEventOverridesAnOlderPage(t *testing.T) {
	p := open(t, "#/objects?cluster=eu", fakeapi.Options{Pods: map[string]int{"eu": 150}})
	p.until("the first page", status+` === '100 of 150'`)
	changed, deleted, seen := p.api.At("eu", 120), p.api.At("eu", 130), p.api.At("eu", 1)
	changed.Status = "Evicted"
	seen.Status = "Evicted"
	p.api.Put(changed)
	p.api.Delete(deleted)
	p.api.Put(fakeapi.Pod{Cluster: "eu", Namespace: changed.Namespace, Name: changed.Name + "-later",
		App: "web", Status: "Pending"})
	p.api.Put(seen)
	p.until("the watch has sent everything", `(`+rowOf(seen.Name)+`)?.children[3].textContent === 'Evicted'`)
	p.same("what is not loaded does not show yet", status, "100 of 150")
	p.do(chromedp.Click(chromedp.CSS(`#more`)))
	p.until("all of it", status+` === '150'`) // one gone, one new
	// The rows are drawn with the next frame, so scroll until there is room.
	p.until("the changed one, as it is now", `(document.querySelector('.grid').scrollTop = 115 * 32, `+
		rowOf(changed.Name)+`)?.children[3].textContent === 'Evicted'`)
	p.until("the one made since", rowOf(changed.Name+"-later"))
	p.same("not the deleted one", `Boolean(`+rowOf(deleted.Name)+`)`, "false")
}

func TestAnObjectThatLeavesTheFilterIsRemovedFromTheList(t *testing.T) {
	p := open(t, `#/objects?cluster=eu&filter=where&text=`+`status.phase+%3D%3D+%22Pending%22`,
		fakeapi.Options{Pods: map[string]int{"eu": 500}})
	pod := p.api.At("eu", 13)
	p.until("it is there", rowOf(pod.Name))
	pod.Status = "Running"
	p.api.Put(pod)
	p.until("it is gone", `!(`+rowOf(pod.Name)+`)`)
}

func TestAnExpiredListIsRelisted(t *testing.T) {
	p := open(t, "#/objects?cluster=eu", fakeapi.Options{Pods: map[string]int{"eu": 300}})
	p.expect("410")
	p.until("the first page", status+` === '100 of 300'`)
	p.api.Forget()
	p.until("the notice", `document.getElementById('list-notice').textContent.includes('read again')`)
	p.until("and has the list", status+` === '100 of 300'`)
	pod := p.api.At("eu", 0)
	pod.Status = "Evicted"
	p.api.Put(pod)
	p.until("and is live", `(`+rowOf(pod.Name)+`)?.children[3].textContent === 'Evicted'`)
}

func TestPauseHoldsChangesBack(t *testing.T) {
	p := open(t, "#/objects?cluster=eu", fakeapi.Options{Pods: map[string]int{"eu": 300}})
	p.until("the list", status+` === '100 of 300'`)
	p.do(chromedp.Click(chromedp.CSS(`#pause`)))
	pod := p.api.At("eu", 0)
	pod.Status = "Evicted"
	p.api.Put(pod)
	p.until("it is counted", `document.getElementById('pause').textContent === 'Resume (1)'`)
	p.same("and not shown", `(`+rowOf(pod.Name)+`).children[3].textContent`, "Running")
	p.do(chromedp.Click(chromedp.CSS(`#pause`)))
	p.until("it shows", `(`+rowOf(pod.Name)+`)?.children[3].textContent === 'Evicted'`)
}

func TestTheDetailIsTheObjectAsYAML(t *testing.T) {
	p := open(t, "#/objects", fakeapi.Options{Pods: map[string]int{"eu": 500}})
	pod := p.api.At("eu", 4)
	p.until("the row", rowOf(pod.Name))
	p.eval("("+rowOf(pod.Name)+`).click()`, new(any))
	p.until("the detail",
		`document.getElementById('detail').open && document.getElementById('detail-yaml').textContent.includes('kind')`)
	p.same("it is in the address", `location.hash.includes('name=`+pod.Name+`')`, "true")
	p.do(chromedp.Click(chromedp.CSS(`#detail-managed`)))
	p.until("managed fields", `document.getElementById('detail-yaml').textContent.includes('managedFields')`)
	text := p.text(`document.getElementById('detail-yaml').textContent`)
	sameYAML(t, text, pod.JSON("Pod", "v1", true))
	if !strings.HasPrefix(text, "apiVersion: v1\nkind: Pod\nmetadata:\n") ||
		!strings.Contains(text, "large: 9223372036854775807") || !strings.Contains(text, "example.com/script: |\n") {
		t.Errorf("the text is\n%s", text)
	}
	p.shoot("detail")

	pod.Status = "Evicted"
	p.api.Put(pod)
	p.until("the change, marked",
		`[...document.querySelectorAll('.yaml .fresh')].some(l => l.textContent.includes('phase: Evicted'))`)

	p.do(chromedp.KeyEvent(kb.Escape))
	p.until("Escape closes it", `!document.getElementById('detail').open && !location.hash.includes('name=')`)
	p.eval(`history.back()`, new(any))
	p.until("Back opens it", `document.getElementById('detail').open`)
	p.eval(`history.back()`, new(any))
	p.until("Back closes it", `!document.getElementById('detail').open`)
}

// The page reads an object again a moment after it changed. If it is deleted within that moment, or during the read,
// the page must show that it is deleted, and no error.
func TestADeletionCancelsTheReadOfTheDetail(t *testing.T) {
	p := open(t, "#/objects", fakeapi.Options{Pods: map[string]int{"eu": 10}})
	p.until("the rows", rowOf(p.api.At("eu", 0).Name))
	var got string
	p.eval(`(async () => {
		const { Detail } = await import(document.querySelector('script[src$="main.js"]').src.replace('main.js', 'detail.js'));
		const timers = new Map(), reads = [], real = { fetch, setTimeout, clearTimeout };
		let last = 0;
		window.setTimeout = (f) => { timers.set(++last, f); return last; };
		window.clearTimeout = (id) => timers.delete(id);
		window.fetch = (path, { signal }) => new Promise((_, fail) => {
			reads.push(path);
			signal.addEventListener('abort', () => fail(signal.reason));
		});
		try {
			const detail = new Detail({ onclose() {} });
			detail.open({ key: 'k', path: '/gone', name: 'one', place: 'eu' });
			detail.changed('k', 'MODIFIED');
			const due = timers.size;
			detail.changed('k', 'DELETED');
			const left = timers.size;
			for (const f of timers.values()) f();
			await new Promise((done) => real.setTimeout.call(window, done)); // let failed reads report
			const state = document.getElementById('detail-state').textContent;
			const error = document.getElementById('detail-error').hidden;
			detail.close();
			return [due, left, reads.length, state, error].join();
		} finally {
			Object.assign(window, real);
		}
	})()`, &got)
	if want := "1,0,1,deleted,true"; got != want {
		t.Errorf("readings due before and after the deletion, readings begun, state, no error: %s, want %s", got, want)
	}
}

func sameYAML(t *testing.T, text string, want []byte) {
	t.Helper()
	got, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Errorf("not YAML: %v\n%s", err, text)
		return
	}
	if !reflect.DeepEqual(normal(t, want), normal(t, got)) {
		t.Errorf("the YAML is another object:\n%s\nwant %s\ngot  %s", text, want, got)
	}
}

// normal decodes JSON so that equal numbers compare equal however they are written.
func normal(t *testing.T, raw []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return exact(v)
}

func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		if r, ok := new(big.Rat).SetString(string(v)); ok {
			return r.RatString()
		}
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = exact(v[k])
		}
	}
	return v
}
