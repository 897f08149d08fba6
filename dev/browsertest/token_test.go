package browsertest

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/mirador-k8s/mirador/daemon/server"
)

const (
	secret     = "correct-horse-battery-staple"
	signInOpen = `document.getElementById('sign-in')?.open`
	signInSays = `document.getElementById('sign-in-error')?.textContent`
	userName   = `document.getElementById('user-name')?.textContent`
	noCluster  = `document.querySelector('.empty')?.checkVisibility()`
	anywhere   = `[location.href, document.documentElement.outerHTML, JSON.stringify({ ...localStorage }), document.cookie,
		JSON.stringify(performance.getEntriesByType('resource').map(e => e.name)), JSON.stringify(history.state)].join()`
)

// typed enters a token into the form and submits it.
func (p *tab) typed(token string) {
	p.t.Helper()
	p.write("sign-in-token", token)
}

func TestADaemonWithATokenIsUsedFromTheBrowser(t *testing.T) {
	d := startDaemon(t, server.Access{Token: secret})
	p := openDaemon(t, d, "#/objects?cluster=eu")
	p.expect("401")
	p.until("it asks", signInOpen)
	p.same("for a password", `document.getElementById('sign-in-token').type`, "password")
	p.same("which has the focus", `document.activeElement.id`, "sign-in-token")
	p.same("the field has no name, so that a form cannot send it", `document.getElementById('sign-in-token').name`, "")
	p.same("no user yet", `document.getElementById('user').hidden`, "true")
	p.same("no issuer", `document.getElementById('sign-in-begin').checkVisibility()`, "false")
	p.shoot("sign-in")
	p.do(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent(kb.Escape))
	p.until("the dialog cannot be dismissed", signInOpen)
	walk(p, 10)

	p.typed("")
	p.until("an empty token is refused", signInSays+`.includes('Paste')`)
	p.typed("not-the-token-at-all")
	p.until("a wrong token is refused", signInSays+`.includes('does not accept')`)
	p.same("and marked", `document.getElementById('sign-in-token').getAttribute('aria-invalid')`, "true")
	p.shoot("sign-in-wrong")
	p.typed(secret)
	p.until("the right one opens the page", `!`+signInOpen)
	p.expect("404") // for the cluster in the URL
	p.until("the page of the URL", `document.getElementById('list-trouble').textContent.includes('not found')`)
	p.eval(`location.hash = '#/'`, new(any))
	p.until("streams carry it too", noCluster+` && document.getElementById('connection').dataset.on === 'yes'`)
	p.same("the field is empty again", `document.getElementById('sign-in-token').value`, "")
	p.same("the tab keeps it", `sessionStorage.getItem('mirador.token')`, secret)
	p.same("no other place has the token", anywhere+`.includes('`+secret+`')`, "false")

	p.do(chromedp.Reload())
	p.until("the page after a reload", noCluster)
	p.same("it does not ask", signInOpen, "false")
	p.do(chromedp.Click(chromedp.CSS(`#join-open`)), chromedp.WaitVisible(chromedp.CSS(`#join-name`)),
		chromedp.SetValue(chromedp.CSS(`#join-name`), "eu"), chromedp.SetValue(chromedp.CSS(`#join-kubeconfig`),
			"no kubeconfig"), chromedp.Click(chromedp.CSS(`#join-submit`)))
	p.expect("400")
	p.until("what is sent carries it", joinError+` !== ''`)
	p.same("the request had the token", signInOpen, "false")
	p.do(chromedp.KeyEvent(kb.Escape))

	p.until("the user", userName+` === 'mirador:token'`)
	p.do(chromedp.Click(chromedp.CSS(`#user`)), chromedp.WaitVisible(chromedp.CSS(`#log-out`)))
	p.same("how", `document.getElementById('account-how').textContent`, "a token in this tab")
	p.shoot("account-token")
	p.do(chromedp.Click(chromedp.CSS(`#log-out`)))
	p.until("forgotten, it asks again", signInOpen)
	p.same("nothing is kept", `sessionStorage.getItem('mirador.token')`, "null")
}

func TestATokenThatIsNotKeptIsLostOnReload(t *testing.T) {
	d := startDaemon(t, server.Access{Token: secret})
	p := openDaemon(t, d, "", phone())
	p.expect("401")
	p.until("it asks", signInOpen)
	p.same("on a phone too", overflow, "")
	p.shoot("phone-sign-in")
	p.do(chromedp.Click(chromedp.CSS(`#sign-in-keep`)))
	p.typed(secret)
	p.until("it opens", noCluster)
	p.until("with a button more in the bar", `document.getElementById('user').checkVisibility()`)
	p.same("for which there is room", overflow, "")
	p.shoot("phone-signed-in")
	p.same("nothing is kept", anywhere+`.includes('`+secret+`') || Object.keys(sessionStorage).length > 0`, "false")
	p.do(chromedp.Reload())
	p.until("the page asks for a token again", signInOpen)
}

func TestThePageAsksAgainWhenTheTokenIsNoLongerValid(t *testing.T) {
	d := startDaemon(t, server.Access{Token: secret})
	p := openDaemon(t, d, "")
	p.expect("401")
	p.until("it asks", signInOpen)
	p.eval(`sessionStorage.setItem('mirador.token', 'one-of-yesterday')`, new(any))
	p.do(chromedp.Reload())
	p.until("it says why it asks", signInOpen+` && `+signInSays+`.includes('no longer')`)
	p.typed(secret)
	p.until("it opens", noCluster)
}

// The page itself is served without a token, because it contains no secret.
func TestOnlyThePageIsServedWithoutAToken(t *testing.T) {
	d := startDaemon(t, server.Access{Token: secret})
	for path, want := range map[string]int{"/": 200, "/healthz": 200, "/clusters": 401, "/clusters?watch=true": 401,
		"/fleet/api": 401, "/metrics": 401, "/readyz": 200, "/readyz?verbose": 401, "/index.html": 401} {
		resp, err := http.Get(d.url + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("GET %s: %d, want %d", path, resp.StatusCode, want)
		}
	}
}

func TestADaemonWithoutATokenAsksForNone(t *testing.T) {
	d := startDaemon(t, server.Access{})
	p := openDaemon(t, d, "")
	p.until("the page", noCluster)
	p.same("no question", signInOpen, "false")
	p.until("the user", userName+` === 'mirador:local'`)
	p.do(chromedp.Click(chromedp.CSS(`#user`)), chromedp.WaitVisible(chromedp.CSS(`#account-how`)))
	p.same("nothing to log out of", `document.getElementById('log-out').checkVisibility()`, "false")
}
