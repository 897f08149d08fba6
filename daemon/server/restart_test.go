package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/disk"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/object"
)

// restartingDaemon is a daemon with a data folder in fake time, over the clusters eu and us. The user all may read all
// pods, and ann those of the namespace web of eu.
type restartingDaemon struct {
	t        *testing.T
	dir      string
	clusters map[string]*informertest.Server
	configs  map[string]*rest.Config
	redact   []string

	srv  *server.Server
	stop func()
}

func newRestartingDaemon(t *testing.T, dir string) *restartingDaemon {
	d := &restartingDaemon{t: t, dir: dir, clusters: map[string]*informertest.Server{},
		configs: map[string]*rest.Config{}}
	read := []any{"get", "list", "watch"}
	for _, name := range []string{"eu", "us"} {
		c := informertest.NewServer(informertest.BookmarkEvery(time.Minute))
		cfg, stop := informertest.Pipe(c)
		t.Cleanup(stop)
		create(t, c, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
			"metadata": map[string]any{"name": "kube-system"}}}, clusterRole("pods", rule(read, []any{"pods"})),
			binding("", "all", "pods", "all"))
		d.clusters[name], d.configs[name] = c, cfg
	}
	create(t, d.clusters["eu"], binding("web", "ann", "pods", "ann"))
	d.start()
	time.Sleep(2 * time.Second) // until the disk follows
	t.Cleanup(func() { d.stop() })
	return d
}

// start starts the daemon and waits until it answers.
func (d *restartingDaemon) start() {
	d.t.Helper()
	d.open()()
	for range 1000 {
		synctest.Wait()
		code, _ := d.get("all", "/fleet/api/v1/pods?complete=true&limit=1")
		if code == http.StatusOK {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	d.t.Fatal("the daemon does not answer")
}

// open makes the daemon. It answers requests, and reads nothing before the returned function is called.
func (d *restartingDaemon) open() (run func()) {
	d.t.Helper()
	log := slog.New(slog.DiscardHandler)
	folder, err := disk.Open(d.dir, disk.Options{Logger: log})
	if err != nil {
		d.t.Fatal(err)
	}
	fl, err := fleet.New(fleet.Options{Include: []string{"pods", "events", "namespaces", "*.rbac.authorization.k8s.io"},
		WithoutOpenAPI: true, Disk: folder, Logger: log, Redact: d.redact})
	if err != nil {
		d.t.Fatal(err)
	}
	for name, cfg := range d.configs {
		if err := fl.Join(name, cfg, fleet.Origin{Kind: "kubeconfig"}); err != nil {
			d.t.Fatal(err)
		}
	}
	rights, err := access.New(fl, access.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	if d.srv, err = server.New(fl, server.Options{StartGrace: -1, Authorizer: rights,
		Access: server.Access{Authenticator: byHeader{}}}); err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	parts := []func(context.Context) error{fl.Run, rights.Run, d.srv.Run}
	ended := make(chan error, len(parts))
	d.stop = func() {
		cancel()
		for range parts {
			if err := <-ended; err != nil {
				d.t.Error(err)
			}
		}
		if err := folder.Close(); err != nil {
			d.t.Error(err)
		}
	}
	return func() {
		for _, part := range parts {
			go func() { ended <- part(ctx) }()
		}
	}
}

func (d *restartingDaemon) restart() {
	d.t.Helper()
	d.stop()
	d.start()
}

func (d *restartingDaemon) get(user, path string) (int, string) {
	r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
	r.RemoteAddr = "127.0.0.1:1234"
	r.Header.Set("Test-User", user)
	w := httptest.NewRecorder()
	d.srv.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// page is a list as an answer has it.
type page struct {
	Metadata struct {
		Continue, ResourceVersion string
		RemainingItemCount        *int
	}
	Items []json.RawMessage
}

// page returns a page of a list; code says why there is none.
func (d *restartingDaemon) page(user, path string) (p page, code int) {
	d.t.Helper()
	code, text := d.get(user, path)
	if code != http.StatusOK {
		return p, code
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		d.t.Fatal(err)
	}
	return p, code
}

// items returns the items as comparable texts.
func (p page) items(path string) (out []string) {
	for _, it := range p.Items {
		out = append(out, comparable(string(it), path))
	}
	return out
}

// change changes a few pods of a cluster.
func (d *restartingDaemon) change(rnd *rand.Rand, cluster string, n int) {
	c := d.clusters[cluster]
	for range n {
		p := withLabels([]string{"web", "shop"}[rnd.IntN(2)], fmt.Sprint("p", rnd.IntN(15)),
			[]string{"Running", "Pending"}[rnd.IntN(2)], map[string]any{"app": []string{"x", "y"}[rnd.IntN(2)],
				"n": fmt.Sprint(rnd.Uint32())})
		if rnd.IntN(4) == 0 {
			_, _ = c.Delete(p) // it may not exist
		} else if _, err := c.Create(p); err != nil {
			if _, err := c.Update(p); err != nil {
				d.t.Fatal(err)
			}
		}
	}
}

// All pages of a list are of the state of its first page, however often the daemon is restarted between them, or they
// are 410. They are never 410 if the disk had the time to follow.
func TestPagesOverRestartsAreOfOneState(t *testing.T) {
	seed := rand.Uint64()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		d := newRestartingDaemon(t, dir)
		d.change(rnd, "eu", 60)
		d.change(rnd, "us", 30)
		time.Sleep(2 * time.Second)
		survived, gone := 0, 0
		for list := range 20 {
			view := []string{"/clusters/eu", "/clusters/us", "/fleet"}[rnd.IntN(3)]
			path := view + "/api/v1/pods?" + []string{"", "&labelSelector=app%3Dx", "&orderBy=-metadata.name",
				"&where=" + url.QueryEscape(`status.phase == "Running"`), "&fieldSelector=metadata.namespace%3Dweb",
				"&orderBy=metadata.labels.n&labelSelector=app%3Dy"}[rnd.IntN(6)]
			past := rnd.IntN(4) == 0
			time.Sleep(2 * time.Second) // until the disk follows, after a restart
			begun := time.Now()
			d.change(rnd, "eu", rnd.IntN(4))
			d.change(rnd, "us", rnd.IntN(2))
			synctest.Wait()
			if past {
				time.Sleep(time.Second)
				path += "&at=-" + []string{"0s", "100ms", "700ms"}[rnd.IntN(3)]
			}
			whole, code := d.page("all", path)
			if code != http.StatusOK {
				t.Fatal(path, code)
			}
			want := whole.items(path)
			var got []string
			next, version := "", ""
			for calm := true; ; {
				p, code := d.page("all", fmt.Sprintf("%s&limit=%d&continue=%s", path, 1+rnd.IntN(8), next))
				if code == http.StatusGone && (!calm || time.Since(begun) > 5*time.Minute) {
					gone++
					break
				}
				if code != http.StatusOK {
					_, text := d.get("all", path+"&limit=3&continue="+next)
					t.Fatalf("seed %d list %d: %s after %d of %d items: %d %s", seed, list, path, len(got), len(want), code, text)
				}
				got = append(got, p.items(path)...)
				if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
					t.Fatalf("seed %d list %d: %s\n%s\nwant\n%s", seed, list, path, strings.Join(got, "\n"),
						strings.Join(want, "\n"))
				}
				if version == "" {
					version = p.Metadata.ResourceVersion
				}
				if past { // the version is the newest one of what was read, which depends on the label that narrows it
					version = p.Metadata.ResourceVersion
				}
				if n := p.Metadata.RemainingItemCount; p.Metadata.ResourceVersion != version || n != nil && *n != len(want)-len(got) {
					t.Fatalf("seed %d list %d: %s has version %s after %s, %v remain", seed, list, path,
						p.Metadata.ResourceVersion, version, n)
				}
				if next = p.Metadata.Continue; next == "" {
					survived++
					break
				}
				if len(next) > 200 {
					t.Errorf("a token has %d bytes", len(next))
				}
				d.change(rnd, "eu", rnd.IntN(3))
				d.change(rnd, "us", rnd.IntN(2))
				synctest.Wait()
				switch rnd.IntN(4) {
				case 0: // what the disk does not have yet is lost
					calm = false
					d.stop()
					time.Sleep(time.Duration(1+rnd.IntN(3000)) * time.Millisecond)
					d.start()
				case 1:
					time.Sleep(time.Second)
					d.stop()
					d.change(rnd, "eu", rnd.IntN(3))
					time.Sleep(time.Duration(rnd.IntN(30)) * time.Second)
					d.start()
					time.Sleep(time.Duration(rnd.IntN(2)) * time.Second)
				}
			}
		}
		t.Logf("seed %d: %d lists were read to their end, %d ended with 410", seed, survived, gone)
		if survived < 5 {
			t.Errorf("seed %d: %d lists were read to their end", seed, survived)
		}
	})
}

// Clients that a restart has cut off come back before the disk is read. They wait instead of being refused, also for
// their rights.
func TestRequestsWaitForWhatIsOnDisk(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := newRestartingDaemon(t, dir)
		create(t, d.clusters["eu"], pod("web", "a", nil))
		time.Sleep(2 * time.Second)
		d.stop()
		run := d.open()
		type answer struct {
			path string
			code int
		}
		answers := make(chan answer, 10)
		paths := []string{"/clusters/eu/api/v1/namespaces/web/pods/a", "/clusters/us/api/v1/pods", "/fleet/api/v1/pods"}
		for _, path := range paths {
			go func() {
				code, _ := d.get("all", path)
				answers <- answer{path, code}
			}()
		}
		time.Sleep(time.Second)
		if len(answers) > 0 {
			t.Errorf("%d requests were answered before the disk was read", len(answers))
		}
		began := time.Now()
		if d.get("all", "/clusters/eu/livez"); time.Since(began) > 0 {
			t.Error("the health of a cluster waits for the disk")
		}
		run()
		for range paths {
			if a := <-answers; a.code != http.StatusOK {
				t.Errorf("%s: %d", a.path, a.code)
			}
		}
	})
}

// If the disk is not read, requests are refused after a while, and at once when the daemon stops.
func TestRequestsDoNotWaitForEverForTheDisk(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := newRestartingDaemon(t, dir)
		refusedAfter := func(path string, want time.Duration) {
			t.Helper()
			began := time.Now()
			if code, _ := d.get("all", path); code == http.StatusOK || time.Since(began) != want {
				t.Errorf("%s: answered %d after %v, want another code after %v", path, code, time.Since(began), want)
			}
		}
		d.stop()
		run := d.open()
		refusedAfter("/clusters/eu/api/v1/pods", 30*time.Second)
		refusedAfter("/clusters/eu/api/v1/pods", 0)
		run()
		d.stop()
		run = d.open()
		d.srv.Stop()
		refusedAfter("/fleet/api/v1/pods", 0)
		run()
	})
}

// firstPage returns the token after three pods.
func (d *restartingDaemon) firstPage(user, path string) (token string) {
	d.t.Helper()
	p, code := d.page(user, path+"&limit=3")
	if code != http.StatusOK || p.Metadata.Continue == "" {
		d.t.Fatal(path, code, p.Metadata)
	}
	return p.Metadata.Continue
}

func TestATokenOfAnEarlierProcessIsForItsRequestItsUserAndItsTime(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := newRestartingDaemon(t, dir)
		for i := range 9 {
			create(t, d.clusters["eu"], pod("web", fmt.Sprint("p", i), nil))
		}
		time.Sleep(2 * time.Second)
		const eu, all = "/clusters/eu/api/v1/pods?", "/fleet/api/v1/pods?"
		const web = "/clusters/eu/api/v1/namespaces/web/pods?"
		list, fleetList := d.firstPage("all", eu), d.firstPage("all", all)
		past := d.firstPage("all", eu+"at=-1s")
		own, shown := d.firstPage("ann", web), d.firstPage("ann", all)
		time.Sleep(time.Second)
		d.restart()

		part, second, _ := strings.Cut(list, "~")
		fleetPart, fleetSecond, _ := strings.Cut(fleetList, "~")
		pastPart, pastSecond, _ := strings.Cut(past, "~")
		inner, moment, _ := strings.Cut(pastPart, ".")
		flipped := []byte(second)
		flipped[20] ^= 1
		for _, c := range []struct {
			what, user, path, token string
			want                    int
		}{
			{"the request", "all", eu, list, 200},
			{"the request with another limit, again", "all", eu + "limit=2&", list, 200},
			{"the request at /fleet", "all", all, fleetList, 200},
			{"the request at a moment", "all", eu + "at=-1s&", past, 200},
			{"a user's own list", "ann", web, own, 200},
			{"a user's list at /fleet", "ann", all, shown, 200},
			{"another user", "ann", web, list, 400},
			{"another user at /fleet", "ann", all, fleetList, 400},
			{"another user with all rights", "all", web, own, 400},
			{"another cluster", "all", "/clusters/us/api/v1/pods?", list, 400},
			{"another namespace", "all", web, list, 400},
			{"other labels", "all", eu + "labelSelector=app&", list, 400},
			{"another order", "all", eu + "orderBy=metadata.name&", list, 400},
			{"another expression", "all", eu + "where=true&", list, 400},
			{"another moment", "all", eu + "at=-2s&", past, 400},
			{"no moment", "all", eu, past, 400},
			{"another resource", "all", "/clusters/eu/api/v1/namespaces?", list, 403},
			{"other clusters", "all", all + "clusters=eu&", fleetList, 400},
			{"no second part", "all", eu, part, 410},
			{"the second part of another token", "all", eu, part + "~" + fleetSecond, 410},
			{"the second part of another token at /fleet", "all", all, fleetPart + "~" + second, 410},
			{"a changed second part", "all", eu, part + "~" + string(flipped), 410},
			{"a changed moment", "all", eu + "at=-1s&", inner + "." + moment[:len(moment)-1] + "7~" + pastSecond, 410},
			{"a changed version", "all", all, fleetPart + "1~" + fleetSecond, 410},
			{"an empty second part", "all", eu, part + "~", 410},
			{"a long second part", "all", eu, part + "~" + strings.Repeat("A", 10_000), 410},
			{"no first part", "all", eu, "~" + second, 400},
		} {
			p, code := d.page(c.user, c.path+"limit=3&continue="+c.token)
			if code != c.want || code == http.StatusOK && len(p.Items) == 0 {
				t.Errorf("%s: %d, want %d; %d items", c.what, code, c.want, len(p.Items))
			}
		}

		// It expires when it would have expired.
		time.Sleep(5*time.Minute - 5*time.Second)
		if _, code := d.page("all", eu+"limit=3&continue="+list); code != http.StatusOK {
			t.Errorf("shortly before its end: %d", code)
		}
		time.Sleep(5 * time.Second)
		d.restart()
		if _, code := d.page("all", eu+"limit=3&continue="+list); code != http.StatusGone {
			t.Errorf("after its end: %d", code)
		}
	})
}

func TestATokenOfAnEarlierProcessExpiresIfItsPagesWouldNotBelongTogether(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := newRestartingDaemon(t, dir)
		eu := d.clusters["eu"]
		for i := range 9 {
			create(t, eu, pod("web", fmt.Sprint("p", i), nil), pod("shop", fmt.Sprint("p", i), nil))
		}
		bind := func(namespace string) { create(t, eu, binding(namespace, "ann", "pods", "ann")) }
		unbind := func(namespace string) {
			if _, err := eu.Delete(binding(namespace, "ann", "pods", "ann")); err != nil {
				t.Fatal(err)
			}
		}
		const one, all = "/clusters/eu/api/v1/pods?", "/fleet/api/v1/pods?"
		var before string // the version before an object that is replaced
		for _, c := range []struct {
			what, user, path string
			change           func()
			want             int
		}{
			{"nothing changed", "ann", all, func() {}, 200},
			{"more rights", "ann", all, func() { bind("shop") }, 410},
			{"fewer rights", "ann", all, func() { unbind("shop") }, 410},
			{"the same rights again", "ann", all, func() { unbind("web"); bind("web") }, 200},
			{"a cluster left", "all", all, func() { delete(d.configs, "us") }, 410},
			{"versions began again", "all", one, func() { // the old state is on disk
				before = string(eu.Version())
				create(t, eu, pod("web", "p11", nil))
				time.Sleep(time.Second)
				if err := eu.Restore(object.Version(before)); err != nil {
					t.Fatal(err)
				}
				for i := range 9 {
					create(t, eu, pod("web", fmt.Sprint("p3x", i), nil))
				}
				time.Sleep(10 * time.Second)
			}, 200},
			{"other values are redacted", "all", one, func() { d.redact = []string{"pods:/spec/nodeName"} }, 410},
			{"nothing is redacted", "all", one, func() { d.redact = nil }, 410},
		} {
			time.Sleep(2 * time.Second)
			whole, _ := d.page(c.user, c.path)
			token := d.firstPage(c.user, c.path)
			c.change()
			time.Sleep(time.Second)
			d.restart()
			p, code := d.page(c.user, c.path+"continue="+token)
			if code != c.want || code == http.StatusOK && !slices.Equal(p.items(all), whole.items(all)[3:]) {
				t.Errorf("%s: %d, want %d; %d items, of %d", c.what, code, c.want, len(p.Items), len(whole.Items))
			}
			for range 3 { // and if the cluster has confirmed the state
				time.Sleep(2 * time.Second)
				if _, again := d.page(c.user, c.path+"continue="+token); again != code {
					t.Errorf("%s: %d, and later %d", c.what, code, again)
				}
			}
		}
	})
}

// A watch of a user that sees a part of the fleet goes on after a restart, unless the user was or is shown something
// else than before.
func TestAWatchOfARestrictedUserGoesOnAfterARestart(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := newRestartingDaemon(t, dir)
		eu := d.clusters["eu"]
		names := 0
		add := func(namespace string) (name string) {
			names++
			name = fmt.Sprint("pod-", names)
			create(t, eu, pod(namespace, name, nil))
			return name
		}
		bind := func(namespace string) { create(t, eu, binding(namespace, "ann", "pods", "ann")) }
		unbind := func(namespace string) {
			if _, err := eu.Delete(binding(namespace, "ann", "pods", "ann")); err != nil {
				t.Fatal(err)
			}
		}
		const all = "/fleet/api/v1/pods?"
		list := func() string {
			time.Sleep(time.Second) // until changed rights are known
			p, code := d.page("ann", all)
			if code != http.StatusOK {
				t.Fatal(code)
			}
			return p.Metadata.ResourceVersion
		}
		for _, c := range []struct {
			what          string
			before, while func()
			between       func() // a list, whose version is the one that the watch goes on from
			gone          bool
		}{
			{what: "nothing changed"},
			{what: "more rights", while: func() { bind("shop") }, gone: true},
			{what: "nothing changed since", before: func() { list() }},
			{what: "fewer rights", while: func() { unbind("shop") }, gone: true},
			{what: "more rights that are not there any more", before: func() { bind("shop"); list() },
				between: func() { unbind("shop") }, gone: true},
			{what: "rights that were there before, and are again",
				before: func() { bind("shop"); list(); unbind("shop"); list() }},
		} {
			for _, do := range []*func(){&c.before, &c.while, &c.between} {
				if *do == nil {
					*do = func() {}
				}
			}
			c.before()
			version := list()
			c.between()
			time.Sleep(time.Second)
			list()
			time.Sleep(time.Second) // until the disk follows
			d.stop()
			c.while()
			missed, hidden := add("web"), add("other")
			d.start()
			_, text := d.get("ann", all+"watch=true&timeoutSeconds=3&resourceVersion="+version)
			if gone := strings.Contains(text, `"code":410`); gone != c.gone || !gone && !strings.Contains(text, missed) ||
				strings.Contains(text, hidden) {
				t.Errorf("%s: 410 is %v, want %v: %s", c.what, gone, c.gone, text)
			}
		}
	})
}

func TestWithoutADataFolderTokensAreAsBefore(t *testing.T) {
	p := newMemoryDaemon(t, map[string]http.Handler{"eu": podsOf(t, "a", "b", "c")})
	p.Start()
	p.ready(t, 3)
	_, text := p.get(t, "/clusters/eu/api/v1/pods?limit=1", "application/json")
	if strings.Contains(text, "~") || !strings.Contains(text, `"continue"`) {
		t.Error(text)
	}
}

func podsOf(t *testing.T, names ...string) *informertest.Server {
	c := informertest.NewServer()
	for _, name := range names {
		create(t, c, pod("web", name, nil))
	}
	return c
}
