package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"go.uber.org/goleak"

	"github.com/mirador-k8s/mirador/daemon/web"
	"github.com/mirador-k8s/mirador/dev/browsertest/fakeapi"
)

// browser is shared by the tests; each has its own profile in it.
var browser context.Context

func TestMain(m *testing.M) {
	// Without a graphics card, emulating one takes most of the time.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.WindowSize(1360, 900),
		chromedp.Flag("disable-gpu", true))
	// Chromium without its own windows needs half of the processor time.
	if shell, err := exec.LookPath("chromium-headless-shell"); err == nil {
		options = append(options, chromedp.ExecPath(shell))
	}
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to sandbox itself as root
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	var closeBrowser context.CancelFunc
	browser, closeBrowser = chromedp.NewContext(alloc)
	if err := chromedp.Do(browser); err != nil {
		fmt.Fprintln(os.Stderr, "starting Chromium (Debian: apt-get install chromium-headless-shell):", err)
		os.Exit(1)
	}
	code := m.Run()
	closeBrowser()
	stop()
	if shared.stop != nil {
		if err := shared.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "ending the fleet of the tests:", err)
			code = 1
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// patience is how long a test waits for something that must happen. A working page needs a moment, a busy machine
// more.
const patience = time.Minute

// action is an action of the browser.
type action = chromedp.Action[chromedp.Void]

// tab is a page in the browser.
type tab struct {
	t   *testing.T
	ctx context.Context
	api *fakeapi.Server // nil if the page uses a real server

	mu       sync.Mutex
	problems []string
	expected []string
}

// watchTasks runs before the page's own code: it records long tasks and policy violations.
const watchTasks = `window.longTasks = [];
new PerformanceObserver((list) => {
	for (const e of list.getEntries()) longTasks.push(Math.round(e.duration));
}).observe({ type: 'longtask', buffered: true });
window.violations = [];
addEventListener('securitypolicyviolation', (e) => violations.push(e.violatedDirective + ' ' + e.blockedURI));`

// open opens a page over a fake of the API.
func open(t *testing.T, hash string, o fakeapi.Options, setUp ...action) *tab {
	t.Helper()
	t.Parallel()
	if o.Tick == 0 {
		o.Tick = 250 * time.Millisecond
	}
	api := fakeapi.New(o)
	mux := http.NewServeMux()
	mux.Handle("/", web.Handler())
	mux.Handle("/clusters", api)
	mux.Handle("/clusters/", api)
	mux.Handle("/fleet/", api)
	mux.Handle("/login/", api)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p := newTab(t)
	p.api = api
	p.visit(server.URL+"/"+hash, setUp...)
	return p
}

// newTab opens an empty tab. When the test ends, any unexpected console message is a failure.
func newTab(t *testing.T) *tab {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(closeTab)
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	p := &tab{t: t, ctx: ctx}
	console := chromedp.Console(ctx)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		p.listen(console)
	}()
	t.Cleanup(func() {
		cancel()
		<-heard
	})
	return p
}

// visit goes to a URL.
func (p *tab) visit(url string, setUp ...action) {
	p.t.Helper()
	actions := append([]action{
		command(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watchTasks}),
		// Every tab behaves as if it had the focus.
		command(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}),
	}, setUp...)
	p.do(append(actions, chromedp.Navigate(url))...)
	p.t.Cleanup(p.verdict)
}

// listen records console errors and warnings until the tab is closed.
func (p *tab) listen(console iter.Seq2[chromedp.ConsoleMessage, error]) {
	for m, err := range console {
		if err != nil {
			return
		}
		switch m.Type {
		case chromedp.ConsoleError, chromedp.ConsoleWarning, chromedp.ConsoleException:
			p.mu.Lock()
			p.problems = append(p.problems, m.String()+" "+m.URL)
			p.mu.Unlock()
		}
	}
}

// command returns an action that sends a command of the browser's protocol and ignores the answer.
func command[P, R any](c cdp.Command[P, R], params P) action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// expect allows console messages that contain this text.
func (p *tab) expect(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, text)
}

func (p *tab) verdict() {
	var violations []string
	if p.ctx.Err() == nil {
		p.eval(`violations`, &violations)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range violations {
		p.t.Errorf("the page broke its policy: %s", v)
	}
next:
	for _, problem := range p.problems {
		for _, e := range p.expected {
			if strings.Contains(problem, e) {
				continue next
			}
		}
		p.t.Errorf("unexpected console message: %s", problem)
	}
}

func (p *tab) do(actions ...action) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatalf("in the browser: %v", err)
	}
}

// eval runs JavaScript and waits for a promise.
func (p *tab) eval(js string, result any) {
	p.t.Helper()
	if err := p.try(js, result); err != nil {
		p.t.Fatalf("in the browser: %v\n%s", err, js)
	}
}

// try is eval for JavaScript that may fail, as any does while the page is reloaded.
func (p *tab) try(js string, result any) error {
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](`(async () => JSON.stringify(await (`+js+`)) ?? "null")()`,
		chromedp.EvalAwaitPromise))
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), result)
}

func (p *tab) text(js string) (s string) {
	p.t.Helper()
	p.eval("String("+js+")", &s)
	return s
}

func (p *tab) number(js string) (n float64) {
	p.t.Helper()
	p.eval("Number("+js+")", &n)
	return n
}

// until waits until an expression is true.
func (p *tab) until(what, js string) {
	p.t.Helper()
	p.wait(what+"\n"+js, func() (yes bool) {
		if err := p.try("Boolean("+js+")", &yes); err != nil && p.ctx.Err() != nil {
			p.t.Fatalf("waiting for %s: %v", what, err)
		}
		return yes
	})
}

func (p *tab) wait(what string, done func() bool) {
	p.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	again := time.NewTicker(25 * time.Millisecond)
	defer again.Stop()
	for !done() {
		select {
		case <-again.C:
		case <-deadline.C:
			p.shoot("failed-" + p.t.Name())
			p.t.Fatalf("timed out waiting: %s\nthe page at %s shows:\n%s",
				what, p.text(`location.href`), p.text(`document.body.innerText.slice(0, 2000)`))
		}
	}
}

// same fails if an expression does not get a value in time: changes are drawn with the page's next frame, which may
// take a while.
func (p *tab) same(what, js, want string) {
	p.t.Helper()
	got := p.text(js)
	for deadline := time.Now().Add(patience); got != want && time.Now().Before(deadline); got = p.text(js) {
		p.eval(`new Promise((next) => setTimeout(next, 25))`, new(any))
	}
	if got != want {
		p.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// shoot saves a picture if the environment names a folder for pictures.
func (p *tab) shoot(name string) {
	p.t.Helper()
	dir := os.Getenv("SHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatalf("taking a picture: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(name, "/", "-")+".png"), png, 0o644); err != nil {
		p.t.Error(err)
	}
}

func media(feature, value string) action {
	return command(emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: feature, Value: value}}})
}

func phone() action {
	return command(emulation.SetDeviceMetricsOverride,
		emulation.SetDeviceMetricsOverrideParams{Width: 360, Height: 740, DeviceScaleFactor: 2, Mobile: true})
}
