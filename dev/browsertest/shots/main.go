// Command shots takes the pictures of the page that the README shows, from a daemon that runs.
//
//	make run                                             # in another terminal, for a minute or two
//	cd dev/browsertest && go run ./shots -url http://127.0.0.1:8090 -out ../../docs/page
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// shot is one picture: the URL, the settings, and what must be on the page first.
type shot struct {
	name          string
	theme         string
	width, height int64
	scale         float64
	phone         bool
	hash          string
	ready         string // JavaScript that is true once the page has content
	then          string // JavaScript to run after that
	settled       string // JavaScript that must be true before the picture is taken
}

const (
	someLanes = `document.querySelectorAll('.lane').length >= 3 &&
		document.querySelector('.lane .spark-line')?.getAttribute('d').split('L').length >= 55`
	someRows = `document.querySelectorAll('.grid-row').length >= 5 && document.querySelectorAll('.feed-item').length >= 5`
)

var shots = []shot{
	{name: "light", theme: "light", width: 1280, height: 860, scale: 1, hash: "#/", ready: someLanes},
	{name: "dark", theme: "dark", width: 1280, height: 800, scale: 1, hash: "#/objects", ready: someRows},
	{name: "detail", theme: "light", width: 1280, height: 800, scale: 1,
		hash:  "#/objects?cluster=eu&resource=deployments.v1.apps",
		ready: `document.querySelectorAll('.grid-row').length >= 1`,
		then:  `document.querySelector('.grid-row').click()`,
		settled: `document.getElementById('detail-yaml').textContent.includes('kind') &&
			document.getElementById('detail').getAnimations().length === 0`},
	{name: "past", theme: "light", width: 1280, height: 800, scale: 1, hash: "#/objects?resource=pods.v1&at=-30s",
		ready: `document.querySelector('.grid-row') && document.querySelector('.feed-item')`,
		then:  `document.getElementById('time-open').click()`, settled: `document.querySelector('.timeline .change')`},
	{name: "history", theme: "dark", width: 1280, height: 800, scale: 1,
		hash:  "#/objects?cluster=eu&resource=deployments.v1.apps",
		ready: `document.querySelectorAll('.grid-row').length >= 1`,
		then: `(document.querySelector('.grid-row').click(),
			setTimeout(() => document.getElementById('detail-tab-history').click(), 1000))`,
		settled: `document.querySelectorAll('.diff-row').length > 5 &&
			document.getElementById('detail').getAnimations().length === 0`},
	{name: "phone", theme: "light", width: 360, height: 740, scale: 1.5, phone: true, hash: "#/", ready: someLanes},
	{name: "phone-objects", theme: "dark", width: 360, height: 740, scale: 1.5, phone: true, hash: "#/objects",
		ready: `document.querySelectorAll('.grid-row').length >= 5`},
}

func main() {
	url := flag.String("url", "http://127.0.0.1:8090", "`address` of the daemon")
	out := flag.String("out", "../../docs/page", "`folder` for the pictures")
	flag.Parse()
	if err := run(*url, *out); err != nil {
		fmt.Fprintln(os.Stderr, "shots:", err)
		os.Exit(1)
	}
}

func run(url, out string) error {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.Flag("disable-gpu", true))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	browser, closeBrowser := chromedp.NewContext(alloc)
	defer closeBrowser()
	if err := chromedp.Do(browser); err != nil {
		return fmt.Errorf("start Chromium (Debian: apt-get install chromium): %w", err)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	failed := make(chan error, len(shots))
	for _, s := range shots { // in parallel: each waits for a minute of history
		go func() {
			if err := s.take(browser, url, filepath.Join(out, s.name+".png")); err != nil {
				failed <- fmt.Errorf("the picture %s: %w", s.name, err)
				return
			}
			failed <- nil
		}()
	}
	var errs []error
	for range shots {
		errs = append(errs, <-failed)
	}
	return errors.Join(errs...)
}

func (s shot) take(browser context.Context, url, file string) error {
	ctx, closeTab := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	defer closeTab()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	err := chromedp.Do(ctx,
		command(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}),
		command(emulation.SetDeviceMetricsOverride,
			emulation.SetDeviceMetricsOverrideParams{Width: s.width, Height: s.height,
				DeviceScaleFactor: s.scale, Mobile: s.phone}),
		command(emulation.SetEmulatedMedia,
			emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme",
				Value: s.theme}}}),
		chromedp.Navigate(url+"/"+s.hash))
	if err != nil {
		return err
	}
	if err := until(ctx, s.ready); err != nil {
		return err
	}
	if s.then != "" {
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`(`+s.then+`, true)`)); err != nil {
			return err
		}
		if err := until(ctx, s.settled); err != nil {
			return err
		}
	}
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	small, err := shrink(png)
	if err != nil {
		return err
	}
	return os.WriteFile(file, small, 0o644)
}

// until waits until JavaScript is true.
func until(ctx context.Context, js string) error {
	for {
		yes, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`Boolean(`+js+`)`))
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", js, err)
		}
		if yes {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// command returns an action that sends a command of the browser's protocol and ignores the answer.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}
