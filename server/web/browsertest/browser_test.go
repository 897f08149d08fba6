package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
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

	"github.com/mirador-k8s/mirador/server/web"
	"github.com/mirador-k8s/mirador/server/web/browsertest/fakeapi"
)

// browser is shared by the tests; each has its own profile in it.
var browser context.Context

func TestMain(m *testing.M) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.WindowSize(1360, 900))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to sandbox itself as root
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	var closeBrowser context.CancelFunc
	browser, closeBrowser = chromedp.NewContext(alloc)
	if err := chromedp.Do(browser); err != nil {
		fmt.Fprintln(os.Stderr, "starting Chromium (Debian: apt-get install chromium):", err)
		os.Exit(1)
	}
	code := m.Run()
	closeBrowser()
	stop()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// action is something that the browser does.
type action = chromedp.Action[chromedp.Void]

// tab is the page in a browser, over a fake API.
type tab struct {
	t   *testing.T
	ctx context.Context
	api *fakeapi.Server

	mu       sync.Mutex
	problems []string
	expected []string
}

// watchTasks is there before the page's own code: it notes long tasks and broken rules.
const watchTasks = `window.longTasks = [];
new PerformanceObserver((list) => { for (const e of list.getEntries()) longTasks.push(Math.round(e.duration)); }).observe({ type: 'longtask', buffered: true });
window.violations = [];
addEventListener('securitypolicyviolation', (e) => violations.push(e.violatedDirective + ' ' + e.blockedURI));`

// open starts a page of its own. When the test ends, anything that the console complained
// about and the test did not expect is a failure.
func open(t *testing.T, hash string, o fakeapi.Options, setUp ...action) *tab {
	t.Helper()
	if o.Tick == 0 {
		o.Tick = 250 * time.Millisecond
	}
	api := fakeapi.New(o)
	mux := http.NewServeMux()
	mux.Handle("/", web.Handler())
	mux.Handle("/clusters", api)
	mux.Handle("/clusters/", api)
	mux.Handle("/fleet/", api)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)

	ctx, closeTab := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(closeTab)
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	p := &tab{t: t, ctx: ctx, api: api}
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
	actions := append([]action{command(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watchTasks})}, setUp...)
	p.do(append(actions, chromedp.Navigate(server.URL+"/"+hash))...)
	t.Cleanup(p.verdict)
	return p
}

// listen notes what the console complains about until the tab is closed.
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

// command is a command of the browser's protocol whose answer does not matter.
func command[P, R any](c cdp.Command[P, R], params P) action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// expect says that the console may complain with this text.
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
		p.t.Errorf("the console says: %s", problem)
	}
}

func (p *tab) do(actions ...action) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatalf("in the browser: %v", err)
	}
}

// eval runs JavaScript; a promise is waited for.
func (p *tab) eval(js string, result any) {
	p.t.Helper()
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](`(async () => JSON.stringify(await (`+js+`)) ?? "null")()`, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("in the browser: %v\n%s", err, js)
	}
	if err := json.Unmarshal([]byte(text), result); err != nil {
		p.t.Fatalf("%s gave %s: %v", js, text, err)
	}
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

// until waits for something to become true.
func (p *tab) until(what, js string) {
	p.t.Helper()
	p.wait(what+"\n"+js, func() (yes bool) {
		p.eval("Boolean("+js+")", &yes)
		return yes
	})
}

func (p *tab) wait(what string, done func() bool) {
	p.t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	again := time.NewTicker(25 * time.Millisecond)
	defer again.Stop()
	for !done() {
		select {
		case <-again.C:
		case <-deadline.C:
			p.shoot("failed-" + p.t.Name())
			p.t.Fatalf("waited in vain: %s", what)
		}
	}
}

// same fails if an expression has another value.
func (p *tab) same(what, js, want string) {
	p.t.Helper()
	if got := p.text(js); got != want {
		p.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// shoot keeps a picture if somebody asked for pictures by naming a folder.
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
	return command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: feature, Value: value}}})
}

func phone() action {
	return command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 360, Height: 740, DeviceScaleFactor: 2, Mobile: true})
}
