package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
)

// Options configure a Server. The zero value is valid and serves only this machine.
type Options struct {
	Access Access
	// Authorizer decides about each request before anything is read. nil allows every request.
	Authorizer Authorizer
	// Metrics serves /metrics; nil serves none.
	Metrics http.Handler
	// Page serves /; nil serves none.
	Page http.Handler
	// Login serves /login and the paths below it, without a user; nil means that users do not log in on the page.
	Login http.Handler
	// Audit receives an event for each request, and two for each watch: at its beginning and at its end. It must neither
	// block nor change the event. nil means that there is no audit log. Probes of the daemon's health have no events, and
	// refused and anonymous requests only up to a rate.
	Audit func(*auditv1.Event)
	// StartGrace is how long after the start of Run /fleet waits for clusters that cannot be reached. 0 means 30
	// seconds; a negative value does not wait. A cluster that answers but does not finish its first lists is waited
	// for ten times as long.
	StartGrace time.Duration
	// Logger receives why credentials are refused, at a limited rate and without the credentials. nil discards it.
	Logger *slog.Logger
}

// Server serves a fleet. It is an http.Handler, and a prometheus.Collector of the metrics of its requests.
type Server struct {
	fleet       *fleet.Fleet
	opts        Options
	guard       *guard
	start       *startup
	served      catalogs
	reports     reportFeed
	clusterHubs clusterWatchHubs
	fleetHubs   fleetWatchHubs
	engine      *query.Engine[*fleet.Object]
	watches     *quota // open watches
	revocations revocations
	shown       shownSets
	stopping    chan struct{}
	draining    atomic.Bool
	work        *workGate // for work that reads many objects
	memory      *quota    // of requests in progress
	past        *quota    // of states of the past
	stop        sync.Once
	started     time.Time
	metrics     *httpMetrics
	auditLimit  auditLimit
	openAPI     openAPIJSON
}

var noResource = schema.GroupResource{}

// New returns a server for a fleet.
func New(f *fleet.Fleet, o Options) (*Server, error) {
	if f == nil {
		return nil, errors.New("server: the fleet is nil; create one with fleet.New")
	}
	if o.Authorizer == nil {
		o.Authorizer = allowAll{}
	}
	if o.Access.Watches == 0 {
		o.Access.Watches = 10_000
	}
	s := &Server{fleet: f, opts: o, stopping: make(chan struct{}), started: time.Now(),
		work: newWorkGate(runtime.GOMAXPROCS(0)), memory: newQuota("bytes of memory",
			requestMemory), past: newQuota("bytes of states of the past", pastMemory),
		watches: newQuota("watches", int64(o.Access.Watches))}
	s.start = newStartup(f, o.StartGrace)
	s.metrics, s.auditLimit = newHTTPMetrics(), newAuditLimit()
	s.served.fleet = f
	s.reports.report = func(now time.Time) Report { return s.report(now, wholeReport) }
	var err error
	if s.engine, err = query.NewEngine(fleet.Bytes); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s.fleetHubs.begin(f, uint64(s.started.UnixMicro())) // higher than any version of an earlier daemon
	s.guard = newGuard(o.Access, s.allowsAnonymous, http.HandlerFunc(s.route))
	if o.Logger != nil {
		s.guard.failures.log = o.Logger
	}
	return s, nil
}

// startEvery is how often Run checks whether the start is over.
const startEvery = time.Second

// Run follows clusters that join and leave until ctx ends, and then ends all watches. Until Run begins, and then until
// the clusters that it found are synced or have been unreachable for Options.StartGrace, /fleet is 503.
func (s *Server) Run(ctx context.Context) error {
	var rights sync.WaitGroup
	rightsCtx, cancel := context.WithCancel(ctx)
	rights.Go(func() { s.followRights(rightsCtx) })
	rights.Go(func() { s.followCredentials(rightsCtx) })
	defer rights.Wait()
	defer cancel()
	defer s.fleetHubs.close()
	defer s.Stop()
	s.start.begin(time.Now())
	tick, starting := time.NewTicker(time.Minute), time.NewTicker(startEvery)
	defer tick.Stop()
	defer starting.Stop()
	for {
		changed := s.fleet.Changed()
		if ctx.Err() != nil {
			return nil // clusters that end now have not left
		}
		s.fleetHubs.follow(s.fleet.Clusters(), time.Now())
		select {
		case <-changed:
		case now := <-starting.C:
			if !s.start.update(now) {
				starting.Stop()
			}
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Stop ends all watches, so that an http.Server's Shutdown need not wait for them: pass it to RegisterOnShutdown. Lists
// in progress need the fleet, so stop the fleet and Run only after Shutdown has returned.
func (s *Server) Stop() {
	s.Drain()
	s.stop.Do(func() {
		close(s.stopping)
		s.fleetHubs.stop()
	})
}

// route calls the handler of a path.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	if err := s.impersonate(r); err != nil {
		fail(w, r, err, nil)
		return
	}
	if t, ok := parseTarget(r.URL.Path); ok && (t.fleet || !isClusterItself(&t)) {
		s.kubernetes(w, r, &t)
		return
	}
	switch path := r.URL.Path; {
	case path == "/clusters" || strings.HasPrefix(path, "/clusters/"):
		s.clusters(w, r)
	case isHealthPath(path):
		if err := s.allowVerbose(r); err != nil {
			fail(w, r, err, nil)
			return
		}
		s.daemonHealth(w, r, path)
	case path == "/metrics" && s.opts.Metrics != nil:
		if err := s.allowPath(r, access.Daemon, path); err != nil {
			fail(w, r, err, nil)
			return
		}
		s.opts.Metrics.ServeHTTP(w, r)
	case isLoginPath(path):
		s.login(w, r)
	case isAPIPath(path):
		failAbout(w, r, errNoView(r), nil)
	case s.opts.Page != nil && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		s.opts.Page.ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}

// isClusterItself reports whether a path is /clusters/NAME, the report about a cluster, and not a path of its API.
func isClusterItself(t *target) bool { return t.rest == "/" }

// kubernetes answers a request for a path of the Kubernetes API.
func (s *Server) kubernetes(w http.ResponseWriter, r *http.Request, t *target) {
	if t.fleet && s.fleet.Sent(r) {
		fail(w, r, errLoop(), t)
		return
	}
	review := reviewAt(t)
	if review == nil && r.Method != http.MethodGet && r.Method != http.MethodHead {
		fail(w, r, s.errReadOnly(r, t), t)
		return
	}
	s.awaitDisk(r.Context(), t)
	var cluster *fleet.Cluster
	if !t.fleet {
		var ok bool
		if cluster, ok = s.fleet.Cluster(t.cluster); !ok && s.mayKnow(r, t.cluster) {
			failAbout(w, r, errNoCluster(t.cluster), t)
			return
		}
	}
	if t.resource == "" {
		s.serveNonResource(w, r, t, cluster)
		return
	}
	if review != nil {
		if err := s.review(w, r, t, review); err != nil {
			fail(w, r, err, t)
		}
		return
	}
	req := parseRequest(r, *t)
	recordOf(r).describe(req.attributes(), t.scope(), req.cluster)
	if !t.fleet && cluster == nil {
		fail(w, r, req.refuse(""), &req.target)
		return
	}
	if err := s.objects(w, req, cluster); err != nil {
		fail(w, r, err, &req.target)
	}
}

// serveNonResource answers requests that are not for objects: discovery, the version, OpenAPI, health. At /fleet, the
// answer is about the clusters in which the user may read the path, and cluster is nil.
func (s *Server) serveNonResource(w http.ResponseWriter, r *http.Request, t *target, cluster *fleet.Cluster) {
	clusters, unknown, err := s.allowNonResource(r, t, cluster)
	if err != nil {
		failAbout(w, r, err, t)
		return
	}
	if t.at != "" {
		if _, err := parseMoment("the time in the path", t.at, time.Now()); err != nil {
			failAbout(w, r, err, t)
			return
		}
	}
	if isHealthPath(t.rest) {
		if t.fleet {
			if err := s.allowVerbose(r); err != nil {
				fail(w, r, err, t)
				return
			}
			s.daemonHealth(w, r, t.rest)
		} else {
			clusterHealth(w, r, t.rest, cluster)
		}
		return
	}
	if t.fleet {
		err = s.discoverable(w, r, clusters, unknown)
	} else {
		err = undiscovered(cluster)
	}
	if err != nil {
		failAbout(w, r, err, t)
		return
	}
	switch {
	case isDiscovery(t.rest):
		var served *catalog
		if t.fleet {
			served = s.served.ofAll(clusters)
		} else {
			served = s.served.of(cluster)
		}
		if !served.discover(w, r, t.rest) {
			http.NotFound(w, r)
		}
	case t.rest == "/version":
		i := slices.IndexFunc(clusters, func(c *fleet.Cluster) bool { return c.Version() != nil })
		if i < 0 {
			http.NotFound(w, r)
			return
		}
		writeBody(w, http.StatusOK, jsonType, clusters[i].Version())
	case strings.HasPrefix(t.rest, "/openapi/"):
		s.serveOpenAPI(w, r, t, clusters)
	default:
		http.NotFound(w, r)
	}
}

// objects answers a GET, a LIST or a WATCH. cluster is nil at /fleet.
func (s *Server) objects(w http.ResponseWriter, req *request, cluster *fleet.Cluster) error {
	if err := s.allowObjects(req, cluster); err != nil {
		return err
	}
	if !hasSubresource(req.groupResource(), req.subresource) {
		return s.errReadOnly(req.http, &req.target)
	}
	if isMetrics(req.group) {
		return s.errMetrics(req.http, &req.target)
	}
	s.useTableVersion(req, cluster)
	if req.verb == "watch" {
		open, err := s.takeWatch(req.http)
		if err != nil {
			return err
		}
		defer open.close()
	}
	v, err := s.view(w, req, cluster)
	switch {
	case err != nil:
		return err
	case req.history:
		return s.history(w, req, v)
	case req.verb == "get":
		return s.get(w, req, v)
	case req.verb == "watch":
		return s.watch(w, req, v)
	}
	return s.list(w, req, v)
}
