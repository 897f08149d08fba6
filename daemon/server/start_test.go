package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/informertest"
)

var errDead = errors.New("connection refused")

// faultyTransport is a transport to a cluster in memory. It passes requests on, fails them or holds them.
type faultyTransport struct {
	*informertest.Server
	mu     sync.Mutex
	dead   bool
	held   func(path string) bool // requests that wait
	turned chan struct{}          // closed when dead or held changes
}

// RoundTripper returns a transport that fails or holds requests before it passes them to next.
func (d *faultyTransport) RoundTripper(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		for {
			d.mu.Lock()
			dead, wait, turned := d.dead, d.held != nil && d.held(r.URL.Path), d.turned
			d.mu.Unlock()
			if dead {
				return nil, errDead
			}
			if !wait {
				break
			}
			select {
			case <-turned:
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
		return next.RoundTrip(r)
	})
}

func (d *faultyTransport) hold(held func(path string) bool) { d.set(false, held) }
func (d *faultyTransport) kill()                            { d.set(true, nil) }
func (d *faultyTransport) open()                            { d.set(false, nil) }

func (d *faultyTransport) set(dead bool, held func(string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead, d.held = dead, held
	close(d.turned)
	d.turned = make(chan struct{})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// fakeTimeDaemon is a daemon with clusters in memory, in fake time.
type fakeTimeDaemon struct {
	*testing.T
	fleet      *fleet.Fleet
	srv        *server.Server
	transports map[string]*faultyTransport
	ends       []func()
	start      func()
}

// inFakeTime runs a test with a daemon that is not running yet.
func inFakeTime(t *testing.T, o server.Options, clusters []string, test func(s *fakeTimeDaemon)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &fakeTimeDaemon{T: t, transports: map[string]*faultyTransport{}}
		var err error
		s.fleet, err = fleet.New(fleet.Options{Include: []string{"pods", "widgets"}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range clusters {
			s.join(name)
		}
		if s.srv, err = server.New(s.fleet, o); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 2)
		running := 0
		s.start = func() {
			running = 2
			go func() { ended <- s.fleet.Run(ctx) }()
			go func() { ended <- s.srv.Run(ctx) }()
			synctest.Wait()
		}
		defer func() {
			cancel()
			for range running {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			for _, end := range s.ends {
				end()
			}
		}()
		test(s)
	})
}

// join adds a cluster with one pod.
func (s *fakeTimeDaemon) join(name string) *faultyTransport {
	s.Helper()
	d := &faultyTransport{Server: informertest.NewServer(informertest.BookmarkEvery(time.Minute)),
		turned: make(chan struct{})}
	create(s.T, d.Server, pod("web", "of-"+name, nil))
	cfg, stop := informertest.Pipe(d.Server)
	s.ends = append(s.ends, stop)
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(d.RoundTripper)
	if err := s.fleet.Join(name, cfg, fleet.Origin{Kind: fleet.FromFile}); err != nil {
		s.Fatal(err)
	}
	s.transports[name] = d
	return d
}

// answered is a parsed answer of the daemon.
type answered struct {
	code     int
	retry    string
	warnings []string
	message  string   // of a Status
	pods     []string // the clusters of the pods in a list, in its order
}

func (s *fakeTimeDaemon) get(path string) answered {
	s.Helper()
	r := httptest.NewRequestWithContext(s.Context(), http.MethodGet, "http://localhost"+path, nil)
	w := httptest.NewRecorder()
	s.srv.ServeHTTP(w, r)
	a := answered{code: w.Code, retry: w.Header().Get("Retry-After")}
	parsed, errs := utilnet.ParseWarningHeaders(w.Header().Values("Warning"))
	if len(errs) > 0 {
		s.Errorf("%s: kubectl cannot read the warnings: %v", path, errs)
	}
	for _, one := range parsed {
		a.warnings = append(a.warnings, one.Text)
	}
	var body struct {
		Message string
		Items   []metav1.PartialObjectMetadata
	}
	if json.Unmarshal(w.Body.Bytes(), &body) == nil {
		a.message = body.Message
	}
	for _, item := range body.Items {
		a.pods = append(a.pods, strings.TrimPrefix(item.Name, "of-"))
	}
	return a
}

const fleetPods = "/fleet/api/v1/pods"

// unavailable fails the test unless a path is 503 with a message that contains all names.
func (s *fakeTimeDaemon) unavailable(path string, retry bool, names ...string) {
	s.Helper()
	a := s.get(path)
	if a.code != http.StatusServiceUnavailable || (a.retry != "") != retry {
		s.Errorf("%s: status %d, Retry-After %q: %s", path, a.code, a.retry, a.message)
	}
	for _, name := range names {
		if !strings.Contains(a.message, name) {
			s.Errorf("%s: the message does not name %q: %s", path, name, a.message)
		}
	}
}

// lists fails the test unless a list has the pods of certain clusters, and warnings about others.
func (s *fakeTimeDaemon) lists(path string, pods []string, warned ...string) {
	s.Helper()
	a := s.get(path)
	if a.code != http.StatusOK || !slices.Equal(a.pods, pods) || len(a.warnings) != len(warned) {
		s.Fatalf("%s: %d, pods of %q, warnings %q: %s", path, a.code, a.pods, a.warnings, a.message)
	}
	for i, name := range warned {
		if !strings.Contains(a.warnings[i], name) {
			s.Errorf("%s: the warning does not name %q: %s", path, name, a.warnings[i])
		}
	}
}

func anyPath(string) bool { return true }

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// An informer that lists after a restart would take a part of the fleet for the whole.
func TestFleetIsUnavailableAtStartUntilEveryMemberIsSynced(t *testing.T) {
	inFakeTime(t, server.Options{}, []string{"eu", "us"}, func(s *fakeTimeDaemon) {
		s.unavailable(fleetPods, true)
		s.transports["us"].hold(anyPath)
		s.start()
		pass(5 * time.Second)
		for _, path := range []string{fleetPods, fleetPods + "?watch=true", "/fleet/api/v1/namespaces/us.web/pods/of-us",
			"/fleet/api", "/fleet/apis", "/fleet/version"} {
			s.unavailable(path, true, "us")
		}
		s.lists("/clusters/eu/api/v1/pods", []string{"eu"})
		s.transports["us"].hold(func(path string) bool { return path == "/api/v1/pods" })
		pass(25 * time.Second) // the cluster has answered within the grace period
		s.unavailable(fleetPods, true, "us")
		if a := s.get("/fleet/api"); a.code != http.StatusOK {
			t.Errorf("each cluster is discovered, and discovery has status %d: %s", a.code, a.message)
		}
		s.transports["us"].open()
		pass(5 * time.Second)
		s.lists(fleetPods, []string{"eu", "us"})

		// The last state of a cluster stays when it dies.
		s.transports["us"].kill()
		s.transports["us"].CutWatches()
		pass(2 * time.Second)
		s.lists(fleetPods, []string{"eu", "us"}, "us")
		s.lists("/clusters/us/api/v1/pods", []string{"us"}, errDead.Error())
		pass(time.Hour)
		s.lists(fleetPods, []string{"eu", "us"}, "us")
		s.lists(fleetPods+"?complete=true", []string{"eu", "us"}, "us")
	})
}

func TestUnreachableMemberIsLeftOutWithAWarningAfterTheGracePeriod(t *testing.T) {
	inFakeTime(t, server.Options{StartGrace: 10 * time.Second}, []string{"asia", "eu", "us"}, func(s *fakeTimeDaemon) {
		s.transports["asia"].hold(anyPath) // accepts requests and never answers
		s.transports["us"].kill()
		s.start()
		pass(9500 * time.Millisecond)
		s.unavailable(fleetPods, true, "asia", "us")
		pass(time.Second)
		s.lists(fleetPods, []string{"eu"}, "asia", "us")
		if a := s.get(fleetPods); !strings.Contains(a.warnings[1], errDead.Error()) {
			t.Errorf("the warning has no reason: %q", a.warnings)
		}
		if a := s.get("/fleet/api"); a.code != http.StatusOK || len(a.warnings) != 2 {
			t.Errorf("discovery: %d, warnings %q", a.code, a.warnings)
		}
		s.unavailable(fleetPods+"?complete=true", true, "asia", "us")
		s.unavailable(fleetPods+"?watch=true&complete=true", true, "asia", "us")
		s.lists(fleetPods+"?clusters=eu", []string{"eu"})
		s.lists(fleetPods+"?clusters=eu&complete=true", []string{"eu"})
		for _, path := range []string{fleetPods + "?clusters=us", "/fleet/api/v1/namespaces/us.web/pods",
			"/fleet/api/v1/namespaces/us.web/pods/of-us"} {
			s.unavailable(path, false, "us", errDead.Error())
		}
		s.unavailable(fleetPods+"?clusters=asia,eu", true, "asia")
		for path, code := range map[string]int{
			fleetPods + "?clusters=mars":           http.StatusBadRequest,
			fleetPods + "?clusters=eu,mars":        http.StatusBadRequest,
			fleetPods + "?watch=1&clusters=mars":   http.StatusBadRequest,
			fleetPods + "?complete=perhaps":        http.StatusBadRequest,
			"/fleet/api/v1/namespaces/mars.a/pods": http.StatusNotFound,
		} {
			if a := s.get(path); a.code != code || !strings.Contains(a.message, "mars") &&
				!strings.Contains(a.message, "perhaps") {
				t.Errorf("%s: %d, want %d: %s", path, a.code, code, a.message)
			}
		}

		// A cluster that comes later is sent as additions, and the fleet stays available.
		next := s.watch(fleetPods + "?watch=true")
		if got := next(); got != "ADDED eu.web/of-eu" {
			t.Errorf("the first event is %q", got)
		}
		s.transports["asia"].hold(func(path string) bool { return path == "/api/v1/pods" })
		pass(time.Minute)
		s.lists(fleetPods, []string{"eu"}, "asia", "us")
		s.transports["us"].open()
		pass(2 * time.Minute)
		if got := next(); got != "ADDED us.web/of-us" {
			t.Errorf("the next event is %q", got)
		}
		s.lists(fleetPods, []string{"eu", "us"}, "asia")
		s.join("new").hold(anyPath)
		pass(time.Second)
		s.lists(fleetPods, []string{"eu", "us"}, "asia", "new")
		s.unavailable(fleetPods+"?clusters=new", true, "new")
		s.transports["new"].open()
		pass(2 * time.Minute)
		if got := next(); got != "ADDED new.web/of-new" {
			t.Errorf("the third event is %q", got)
		}
		s.lists(fleetPods, []string{"eu", "new", "us"}, "asia")
	})
}

// A watch receives the objects of members that sync later, however many there are.
func TestMemberThatSyncsLaterIsSentAsAdditions(t *testing.T) {
	inFakeTime(t, server.Options{StartGrace: time.Second}, []string{"eu", "us"}, func(s *fakeTimeDaemon) {
		const more = 1500
		for i := range more {
			create(t, s.transports["us"].Server, pod("web", fmt.Sprintf("of-us-%04d", i), nil))
		}
		s.transports["us"].hold(func(path string) bool { return path == "/api/v1/pods" })
		s.start()
		pass(2 * time.Second)
		next := s.watch(fleetPods + "?watch=true")
		if got := next(); got != "ADDED eu.web/of-eu" {
			t.Errorf("the first event is %q", got)
		}
		s.transports["us"].open()
		for range more + 1 {
			if got := next(); !strings.HasPrefix(got, "ADDED us.web/of-us") {
				t.Fatalf("the next event is %q", got)
			}
		}
	})
}

// Permissions are often for some resources only. Denied resources must not delay the others.
func TestDeniedResourceDoesNotDelayOthers(t *testing.T) {
	inFakeTime(t, server.Options{}, []string{"eu", "us"}, func(s *fakeTimeDaemon) {
		gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
		for _, d := range s.transports {
			if err := d.Register(gvr, "Widget", true); err != nil {
				t.Fatal(err)
			}
		}
		s.transports["us"].Inject(informertest.Fault{Resource: "widgets", Code: http.StatusForbidden})
		s.start()
		pass(time.Second)
		s.lists(fleetPods, []string{"eu", "us"})
		s.unavailable("/fleet/apis/example.com/v1/widgets", true, "us")
		pass(31 * time.Second)
		s.lists("/fleet/apis/example.com/v1/widgets", nil, "us")
	})
}

func TestClusterWithAnotherVersionIsLeftOutWithAWarning(t *testing.T) {
	inFakeTime(t, server.Options{}, []string{"eu", "us"}, func(s *fakeTimeDaemon) {
		for name, version := range map[string]string{"eu": "v1", "us": "v1beta1"} {
			if err := s.transports[name].Register(schema.GroupVersionResource{Group: "example.com", Version: version,
				Resource: "widgets"}, "Widget", true); err != nil {
				t.Fatal(err)
			}
		}
		s.start()
		pass(time.Second)
		s.lists("/fleet/apis/example.com/v1/widgets", nil, "us")
		s.lists("/fleet/apis/example.com/v1beta1/widgets", nil, "eu")
		s.lists("/fleet/apis/example.com/v1/widgets?clusters=eu", nil)
		s.unavailable("/fleet/apis/example.com/v1/widgets?complete=true", false, "us", "v1beta1")
		if a := s.get("/fleet/apis/example.com/v1/widgets?clusters=us"); a.code != http.StatusNotFound ||
			!strings.Contains(a.message, "v1beta1") {
			t.Errorf("clusters=us: %d %s", a.code, a.message)
		}
	})
}

// Otherwise a list that never ends would block all clusters forever.
func TestMemberThatNeverFinishesItsListsIsNotAwaitedForever(t *testing.T) {
	inFakeTime(t, server.Options{StartGrace: 10 * time.Second}, []string{"eu", "us"}, func(s *fakeTimeDaemon) {
		for i := range 3000 {
			create(t, s.transports["us"].Server, pod("web", fmt.Sprintf("of-us-%04d", i), nil))
		}
		s.transports["us"].Inject(informertest.Fault{Resource: "pods", CutAfterBytes: 50_000})
		s.start()
		pass(time.Second)
		s.unavailable(fleetPods, true, "us")
		pass(3 * time.Minute)
		s.lists(fleetPods, []string{"eu"}, "us")
	})
}

// watch opens a watch and returns a function that reads its next line.
func (s *fakeTimeDaemon) watch(path string) func() string {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	pr, pw := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
		s.srv.ServeHTTP(&piped{header: http.Header{}, Writer: pw}, r)
		pw.Close()
	}()
	s.ends = append(s.ends, func() {
		cancel()
		pr.Close()
		<-ended
	})
	lines := bufio.NewScanner(pr)
	return func() string {
		s.Helper()
		if !lines.Scan() {
			s.Fatalf("the watch ended: %v", lines.Err())
		}
		var e struct {
			Type   string
			Object metav1.PartialObjectMetadata
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			s.Fatal(err)
		}
		if e.Object.Namespace == "" {
			return lines.Text()
		}
		return e.Type + " " + e.Object.Namespace + "/" + e.Object.Name
	}
}

// piped is a response writer whose body can be read while it is written.
type piped struct {
	io.Writer
	header http.Header
}

func (p *piped) Header() http.Header { return p.header }
func (p *piped) WriteHeader(int)     {}
func (p *piped) Flush()              {}
