package browsertest

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/mirador-k8s/mirador/dev/browsertest/fakeapi"
)

const paper = `getComputedStyle(document.body).backgroundColor`

func TestThemeFollowsTheSystemAndTheChoice(t *testing.T) {
	p := open(t, "", fakeapi.Options{}, media("prefers-color-scheme", "dark"))
	p.until("the overview", lanes+`.length >= 14`)
	p.same("dark as the system", `document.documentElement.dataset.theme`, "dark")
	night := p.text(paper)
	p.do(chromedp.Click(chromedp.CSS(`#theme`)))
	p.same("light as chosen", `document.documentElement.dataset.theme`, "light")
	if day := p.text(paper); day == night {
		t.Errorf("both themes are %s", day)
	}
	p.do(chromedp.Reload())
	p.until("the overview after a reload", lanes+`.length >= 14`)
	p.same("the choice is kept", `document.documentElement.dataset.theme`, "light")
	p.do(chromedp.Click(chromedp.CSS(`#theme`)), media("prefers-color-scheme", "light"))
	p.until("as the system again", `document.documentElement.dataset.theme === 'light'`)
}

// Text must be readable on its background: WCAG requires a contrast of 4.5 to 1.
func TestContrastIsEnoughInBothPalettes(t *testing.T) {
	p := open(t, "", fakeapi.Options{})
	p.until("the overview", lanes+`.length >= 14`)
	for _, theme := range []string{"light", "dark"} {
		var bad []string
		p.eval(`(() => {
			document.documentElement.dataset.theme = '`+theme+`';
			const css = getComputedStyle(document.documentElement);
			const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
			const light = (name) => {
				const hex = css.getPropertyValue(name).trim();
				const [r, g, b] = [1, 3, 5].map((i) => channel(parseInt(hex.slice(i, i + 2), 16)));
				return 0.2126 * r + 0.7152 * g + 0.0722 * b;
			};
			const ratio = (a, b) => {
				const [x, y] = [light(a), light(b)].sort((m, n) => n - m);
				return (x + 0.05) / (y + 0.05);
			};
			const pairs = [];
			for (const ink of ['--ink', '--soft', '--accent', '--good', '--busy', '--warn', '--bad']) {
				for (const back of ['--panel', '--paper']) pairs.push([ink, back]);
			}
			pairs.push(['--accent-ink', '--accent'], ['--accent', '--accent-tint'], ['--bad', '--bad-tint'],
				['--warn', '--warn-tint'], ['--panel', '--bad'], ['--soft', '--sunk']);
			return pairs.filter(([a, b]) => !(ratio(a, b) >= 4.5))
				.map(([a, b]) => a + ' on ' + b + ' ' + ratio(a, b).toFixed(2));
		})()`, &bad)
		for _, pair := range bad {
			t.Errorf("%s: %s", theme, pair)
		}
	}
}

const overflow = `document.documentElement.scrollWidth > innerWidth
	? [...document.querySelectorAll('body *')]
		.filter(e => e.getBoundingClientRect().right > innerWidth + 1 && e.checkVisibility())
		.slice(0, 5).map(e => e.tagName + '.' + e.className).join(' ') || 'wider'
	: ''`

func TestNothingIsWiderThanAPhone(t *testing.T) {
	p := open(t, "", fakeapi.Options{}, phone())
	p.until("the overview", lanes+`.length >= 14`)
	p.same("the overview", overflow, "")
	p.shoot("phone-overview")
	p.eval(`document.querySelectorAll('details.fold').forEach(d => d.open = true)`, new(any))
	p.until("all lanes", lanes+`.length === 120`)
	p.same("unfolded", overflow, "")

	p.do(chromedp.Click(chromedp.CSS(`#join-open`)), chromedp.WaitVisible(chromedp.CSS(`#join-name`)))
	p.same("the dialog", overflow, "")
	p.same("fits", `document.getElementById('join').getBoundingClientRect().right <= innerWidth`, "true")
	p.shoot("phone-join")
	p.do(chromedp.KeyEvent(kb.Escape))

	p.eval(`location.hash = '#/objects'`, new(any))
	p.until("rows of two lines", gridRows+`[0]?.querySelector('.short-rest')?.textContent.includes('Running')`)
	p.same("the objects", overflow, "")
	p.shoot("phone-objects")
	p.eval(gridRows+`[2].click()`, new(any))
	p.until("the detail", `document.getElementById('detail-yaml').textContent.includes('kind')`)
	p.until("it has slid in", `document.getElementById('detail').getAnimations().length === 0`)
	p.same("the detail", overflow, "")
	p.same("fills the phone", `document.getElementById('detail').getBoundingClientRect().width`, "360")
	p.shoot("phone-detail")
}

func TestReducedMotionMovesNothing(t *testing.T) {
	p := open(t, "", fakeapi.Options{}, media("prefers-reduced-motion", "reduce"))
	p.until("the overview", lanes+`.length >= 14`)
	p.until("30 checks", `(window.ticks = (window.ticks ?? 0) + 1) > 30`)
	p.same("running animations", `document.getAnimations().length`, "0")
}

func TestWithoutReducedMotionThePageMoves(t *testing.T) {
	p := open(t, "", fakeapi.Options{})
	p.until("something moves", `document.getAnimations().length > 5`)
}

// focusable is everything that a mouse can use and that the keyboard must therefore reach. Arrows lead from one radio
// button of a group to the others.
const focusable = `[...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
	.filter(e => e.checkVisibility() && !e.disabled && (e.type !== 'radio' || e.checked) &&
		(e.closest('dialog[open]') || !document.querySelector('dialog[open]')))`

func walk(p *tab, most int) {
	p.t.Helper()
	p.eval(`(document.activeElement?.blur?.(), window.reached = new Set(), window.plain = [])`, new(any))
	for range most {
		p.do(chromedp.KeyEvent(kb.Tab))
		var done bool
		p.eval(`(() => {
			const e = document.activeElement;
			if (e === document.body || reached.has(e)) return `+focusable+`.every(f => reached.has(f));
			reached.add(e);
			const name = e.getAttribute('aria-label') || e.labels?.[0]?.textContent || e.textContent ||
				document.getElementById(e.getAttribute('aria-labelledby'))?.textContent;
			if (!name?.trim()) plain.push('no name: ' + e.outerHTML.slice(0, 80));
			if (getComputedStyle(e).outlineStyle === 'none') plain.push('no outline: ' + e.outerHTML.slice(0, 80));
			return `+focusable+`.every(f => reached.has(f));
		})()`, &done)
		if done {
			break
		}
	}
	p.same("elements that the keyboard does not reach", focusable+
		`.filter(f => !reached.has(f)).map(f => f.outerHTML.slice(0, 80)).join('\n')`, "")
	p.same("focused elements without a visible outline or a name", `plain.join('\n')`, "")
}

func TestTheKeyboardReachesEverything(t *testing.T) {
	p := open(t, "", fakeapi.Options{})
	p.until("the overview", lanes+`.length >= 14`)
	p.do(chromedp.KeyEvent(kb.Tab))
	p.same("the skip link comes first", `document.activeElement.id`, "skip")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.same("and leads to the content", `document.activeElement.id`, "main")
	walk(p, 120)

	p.eval(`location.hash = '#/objects'`, new(any))
	p.until("the list", status+` === '100 of 50,000'`)
	walk(p, 60)

	p.eval(`document.querySelector('.grid').focus()`, new(any))
	p.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown))
	p.until("the third row is active",
		`document.querySelector('.grid').getAttribute('aria-activedescendant') === 'row-2' &&
			document.getElementById('row-2').getAttribute('aria-selected') === 'true'`)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until("Enter opens it", `document.getElementById('detail').open`)
	p.until("and shows it", `document.getElementById('detail-yaml').textContent.includes('`+p.api.At("eu", 2).Name+`')`)
	walk(p, 10)
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until("Escape closes it", `!document.getElementById('detail').open`)
	p.until("the focus is back in the list", `document.activeElement === document.querySelector('.grid')`)
	p.do(chromedp.KeyEvent(kb.End))
	p.until("End goes on to the next page", status+` === '200 of 50,000'`)
}

func TestNothingIsWiderThanTheWindow(t *testing.T) {
	p := open(t, "#/objects?wide=1", fakeapi.Options{})
	for _, width := range []int64{1360, 999, 641} {
		p.do(command(emulation.SetDeviceMetricsOverride,
			emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 800, DeviceScaleFactor: 1}))
		p.eval(`location.hash = '#/'`, new(any))
		p.until("the overview", lanes+`.length >= 14`)
		p.same(fmt.Sprintf("the overview at %d", width), overflow, "")
		p.eval(`location.hash = '#/objects?wide=1'`, new(any))
		p.until("the list", status+` === '100 of 50,000' && `+gridRows+`.length > 3`)
		p.same(fmt.Sprintf("the objects at %d", width), overflow, "")
		p.eval(gridRows+`[3].click()`, new(any))
		p.until("the detail", `document.getElementById('detail-yaml').textContent.includes('kind')`)
		p.same(fmt.Sprintf("the detail at %d", width), overflow, "")
		p.eval(`document.getElementById('detail').close()`, new(any))
	}
}
