package browsertest

import (
	"net/url"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/mirador-k8s/mirador/dev/browsertest/fakeapi"
)

const (
	band     = `(document.getElementById('past').checkVisibility() ? document.getElementById('past').textContent : '')`
	warnings = `document.getElementById('past-warnings').textContent`
	note     = `document.getElementById('time-note').textContent`
	slider   = `document.querySelector('.slider')`
	why      = `document.getElementById('list-why').textContent`
	versions = `[...document.querySelectorAll('.version')]`
	moment   = `new URLSearchParams(location.hash.split('?')[1]).get('at')`
)

// pastOf returns a time of the past as text.
func pastOf(before time.Duration) string { return time.Now().Add(-before).UTC().Format(time.RFC3339) }

// openPast opens the page of a cluster with an hour of history. The first pod was evicted half an hour ago, the second
// was deleted ten minutes later, and the cluster was not watched for five minutes before.
func openPast(t *testing.T, hash string, setUp ...action) (p *tab, changed, deleted fakeapi.Pod) {
	t.Helper()
	p = open(t, hash, fakeapi.Options{Pods: map[string]int{"eu": 300}, History: time.Hour}, setUp...)
	now := time.Now()
	p.api.AddGap(fakeapi.Gap{Cluster: "eu", From: now.Add(-40 * time.Minute), To: now.Add(-35 * time.Minute)})
	changed, deleted = p.api.At("eu", 0), p.api.At("eu", 1)
	changed.Status, changed.Restarts = "Evicted", 3
	p.api.PutAt(now.Add(-30*time.Minute), changed)
	p.api.DeleteAt(now.Add(-20*time.Minute), deleted)
	return p, changed, deleted
}

func statusOf(name string) string { return `(` + rowOf(name) + `)?.children[3].textContent` }

func TestAListShowsAMomentAndItsLinkTheSame(t *testing.T) {
	p, changed, deleted := openPast(t, "#/objects?cluster=eu")
	p.until("the list of now", live+` === 'live' && `+statusOf(changed.Name)+` === 'Evicted' && !(`+
		rowOf(deleted.Name)+`)`)
	p.same("no band", band, "")

	p.do(chromedp.Click(chromedp.CSS(`#time-open`)), chromedp.WaitVisible(chromedp.CSS(`#moment`)))
	p.write("moment", "yesterday")
	p.until("what is no time is refused", `document.getElementById('moment-error').textContent.includes('-15m')`)
	p.write("moment", "2999-01-01T00:00:00Z")
	p.until("and so is the future", `document.getElementById('moment-error').textContent.includes('future')`)
	p.write("moment", "-45m")
	p.until("the list of then", statusOf(changed.Name)+` === 'Running' && `+rowOf(deleted.Name))
	p.until("the page says that it is in the past", `/, 4[5-9]m ago/.test(`+band+`)`)
	p.same("the list is not live", live, "not live: the past")
	p.same("nothing to pause", `document.getElementById('pause').checkVisibility()`, "false")
	p.wait("only the state of the fleet is watched", func() bool { return p.api.Streams() == 1 })
	watches := len(p.api.Requests("watch=true&allowWatchBookmarks"))
	p.same("ages are those of then", `Boolean((`+rowOf(changed.Name)+`).textContent)`, "true")
	if at := p.text(moment); at < pastOf(50*time.Minute) || at > pastOf(44*time.Minute) {
		t.Errorf("the URL has the moment %q", at)
	}
	p.shoot("past-list")

	other := newTab(t)
	other.api = p.api
	other.visit(p.text(`location.href`))
	other.until("the same in another tab", statusOf(changed.Name)+` === 'Running' && `+rowOf(deleted.Name))
	other.same("at the same moment", moment, p.text(moment))
	if n := len(p.api.Requests("watch=true&allowWatchBookmarks")); n != watches {
		t.Errorf("%d watches of lists of the past", n-watches)
	}

	p.eval(`history.back()`, new(any))
	p.until("Back leads to now", live+` === 'live' && `+statusOf(changed.Name)+` === 'Evicted' && `+band+` === ''`)
	p.eval(`history.forward()`, new(any))
	p.until("Forward leads to the moment", statusOf(changed.Name)+` === 'Running' && `+band)

	p.write("moment", pastOf(37*time.Minute))
	p.until("a gap is a warning", warnings+`.includes('were not seen')`)
	p.write("moment", "-15m")
	p.until("which goes with the moment", statusOf(changed.Name)+` === 'Evicted' && `+warnings+` === ''`)
	p.until("what changed before", `[...document.querySelectorAll('.feed-item')].map(i => i.textContent).join()
		.includes('deleted`+deleted.Name+`')`)
	p.do(chromedp.Click(chromedp.CSS(`#past-back`)))
	p.until("back to now", live+` === 'live' && `+band+` === '' && `+moment+` === null`)
}

func TestATimelineHasGapsAndChangesAndASlider(t *testing.T) {
	p, changed, _ := openPast(t, "#/objects?cluster=eu")
	p.until("the list", statusOf(changed.Name)+` === 'Evicted'`)
	p.do(chromedp.Click(chromedp.CSS(`#time-open`)))
	p.until("two changes", note+`.includes('2 changes in this time')`)
	p.same("the gap is drawn", `document.querySelectorAll('.timeline .gap').length`, "1")
	p.same("and in words", note+`.includes('eu was not watched from')`, "true")
	p.same("the marks", `[...document.querySelectorAll('.timeline .change')].map(c => c.dataset.type)`, "Updated,Deleted")
	p.same("it is at now", slider+`.getAttribute('aria-valuetext')`, "now")
	p.shoot("past-timeline")

	p.do(chromedp.Click(chromedp.CSS(`#change-before`)))
	p.until("the last change", `/, 2[0-4]m ago/.test(`+band+`)`)
	p.do(chromedp.Click(chromedp.CSS(`#change-before`)))
	p.until("the one before", `/, 3[0-4]m ago/.test(`+band+`) && document.getElementById('change-before').disabled`)
	p.until("the list at this change", statusOf(changed.Name)+` === 'Evicted'`)
	p.eval(slider+`.focus()`, new(any))
	p.do(chromedp.KeyEvent(kb.ArrowLeft))
	p.until("an arrow leads before it", statusOf(changed.Name)+` === 'Running'`)
	p.same("the moment is said", slider+`.getAttribute('aria-valuetext') !== 'now'`, "true")
	p.do(chromedp.KeyEvent(kb.End))
	p.until("End leads to now", band+` === '' && `+live+` === 'live'`)
	p.pick("time-span", "15")
	p.until("a shorter time", note+`.includes('0 changes in this time')`)
	p.eval(`(location.hash += '&filter=where&text=' + encodeURIComponent('status.phase == "Evicted"'))`, new(any))
	p.until("changes cannot be selected with CEL", status+` === '1' && `+note+`.includes('use labels')`)
	walk(p, 60)

	p.eval(`document.getElementById('moment').focus()`, new(any))
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until("Escape closes it", `!document.getElementById('time-panel').checkVisibility() &&
		document.activeElement.id === 'time-open'`)
}

func TestTheHistoryOfADeletedObject(t *testing.T) {
	p, changed, deleted := openPast(t, "#/objects?cluster=eu")
	p.expect("404")
	p.until("the list of now", live+` === 'live' && `+statusOf(changed.Name)+` === 'Evicted' && !(`+
		rowOf(deleted.Name)+`)`)
	link := func(pod fakeapi.Pod, more string) string {
		return `#/objects?` + url.Values{"cluster": {"eu"}, "namespace": {pod.Namespace}, "name": {pod.Name}}.Encode() + more
	}
	p.eval(`(location.hash = '`+link(deleted, "")+`')`, new(any))
	p.until("it is gone", `document.getElementById('detail-error').textContent.includes('does not exist now')`)
	p.do(chromedp.Click(chromedp.CSS(`#detail-tab-history`)))
	p.until("its versions", versions+`.map(v => v.dataset.type).join() === 'Deleted,Added'`)
	p.same("with the gap between them", `[...document.querySelectorAll('#versions li')].map(l => l.className)`,
		"version,version-gap,version,version-begin")
	p.until("what was deleted", `[...document.querySelectorAll('.diff-cell[data-side=before]')].length > 10 &&
		[...document.querySelectorAll('.diff-cell[data-side=after]')].length === 0`)

	p.eval(`(location.hash = '`+link(changed, "&tab=history")+`')`, new(any))
	p.until("the versions of another one", versions+`.map(v => v.dataset.type).join() === 'Updated,Added'`)
	p.same("who and what", versions+`[0].querySelector('.version-by').textContent + ': ' +
		`+versions+`[0].querySelector('.version-what').textContent`,
		"kubelet: status.phase Running → Evicted, status.containerStatuses.0.restartCount 0 → 3")
	p.until("the differences", `[...document.querySelectorAll('.diff-cell[data-side=after]')]
		.map(c => c.textContent.replace(/\s+/g, ' '))
		.join() === 'after: restartCount: 3,after: phase: Evicted'`)
	p.same("the part that differs", `[...document.querySelectorAll('[data-side=before] mark')].map(m => m.textContent)`,
		"0,Running")
	p.shoot("past-history")
	p.eval(`(window.folds = document.querySelectorAll('.diff-fold').length)`, new(any))
	p.do(chromedp.Click(chromedp.CSS(`.diff-fold`)))
	p.until("a fold opens", `document.querySelectorAll('.diff-fold').length === folds - 1`)
	walk(p, 30)

	p.eval(versions+`[1].querySelectorAll('input')[1].click()`, new(any))
	p.until("any two can be compared", `document.querySelector('.diff-equal')?.textContent === 'Both are the same.'`)
	p.until("the URL has them", `/before=.*after=/.test(location.hash)`)
	p.do(chromedp.Click(chromedp.CSS(`#detail-tab-yaml`)))
	p.until("the YAML of now", `document.getElementById('detail-yaml').textContent.includes('phase: Evicted')`)
	p.do(chromedp.Click(chromedp.CSS(`#detail-time`)), chromedp.WaitVisible(chromedp.CSS(`#moment`)))
	p.write("moment", "-50m")
	p.until("and of then", `document.getElementById('detail-yaml').textContent.includes('phase: Running') &&
		document.querySelector('.drawer #past').checkVisibility()`)
	p.shoot("past-detail")
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until("the panel closes", `!document.getElementById('time-panel').checkVisibility()`)
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until("the control is back in the list", `document.querySelector('#objects #past').checkVisibility() &&
		`+statusOf(changed.Name)+` === 'Running'`)
}

func TestWithoutADataFolderThePageSaysHowToKeepThePast(t *testing.T) {
	p := open(t, "#/objects?cluster=eu", fakeapi.Options{Pods: map[string]int{"eu": 10}})
	p.expect("400")
	p.until("the list", status+` === '10'`)
	p.do(chromedp.Click(chromedp.CSS(`#time-open`)))
	p.until("there is no data folder", note+`.includes('does not keep the past') && `+note+`.includes('--data DIR')`)
	p.eval(`(location.hash = '#/objects?cluster=eu&at=-5m')`, new(any))
	p.until("nor is there for a link", why+`.includes('does not keep the past')`)
	p.same("the link is exact", moment+`.endsWith('Z')`, "true")
}

func TestAMomentThatIsNotKnownLeadsToOneThatIs(t *testing.T) {
	p, _, _ := openPast(t, "#/objects?cluster=eu&at=-3h")
	p.expect("400")
	p.expect("410")
	p.until("before the history", why+`.includes('before the history, which begins on')`)
	p.shoot("past-before")
	p.do(chromedp.Click(chromedp.CSS(`#list-beginning`)))
	p.until("its beginning", status+` === '100 of 300' && /, 6\dm ago/.test(`+band+`)`)
	p.pick("pick-resource", "events.v1")
	p.until("no history is kept of them", why+`.startsWith('No history is kept of events')`)
}

func TestThePastFitsOnAPhone(t *testing.T) {
	p, changed, _ := openPast(t, "#/objects?cluster=eu", phone(), media("prefers-color-scheme", "dark"))
	p.until("the list without the deleted pod", status+`.endsWith(' of 299')`)
	p.do(chromedp.Click(chromedp.CSS(`#time-open`)), chromedp.WaitVisible(chromedp.CSS(`#moment`)))
	p.write("moment", pastOf(37*time.Minute))
	p.until("a gap", warnings+`.includes('were not seen') && `+note+`.includes('2 changes')`)
	p.same("the list", overflow, "")
	p.shoot("phone-past")
	p.eval(`(location.hash += '&tab=history&name=`+changed.Name+`&namespace=`+changed.Namespace+`')`, new(any))
	p.until("the history", `document.querySelectorAll('.diff-row').length > 3`)
	p.until("it has slid in", `document.getElementById('detail').getAnimations().length === 0`)
	p.same("the history", overflow, "")
	p.shoot("phone-history")
}
