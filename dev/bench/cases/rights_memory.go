package cases

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/dev/bench/feed"
	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/dev/bench/measure"
	"github.com/mirador-k8s/mirador/dev/bench/rights"
)

// inProcess is a fleet in this process, so that its live heap can be measured.
type inProcess struct {
	fleet  *fleet.Fleet
	config *access.Config
	rights *access.Access
	server *server.Server
	users  []rights.User
	parts
}

// parts are what runs until stop.
type parts struct {
	running sync.WaitGroup
	stops   []func()
}

// run runs a part until stop.
func (p *parts) run(part func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	p.stops = append(p.stops, cancel)
	p.running.Go(func() {
		if err := part(ctx); err != nil {
			slog.Error("a part of the fleet has ended", "error", err)
		}
	})
}

func (p *parts) stop() {
	for i := len(p.stops) - 1; i >= 0; i-- {
		p.stops[i]()
	}
	p.running.Wait()
}

// serveClusters serves the clusters, and makes a fleet of them with rights and a server. Nothing runs yet.
func serveClusters(clusters []*feed.Cluster, users []rights.User) (*inProcess, error) {
	root := rights.Administrator()
	f := &inProcess{users: users, config: &access.Config{
		Bindings: []access.Binding{{Role: "administrator", Users: []string{root.Name}}}}}
	var err error
	f.fleet, err = fleet.New(fleet.Options{WithoutOpenAPI: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	for i, c := range clusters {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("listen for a simulated cluster: %w", err)
		}
		srv := &http.Server{Handler: c}
		f.running.Go(func() { _ = srv.Serve(l) }) // it always returns an error after Close
		f.stops = append(f.stops, func() { srv.Close() })
		name := fmt.Sprintf("sim%d", i)
		at := &rest.Config{Host: "http://" + l.Addr().String()}
		if err := f.fleet.Join(name, at, fleet.Origin{Kind: "bench"}); err != nil {
			return nil, err
		}
		f.config.Clusters = append(f.config.Clusters, access.ClusterConfig{Name: name, Authorization: access.ModeRBAC})
	}
	return f, f.renew()
}

// renew replaces the rights and the server by new ones, which hold nothing yet.
func (f *inProcess) renew() (err error) {
	if f.rights, err = access.New(f.fleet, access.Options{Config: f.config}); err != nil {
		return err
	}
	f.server, err = server.New(f.fleet, server.Options{Authorizer: f.rights, Access: server.Access{Authenticator: f}})
	return err
}

// Authenticate accepts the token of a user.
func (f *inProcess) Authenticate(r *http.Request) (user.Info, bool, error) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	root := rights.Administrator()
	for _, u := range append(f.users, root) {
		if u.Token() == token {
			return &user.DefaultInfo{Name: u.Name, Groups: append([]string{user.AllAuthenticated}, u.Groups...)}, true, nil
		}
	}
	return nil, false, nil
}

// get sends a request as a user, and returns an error if it is not answered with 200.
func (f *inProcess) get(ctx context.Context, u *rights.User, path string) error {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer "+u.Token())
	w := httptest.NewRecorder()
	if f.server.ServeHTTP(w, r); w.Code != http.StatusOK {
		return fmt.Errorf("%s as %s: %d %s", path, u.Name, w.Code, w.Body)
	}
	return nil
}

// eventually repeats a request until it succeeds.
func eventually(ctx context.Context, do func() error) (err error) {
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err = do(); err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return err
}

// synced returns an error as long as a cluster has a resource that is not mirrored.
func (f *inProcess) synced() error {
	for _, c := range f.fleet.Clusters() {
		all := c.Resources()
		if len(all) < 5 {
			return fmt.Errorf("cluster %s has %d resources, want 5", c.Name(), len(all))
		}
		for _, r := range all {
			if !r.Synced() {
				return fmt.Errorf("%s of cluster %s are not mirrored", r.Info().Name, c.Name())
			}
		}
	}
	return nil
}

// rightsMemory measures the live heap of a mirror with roles and 5,000 bindings, and how much is added when rights are
// evaluated and all users have listed. What is added is built and dropped several times in this process, and the median
// counts. The first time is left out, because it also makes what stays for the life of the process.
func rightsMemory(ctx context.Context, p *harness.Params) (harness.Figures, error) {
	size := fleetOfUsers(p, rights.Clusters, rights.Namespaces)
	clusters, err := size.Simulated()
	if err != nil {
		return nil, err
	}
	f, err := serveClusters(clusters, size.Users)
	if err != nil {
		return nil, err
	}
	defer f.stop()
	before := measure.LiveHeap()
	f.run(f.fleet.Run)
	if err := eventually(ctx, f.synced); err != nil {
		return nil, err
	}
	var rounds []harness.Figures
	for range p.Size(6, 2) {
		without, with, err := f.heaps(ctx)
		if err != nil {
			return nil, err
		}
		rounds = append(rounds, harness.Figures{"mirror": (without - before) / (1 << 20),
			"rights": (with - without) / (1 << 20), "share": 100 * (with - without) / (without - before)})
	}
	return harness.Medians(rounds[1:]), nil
}

// heaps returns the live heap with a new server that holds no rights, and after all users have listed.
func (f *inProcess) heaps(ctx context.Context) (without, with float64, err error) {
	if err := f.renew(); err != nil {
		return 0, 0, err
	}
	var serving parts
	defer serving.stop()
	// The list is empty, because the rest of a list with a limit would be held for its client.
	const list = "/fleet/api/v1/pods?labelSelector=app%3Dnone&complete=true"
	root := rights.Administrator()
	serving.run(f.server.Run)
	if err := eventually(ctx, func() error { return f.get(ctx, &root, list) }); err != nil {
		return 0, 0, err
	}
	measure.DropStoppedTimers()
	without = measure.LiveHeap()
	serving.run(f.rights.Run)
	for i := range f.users {
		if err := eventually(ctx, func() error { return f.get(ctx, &f.users[i], list) }); err != nil {
			return 0, 0, err
		}
	}
	measure.DropStoppedTimers()
	return without, measure.LiveHeap(), nil
}

// decisions measures decisions of a cluster with 5,000 bindings, as of 500 users in turn: a third is allowed by a
// RoleBinding, a third is refused in that namespace, and a third at cluster scope.
func decisions(ctx context.Context, p *harness.Params) (harness.Figures, error) {
	c := feed.NewCluster(feed.Seed, 1, 1)
	if err := c.SetRights(rights.LargeCluster()); err != nil {
		return nil, err
	}
	f, err := serveClusters([]*feed.Cluster{c}, nil)
	if err != nil {
		return nil, err
	}
	defer f.stop()
	f.run(f.fleet.Run)
	f.run(f.rights.Run)
	type question struct {
		user user.Info
		want access.Attributes
	}
	var questions []question
	for i := range manyUsers {
		name, groups, namespace := rights.UserOfLargeCluster(i)
		u := &user.DefaultInfo{Name: name, Groups: append(groups, user.AllAuthenticated)}
		for _, want := range []access.Attributes{{Verb: "list", Namespace: namespace}, {Verb: "delete", Namespace: namespace},
			{Verb: "list"}} {
			want.ResourceRequest, want.Resource = true, "pods"
			questions = append(questions, question{u, want})
		}
	}
	if err := eventually(ctx, func() error {
		d, err := f.rights.Decide(ctx, questions[0].user, "sim0", questions[0].want)
		if err == nil && !d.Allowed {
			err = fmt.Errorf("a request that a binding allows is refused: %s", d.Reason)
		}
		return err
	}); err != nil {
		return nil, err
	}
	var took []time.Duration
	for i := range p.Size(300_000, 3_000) {
		q := &questions[i%len(questions)]
		began := time.Now()
		d, err := f.rights.Decide(ctx, q.user, "sim0", q.want)
		took = append(took, time.Since(began))
		if err != nil || d.Allowed != (i%3 == 0) {
			return nil, fmt.Errorf("%s of %s in %q: allowed is %v: %s, %v", q.want.Verb, q.user.GetName(), q.want.Namespace,
				d.Allowed, d.Reason, err)
		}
	}
	return latencies(took), nil
}
