package browsertest

import (
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/mirador-k8s/mirador/dev/browsertest/fakeapi"
)

const joinError = `document.getElementById('join-error').textContent`

func TestJoinShowsErrorsAndThenSucceeds(t *testing.T) {
	p := open(t, "", fakeapi.Options{Pods: map[string]int{"eu": 100}})
	p.until("the overview", `document.querySelectorAll('.cluster').length === 1`)
	p.do(chromedp.Click(chromedp.CSS(`#join-open`)), chromedp.WaitVisible(chromedp.CSS(`#join-name`)))
	p.do(chromedp.SendKeys(chromedp.CSS(`#join-name`), "Not A Name"+kb.Enter))
	p.until("the page refuses the name", joinError+`.includes('lower-case')`)
	if n := len(p.api.Requests("POST /clusters")); n != 0 {
		t.Errorf("%d requests were sent with an invalid name", n)
	}
	p.do(chromedp.SetValue(chromedp.CSS(`#join-name`), "eu"), chromedp.Click(chromedp.CSS(`#join-submit`)))
	p.until("the error about the missing kubeconfig", joinError+`.includes('Paste the kubeconfig')`)

	p.expect("409")
	p.do(chromedp.SendKeys(chromedp.CSS(`#join-kubeconfig`), "apiVersion: v1"),
		chromedp.Click(chromedp.CSS(`#join-submit`)))
	p.until("the server's error", joinError+`.includes('is there already')`)

	p.expect("400")
	p.do(chromedp.SetValue(chromedp.CSS(`#join-name`), "asia"),
		chromedp.SetValue(chromedp.CSS(`#join-kubeconfig`),
			"users: [{user: {exec: {}}}]\nexec:"), chromedp.Click(chromedp.CSS(`#join-submit`)))
	p.until("the error names the field", joinError+`.includes('users[0].user.exec')`)
	p.shoot("join-error")
	p.same("what was typed is still there", `document.getElementById('join-kubeconfig').value.length > 10`, "true")

	p.do(chromedp.SetValue(chromedp.CSS(`#join-kubeconfig`), "apiVersion: v1\nkind: Config"),
		chromedp.Click(chromedp.CSS(`#join-submit`)))
	p.until("the dialog closes", `!document.getElementById('join').open`)
	p.until("the cluster shows", `[...document.querySelectorAll('.cluster h2')].some(h => h.textContent === 'asia')`)
	p.until("the kubeconfig is not kept", `document.getElementById('join-kubeconfig').value === ''`)
}

func TestACancelledJoinKeepsNoSecret(t *testing.T) {
	p := open(t, "", fakeapi.Options{Pods: map[string]int{"eu": 100}})
	p.until("the overview", `document.querySelectorAll('.cluster').length === 1`) // before it, the button does nothing
	p.do(chromedp.Click(chromedp.CSS(`#join-open`)), chromedp.WaitVisible(chromedp.CSS(`#join-name`)),
		chromedp.SendKeys(chromedp.CSS(`#join-kubeconfig`), "token: hidden"), chromedp.KeyEvent(kb.Escape))
	p.until("closed and empty",
		`!document.getElementById('join').open && document.getElementById('join-kubeconfig').value === ''`)
}

func TestLeaveAsksForConfirmation(t *testing.T) {
	p := open(t, "", fakeapi.Options{})
	p.until("both clusters", `document.querySelectorAll('.cluster').length === 2`)
	p.press(`button[aria-label="Leave us"]`)
	p.until("a question",
		`document.getElementById('leave').open && document.getElementById('leave-name').textContent === 'us'`)
	p.shoot("leave")
	p.same("the focus is on Cancel", `document.activeElement.id`, "leave-cancel")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until("Cancel closes the dialog", `!document.getElementById('leave').open`)
	if n := p.api.Requests("DELETE"); len(n) != 0 {
		t.Errorf("a request was sent after Cancel: %q", n)
	}
	p.press(`button[aria-label="Leave us"]`)
	p.do(chromedp.WaitVisible(chromedp.CSS(`#leave-submit`)), chromedp.Click(chromedp.CSS(`#leave-submit`)))
	p.until("the cluster is removed", `document.querySelectorAll('.cluster').length === 1`)
	if got := p.api.Clusters(); !slices.Equal(got, []string{"eu"}) {
		t.Errorf("the daemon has %q", got)
	}
}

func TestThePageWithoutClustersShowsHowToJoin(t *testing.T) {
	p := open(t, "", fakeapi.Options{Pods: map[string]int{}})
	p.until("a word", `document.querySelector('.empty') && !document.querySelector('.empty').hidden`)
	p.do(chromedp.Click(chromedp.CSS(`.empty button`)))
	p.until("the dialog", `document.getElementById('join').open`)
	p.same("its first field has the focus", `document.activeElement.id`, "join-name")
}

func TestTheObjectListShowsThatItsClusterHasLeft(t *testing.T) {
	p := open(t, "#/objects?cluster=gone", fakeapi.Options{})
	p.expect("404")
	p.until("an error", `document.getElementById('list-trouble').textContent.includes('could not find')`)
	p.until("a button to try again", `document.getElementById('more').textContent === 'Try again'`)
}
